#include "harness/picture/picture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "harness/judge/test_support.h"
#include "harness/picture/files.h"
#include "harness/protocol/parse_json.h"

namespace trainwreck {
namespace picture_test {

using ::testing::HasSubstr;
using ::testing::Not;

Json Painted(trainwreck::testing::Bench& bench, std::size_t bytes = 100'000) {
  bench.MakeRuns();
  return ParseJson(PictureOf(bench.results, bench.target, {bytes}));
}

Json ArmNamed(const Json& picture, const std::string& name) {
  for (const Json& arm : picture["arms"]) {
    if (arm["arm"] == name) return arm;
  }
  return {};
}

// As many signals as the reference trainer writes, each a noise.
void AddNoise(RunResult& run, int signals, int steps) {
  std::mt19937 random(7);
  std::normal_distribution<double> normal;
  for (int signal = 0; signal < signals; ++signal) {
    Series& series = run.trace.series[{"signal_" + std::to_string(signal), 0}];
    for (int step = 0; step < steps; ++step) series.Set(step, normal(random));
  }
}

TEST(PictureTest, HasCurvesOfEveryArmAndSeedAndWhatDiffersFromControl) {
  trainwreck::testing::Bench bench;
  const Json picture = Painted(bench);
  EXPECT_EQ(picture["case"], "nan/test");
  EXPECT_EQ(picture["log"], Json::array({"loss", "step_s"}));
  EXPECT_EQ(picture["min_margins"]["blows_up"], Json::array({2.0, "steps"}));
  for (const char* name : {"control", "fault", "lower_lr", "decay"}) {
    const Json arm = ArmNamed(picture, name);
    ASSERT_EQ(arm["runs"].size(), 3u) << name;
    for (const Json& run : arm["runs"]) EXPECT_TRUE(run["curves"].contains("loss")) << name;
  }
  const Json fault = ArmNamed(picture, "fault");
  EXPECT_EQ(fault["changes"], Json::parse(R"([["optimizer.lr", "0.1", "1.5"]])"));
  EXPECT_EQ(fault["faults"], Json::array({"hot: recipe.high_lr (factor 15.0)"}));
  EXPECT_EQ(fault["command"], "trainwreck run scenarios/nan/test.yaml --arm fault --seed ");
  EXPECT_EQ(fault["runs"][0]["events"][0][2], "fired");
}

TEST(PictureTest, ALossThatTurnsNanIsNanAtItsStep) {
  trainwreck::testing::Bench bench;
  const Json curve = ArmNamed(Painted(bench), "fault")["runs"][0]["curves"]["loss"];
  // The ends of what is equal: four of a loss that stays, then of what is not finite.
  EXPECT_EQ(curve.dump(), R"([0,[4,1,14],[4,4,"nan","nan"]])");
}

TEST(PictureTest, ACheckHasItsWindowAndItsThreshold) {
  trainwreck::testing::Bench bench;
  const Json picture = Painted(bench);
  const Json window = ArmNamed(picture, "fault")["sketches"]["blows_up"][0];
  EXPECT_EQ(window[0], "loss");
  EXPECT_EQ(window[5], 0);
  EXPECT_EQ(window[6], 11);
  const Json threshold = ArmNamed(picture, "lower_lr")["sketches"]["quality"][0];
  EXPECT_EQ(threshold[7], "<=");
  EXPECT_NEAR(threshold[8][2][0].get<double>(), 1.25 * 1.3158, 0.01);
}

TEST(PictureTest, BytesAreBoundedAndWhatFormulasReadComesFirst) {
  trainwreck::testing::Bench bench;
  bench.meddle = [](const trainwreck::Run&, RunResult& run) { AddNoise(run, 40, 300); };
  for (const std::size_t bytes : {8'000u, 30'000u, 200'000u}) {
    bench.MakeRuns();
    const std::string text = PictureOf(bench.results, bench.target, {bytes});
    EXPECT_LE(text.size(), bytes * 3 / 2 + 6'000) << "six arms' frames are beside the curves";
    const Json picture = ParseJson(text);
    EXPECT_TRUE(ArmNamed(picture, "fault")["runs"][2]["curves"].contains("loss")) << bytes;
    EXPECT_FALSE(picture["left_out"].empty()) << bytes;
  }
}

TEST(PictureTest, ForeignTextsAreClean) {
  trainwreck::testing::Bench bench;
  bench.In("fault", -1, [](RunResult& run) {
    trainwreck::testing::AddEvent(run, "exited", 3, {{"why", "</script>\x1b[31m\u202e"}});
    run.trace.series[{"x{</script>\u202e}", 0}].Set(0, 1);
  });
  bench.MakeRuns();
  const std::string text = PictureOf(bench.results, bench.target, {100'000});
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, Not(HasSubstr("\u202e")));
  EXPECT_THAT(text, Not(HasSubstr("\n")));
  EXPECT_THAT(text, HasSubstr("exited"));
}

TEST(PictureTest, AFileGivesEachVerdictItsOwn) {
  const std::string path = ::testing::TempDir() + "/pictures.jsonl";
  std::vector<Verdict> verdicts(3);
  verdicts[0].case_name = "a";
  verdicts[0].picture = R"({"case":"a"})";
  verdicts[1].case_name = "skipped";
  verdicts[2].case_name = "c";
  verdicts[2].picture = R"({"case":"c"})";
  std::ofstream(path) << PicturesText(verdicts);
  std::vector<Verdict> read(3);
  for (int i = 0; i < 3; ++i) read[i].case_name = verdicts[i].case_name;
  EXPECT_TRUE(ReadPictures(path, read));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(read[i].picture, verdicts[i].picture);
  // A file of other verdicts, or a damaged one, gives nothing.
  for (Verdict& verdict : read) verdict.picture.clear();
  read[0].case_name = "b";
  std::ofstream(path) << R"({"case":"a"})"
                      << "\n[[[\n";
  EXPECT_FALSE(ReadPictures(path, read));
  for (const Verdict& verdict : read) EXPECT_EQ(verdict.picture, "");
  EXPECT_FALSE(ReadPictures(path + ".missing", read));
}

}  // namespace picture_test
}  // namespace trainwreck
