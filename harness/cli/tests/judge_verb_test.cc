// `judge` over kept runs: changed claims get new verdicts without training, and what was not
// trained as it is asked for now is missing, never passed.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "harness/cli/tests/cli_testing.h"

namespace trainwreck {
namespace {

using Json = nlohmann::json;

class JudgeVerbTest : public testing::Test {
 protected:
  void RunAll(const std::string& options = "") const {
    ASSERT_EQ(files.Call("run --keep all --full --history none --output out " + options).status, 0);
  }

  // The only verdict of the last judgement.
  Json Verdict() const {
    return Json::parse(files.Read("out/judged/verdicts.json")).at("verdicts").at(0);
  }

  // Changes a text of the scenario.
  void Change(const std::string& from, const std::string& to) const {
    std::string text = files.Read(kFile);
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    files.Write(kFile, text.replace(at, from.size(), to));
  }

  static constexpr const char* kFile = "scenarios/fake/ok.yaml";
  CliFolder files;
};

TEST_F(JudgeVerbTest, ChangedClaimsAreReadOverKeptRuns) {
  files.WritePassing("ok");
  RunAll();
  const std::string before = files.Read("out/verdicts.json");
  Called called = files.Call("judge out", "TRAINWRECK_TARGET=/nowhere");
  EXPECT_EQ(called.status, 0) << called.output();
  EXPECT_TRUE(Contains(called.out, "PASS")) << called.out;
  EXPECT_EQ(Verdict().at("verdict"), "pass");
  Change("loss > 1", "loss > 100");
  called = files.Call("judge out --report markdown=judged.md");
  EXPECT_EQ(called.status, 1) << called.output();
  EXPECT_EQ(Verdict().at("class"), "symptom_absent");
  EXPECT_TRUE(Contains(files.Read("judged.md"), "symptom_absent"));
  EXPECT_EQ(files.Read("out/verdicts.json"), before);  // what was said then stays
  Change("loss > 100", "loss > 1");
  files.Write(kFile, files.Read(kFile) + "quality: at_end loss < 0.0001\n");
  EXPECT_EQ(files.Call("judge out").status, 1);
  EXPECT_EQ(Verdict().at("class"), "remedy_costly");
  Change("quality: at_end loss <", "quality: at_end los <");
  EXPECT_EQ(files.Call("judge out").status, 3);
}

TEST_F(JudgeVerbTest, WhatWasNotTrainedIsMissing) {
  struct Example {
    const char* from;
    const char* to;
    const char* reason;
  };
  for (const Example& example :
       {Example{"decoys:", "  fastest: {scale: {optimizer.lr: 80}}\ndecoys:", "was not made"},
        Example{"{scale: {optimizer.lr: 50}}", "{scale: {optimizer.lr: 60}}", "optimizer.lr was"},
        Example{"factor: 0.01", "factor: 0.03", "optimizer.lr was"},
        Example{"steps: 20", "steps: 10", "steps was 20, it is 10 now"},
        Example{"seeds: 2", "seeds: 3", "was not made"},
        // Tolerance for one seed, which is the one that nobody has seen.
        Example{"seeds: 2", "seeds: {count: 3, require: 2}", "was not made"},
        Example{"seeds: 2", "phases: [{name: a, until: 5}, {name: b}]\nseeds: 2",
                "planned otherwise"}}) {
    files.WritePassing("ok");
    RunAll();
    Change(example.from, example.to);
    const Called called = files.Call("judge out");
    EXPECT_EQ(called.status, 5) << example.to << called.output();
    EXPECT_EQ(Verdict().at("verdict"), "inconclusive") << example.to;
    const std::string reason = Verdict().at("reason");
    EXPECT_TRUE(Contains(reason, example.reason)) << example.to << ": " << reason;
    EXPECT_TRUE(Contains(called.err, "missing")) << called.err;
  }
}

// A run is known by what was trained: names of arms may change, and change places.
TEST_F(JudgeVerbTest, RunsOfRenamedArmsAreFoundByWhatTheyTrained) {
  files.WritePassing("ok");
  RunAll();
  Change("  faster:", "  much_faster:");
  Called called = files.Call("judge out");
  EXPECT_EQ(called.status, 0) << called.output();
  Change("much_faster:", "slightly_faster:");
  Change("  slightly_faster: {scale: {optimizer.lr: 1.5}}",
         "  faster: {scale: {optimizer.lr: 1.5}}");
  called = files.Call("judge out");
  EXPECT_EQ(called.status, 0) << called.output();
  // The remedy is judged by the run of the remedy, now under the name of the decoy.
  const Json arms = Verdict().at("arms");
  bool is_seen = false;
  for (const Json& arm : arms) is_seen = is_seen || arm.at("arm") == "slightly_faster";
  EXPECT_TRUE(is_seen) << arms;
  EXPECT_TRUE(Contains(files.Read("out/judged/verdicts.json"), "fake/ok/faster/0"));
  // What nobody trained is found under no name.
  Change("optimizer.lr: 1.5", "optimizer.lr: 1.6");
  called = files.Call("judge out");
  EXPECT_EQ(called.status, 5) << called.output();
  EXPECT_TRUE(Contains(called.err, "faster/0, faster/1: optimizer.lr was")) << called.err;
}

TEST_F(JudgeVerbTest, WhatIsGoneOrDamagedIsMissing) {
  files.WritePassing("ok");
  RunAll();
  files.Shell("sed -i '$d' out/fake/ok/control/1/rank0.jsonl");
  Called called = files.Call("judge out");
  EXPECT_EQ(called.status, 5) << called.output();
  EXPECT_TRUE(Contains(called.err, "control/1: it is damaged")) << called.err;
  files.Shell("rm -r out/fake/ok/fault");
  called = files.Call("judge out");
  EXPECT_EQ(called.status, 5) << called.output();
  EXPECT_TRUE(Contains(called.err, "fault/0, fault/1: it was not made then, or not kept"));
  // An expectation does not turn "nobody has seen it" into a pass.
  files.Write(kFile,
              files.Read(kFile) + "expect: {verdict: inconclusive, class: undecided, reason: x}\n");
  EXPECT_EQ(files.Call("judge out").status, 5);
  EXPECT_EQ(Verdict().at("verdict"), "inconclusive");
}

TEST_F(JudgeVerbTest, JudgesWhatTheInvocationHad) {
  files.WritePassing("ok");
  RunAll();
  files.WritePassing("other");
  EXPECT_EQ(files.Call("judge out").status, 0);  // `other` has no runs there
  EXPECT_EQ(files.Call("judge out fake/other").status, 5);
  EXPECT_EQ(files.Call("judge nowhere").status, 2);
  files.Shell("rm scenarios/fake/ok.yaml");
  EXPECT_EQ(files.Call("judge out").status, 4);
  files.WritePassing("ok");
  RunAll("--set optimizer.lr=0.21");
  EXPECT_EQ(files.Call("judge out fake/ok").status, 5);  // made with another recipe
  EXPECT_EQ(files.Call("judge out fake/ok --set optimizer.lr=0.21").status, 0);
}

TEST_F(JudgeVerbTest, EndsStayAsTheyWere) {
  files.WritePassing("ok");
  files.Call("run --keep all --full --history none --output out --set fake.mode=exits_7");
  const Called called = files.Call("judge out --set fake.mode=exits_7");
  EXPECT_EQ(called.status, 7) << called.output();
  EXPECT_EQ(Verdict().at("verdict"), "error");
  EXPECT_EQ(Verdict().at("class"), "crash");
}

}  // namespace
}  // namespace trainwreck
