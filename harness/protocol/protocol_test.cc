#include <gtest/gtest.h>
#include <stdlib.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "harness/protocol/description.h"
#include "harness/protocol/digest.h"
#include "harness/protocol/plan.h"
#include "harness/protocol/trace.h"
#include "harness/protocol/trace_reader.h"

namespace trainwreck {
namespace protocol_test {

std::string TemporaryFolder() {
  std::string folder = testing::TempDir() + "/trace.XXXXXX";
  return mkdtemp(folder.data());
}

TEST(Json, NonFiniteNumbersAreStrings) {
  EXPECT_EQ(EncodeNumber(NAN), "nan");
  EXPECT_EQ(EncodeNumber(-INFINITY), "-inf");
  EXPECT_EQ(EncodeNumber(0.5), 0.5);
  EXPECT_TRUE(std::isnan(*DecodeNumber("nan")));
  EXPECT_EQ(*DecodeNumber("inf"), INFINITY);
  EXPECT_FALSE(DecodeNumber("infinity").has_value());
}

TEST(Trigger, ActsExactlyWhenSaid) {
  const Trigger always;
  EXPECT_TRUE(always.Matches(0, 0, "train", 0, 1));
  const Trigger at{.at = 5};
  EXPECT_TRUE(at.Matches(5, 0, "train", 0, 1));
  EXPECT_FALSE(at.Matches(4, 0, "train", 0, 1));
  EXPECT_FALSE(at.Matches(6, 0, "train", 0, 1));
  const Trigger range{.from = 4, .to = 10, .every = 3};
  std::vector<int> acted;
  for (int step = 0; step < 20; ++step) {
    if (range.Matches(step, 0, "train", 0, 1)) acted.push_back(step);
  }
  EXPECT_EQ(acted, (std::vector<int>{4, 7, 10}));
  const Trigger narrow{.ranks = {1}, .phase = "resume", .attempt = 0};
  EXPECT_TRUE(narrow.Matches(0, 1, "resume", 0, 1));
  EXPECT_FALSE(narrow.Matches(0, 0, "resume", 0, 1));
  EXPECT_FALSE(narrow.Matches(0, 1, "train", 0, 1));
  EXPECT_FALSE(narrow.Matches(0, 1, "resume", 1, 1));
}

TEST(Trigger, ProbabilityIsDrawnFromTheSeed) {
  const Trigger half{.probability = 0.5};
  int acted = 0;
  for (int step = 0; step < 1000; ++step) {
    const bool acts = half.Matches(step, 0, "train", 0, 7);
    EXPECT_EQ(acts, half.Matches(step, 1, "train", 0, 7)) << "all ranks draw alike";
    acted += acts;
  }
  EXPECT_GT(acted, 400);
  EXPECT_LT(acted, 600);
}

TEST(Plan, SurvivesTheRoundTrip) {
  Plan plan;
  plan.run = "nan/x/fault/3";
  plan.seed = 18446744073709551615ULL;
  plan.recipe = {{"optimizer.lr", 0.1}, {"model.kind", "gpt"}};
  plan.faults = {{"bad", "data.corrupt_sample", {{"value", "nan"}}, {.at = 5, .ranks = {0, 1}}}};
  plan.until = 50;
  plan.resume = true;
  plan.record = {"updated{head.*}"};
  const Plan back = PlanFromJson(Json::parse(ToJson(plan).dump()));
  EXPECT_EQ(ToJson(back), ToJson(plan));
  EXPECT_EQ(back.seed, plan.seed);
  EXPECT_EQ(*back.faults.at(0).trigger.at, 5);
}

TEST(Plan, NamesWhatIsWrong) {
  try {
    PlanFromJson(Json::parse(R"({"protocol":1,"run":"x","recipe":{}})"));
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "plan: missing field 'seed'");
  }
  EXPECT_THROW(PlanFromJson(Json::parse(R"({"protocol":9})")), std::runtime_error);
}

TEST(Description, SurvivesTheRoundTripAndChecksValues) {
  TargetDescription description;
  description.name = "t";
  description.recipe = {
      {.name = "lr", .type = ValueType::kNumber, .default_value = 0.1, .min = 0.0, .doc = "d"},
      {.name = "kind", .type = ValueType::kString, .default_value = "a", .choices = {"a", "b"}}};
  description.signals = {{.name = "loss", .unit = "nat", .scale = Scale::kLog}};
  description.faults = {{.name = "recipe.high_lr",
                         .params = {{.name = "factor"}},
                         .amends = {{"lr", Amendment::Op::kScale, "factor", nullptr}},
                         .hooks = {"rate"}}};
  AddHarnessVocabulary(description);
  const TargetDescription back = DescriptionFromJson(Json::parse(ToJson(description).dump()));
  EXPECT_EQ(ToJson(back), ToJson(description));
  EXPECT_TRUE(back.FindFault("recipe.high_lr")->params[0].default_value.is_null());
  EXPECT_EQ(back.FindFault("recipe.high_lr")->hooks, std::vector<std::string>{"rate"});
  EXPECT_NE(back.FindEvent("stalled"), nullptr);
  EXPECT_EQ(CheckValue(*back.FindRecipeKey("lr"), 0.5), "");
  EXPECT_EQ(CheckValue(*back.FindRecipeKey("lr"), -1), "must be >= 0");
  EXPECT_EQ(CheckValue(*back.FindRecipeKey("lr"), "x"), "must be a number");
  EXPECT_EQ(CheckValue(*back.FindRecipeKey("kind"), "c"), "must be one of a, b");
}

TEST(Description, RefusesWhatIsNone) {
  EXPECT_THROW(DescriptionFromJson(Json::parse("[]")), std::runtime_error);
  EXPECT_THROW(DescriptionFromJson(Json::parse(R"({"protocol":2})")), std::runtime_error);
  EXPECT_THROW(
      DescriptionFromJson(Json::parse(R"({"protocol":1,"recipe":[{"name":"x","type":"?"}]})")),
      std::runtime_error);
}

TEST(Trace, ReadsWhatWasWritten) {
  const std::string folder = TemporaryFolder();
  TraceReader reader(folder, 2, 10);
  EXPECT_FALSE(reader.Poll());
  {
    TraceWriter writer(folder + "/rank0.jsonl");
    writer.Write({{"t", "step"}, {"step", 0}, {"time", 0.1}, {"loss", EncodeNumber(NAN)}});
    writer.Write({{"t", "step"}, {"step", 1}, {"time", 0.2}, {"loss", 4.0}, {"n{a.b}", 3}});
    writer.Write({{"t", "collective"}, {"step", 1}, {"call", 7}, {"op", "all_reduce"}});
    writer.Write({{"t", "event"}, {"event", "fired"}, {"step", 1}, {"id", "x"}});
    writer.Write({{"t", "end"}, {"why", "completed"}, {"step", 2}});
  }
  EXPECT_TRUE(reader.Poll());
  EXPECT_FALSE(reader.Poll(true));
  const RunTrace& trace = reader.trace();
  EXPECT_TRUE(trace.finished);
  EXPECT_TRUE(std::isnan(trace.Find("loss", 0)->values[0]));
  EXPECT_EQ(trace.Find("loss", 0)->values[1], 4.0);
  EXPECT_FALSE(trace.Find("n{a.b}", 0)->Has(0));
  EXPECT_EQ(trace.Find("loss", 1), nullptr);
  EXPECT_EQ(trace.last_step(0), 1);
  EXPECT_EQ(trace.last_step(1), -1);
  EXPECT_EQ(trace.events.at(0).name, "fired");
  EXPECT_EQ(trace.events.at(0).rank, 0);
  EXPECT_EQ(trace.events.at(1).name, "ended");
  EXPECT_EQ(trace.collectives.at(0).at(0).call, 7);
  EXPECT_EQ(trace.end_why.at(0), "completed");
  EXPECT_TRUE(reader.problems().empty());
}

TEST(Trace, LaterRecordsOfAStepCount) {
  const std::string folder = TemporaryFolder();
  TraceWriter writer(folder + "/rank0.jsonl");
  writer.Write({{"t", "step"}, {"step", 3}, {"loss", 1.0}});
  writer.Write({{"t", "step"}, {"step", 3}, {"loss", 2.0}});
  TraceReader reader(folder, 1, 10);
  reader.Poll(true);
  EXPECT_EQ(reader.trace().Find("loss", 0)->values[3], 2.0);
}

// Both where a step is read fast and where it is not: the first record, and one with a text in it.
TEST(Trace, ReadsSignalsUnderTheNamesOfTheirRoles) {
  const std::string folder = TemporaryFolder();
  std::ofstream(folder + "/rank0.jsonl")
      << R"({"t": "roles", "signals": {"train_loss": "loss", "gnorm": "grad_norm", "x": "y"}})"
         "\n"
      << R"({"t": "step", "step": 0, "train_loss": 4, "gnorm{a}": 1, "x": 7})"
         "\n"
      << R"({"t": "step", "step": 1, "train_loss": 3, "gnorm{a}": 2, "x": 8})"
         "\n"
      << R"({"t": "step", "step": 2, "train_loss": 2, "gnorm{b}": 3, "x": 9})"
         "\n"
      << R"({"t": "step", "step": 1, "train_loss": 3, "gnorm{a}": 5, "x": 8})"
         "\n";
  TraceReader reader(folder, 1, 3);
  reader.Poll(/*last=*/true);
  EXPECT_TRUE(reader.problems().empty());
  const RunTrace& trace = reader.trace();
  ASSERT_NE(trace.Find("loss", 0), nullptr);
  EXPECT_EQ(trace.Find("loss", 0)->values, (std::vector<double>{4, 3, 2}));
  EXPECT_EQ(trace.Find("grad_norm{a}", 0)->values, (std::vector<double>{1, 5}));
  EXPECT_TRUE(trace.Find("grad_norm{b}", 0)->Has(2));
  EXPECT_EQ(trace.Find("train_loss", 0), nullptr);
  EXPECT_EQ(trace.Find("gnorm{a}", 0), nullptr);
  EXPECT_NE(trace.Find("x", 0), nullptr) << "'y' is no role";
  ASSERT_EQ(trace.events.size(), 1u);
  EXPECT_EQ(trace.events[0].name, "repeated_step");
}

// Records of one step with other signals are no second beginning.
TEST(Trace, TellsWhereARankBeganAnew) {
  for (const char* const space : {"", " "}) {  // some records take a shorter way
    const std::string folder = TemporaryFolder();
    const auto step = [&](int number, const std::string& signal) {
      return R"({"t":"step","step":)" + std::to_string(number) + ",\"" + signal + "\":" + space +
             "1}\n";
    };
    const std::string start = R"({"t":"start"})"
                              "\n";
    std::ofstream(folder + "/rank0.jsonl")
        << start << step(0, "loss") << step(0, "eval") << step(1, "loss") << start
        << step(1, "loss") << start << step(0, "loss") << step(1, "loss");
    std::ofstream(folder + "/rank1.jsonl") << step(0, "loss") << start << step(0, "loss");
    TraceReader reader(folder, 2, 10);
    reader.Poll(/*last=*/true);
    std::vector<int> ranks;
    for (const Event& event : reader.trace().events) {
      if (event.name == "began_anew") ranks.push_back(event.rank);
    }
    EXPECT_EQ(ranks, (std::vector<int>{0, 1}));
  }
}

TEST(Trace, GarbageIsReportedAndTheRestRead) {
  const std::string folder = TemporaryFolder();
  std::ofstream(folder + "/rank0.jsonl")
      << "{\"t\":\"step\",\"step\":0,\"loss\":1}\n"
      << "hello\n[1]\n{\"t\":\"step\",\"step\":-4}\n{\"t\":\"step\",\"step\":99}\n"
      << "{\"t\":\"what\"}\n{\"t\":\"step\",\"step\":1,\"loss\":\"high\"}\n"
      << "{\"t\":\"step\",\"step\":2,\"lo";  // torn: no problem
  TraceReader reader(folder, 1, 10);
  reader.Poll(true);
  ASSERT_EQ(reader.problems().size(), 6u);
  EXPECT_EQ(reader.problems()[0], "rank0.jsonl:2: not a JSON object");
  EXPECT_EQ(reader.problems()[3], "rank0.jsonl:5: step 99 is beyond the planned 10");
  EXPECT_EQ(reader.trace().Find("loss", 0)->values[0], 1.0);
  EXPECT_EQ(reader.trace().last_step(0), 1);
}

TEST(Trace, LimitsHold) {
  const std::string folder = TemporaryFolder();
  std::ofstream(folder + "/rank0.jsonl") << std::string(5000, 'x');
  TraceReader reader(folder, 1, 10, {.line_bytes = 1000, .file_bytes = 1 << 20});
  reader.Poll();
  ASSERT_EQ(reader.problems().size(), 1u);
  EXPECT_EQ(reader.problems()[0], "rank0.jsonl:1: the line is too long");
  std::ofstream(folder + "/rank1.jsonl") << std::string(5000, '\n');
  TraceReader small(folder, 2, 10, {.line_bytes = 9000, .file_bytes = 100});
  small.Poll(true);
  EXPECT_FALSE(small.problems().empty());
}

TEST(Trace, AFullDiskIsAnError) {
  TraceWriter writer("/dev/full");
  EXPECT_THROW(writer.Write({{"t", "step"}}), std::system_error);
}

TEST(Description, NamesEachEventAndFieldThatIsWritten) {
  EXPECT_NO_THROW(RequireDescribed("killed", {{"why", "a stall"}}, LauncherEvents()));
  EXPECT_THROW(RequireDescribed("kiled", {{"why", "a stall"}}, LauncherEvents()), std::logic_error);
  EXPECT_THROW(RequireDescribed("killed", {{"wy", "a stall"}}, LauncherEvents()), std::logic_error);
}

TEST(Digest, IsStableAndMixes) {
  EXPECT_EQ(DigestText("trainwreck"), DigestText("trainwreck"));
  EXPECT_NE(DigestText("ab"), DigestText("ba"));
  EXPECT_NE(Digest("a", 1), Digest("a", 2));
  EXPECT_EQ(DigestSignal(~std::uint64_t{0}), std::ldexp(1.0, 52) - 1);
}

}  // namespace protocol_test
}  // namespace trainwreck
