// `check` over traces as people have them: written by Python, cut short, copied in part; and its
// output for programs.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "harness/cli/tests/cli_testing.h"

namespace trainwreck {
namespace {

using Json = nlohmann::json;

class CheckTest : public testing::Test {
 protected:
  // Steps of a foreign training loop, a loss a word; then whatever else the trace has.
  void WriteTrace(const std::string& folder, const std::vector<std::string>& losses,
                  const std::string& rest, int rank = 0) const {
    std::string text;
    for (std::size_t step = 0; step < losses.size(); ++step) {
      text += R"({"t": "step", "step": )" + std::to_string(step) + R"(, "loss": )" + losses[step] +
              "}\n";
    }
    files.Write(folder + "/rank" + std::to_string(rank) + ".jsonl", text + rest);
  }

  int Check(const std::string& trace, const std::string& formula,
            const std::string& options = "") const {
    return files.Call("check " + trace + " --assert '" + formula + "' " + options).status;
  }

  const std::string end_of_3 = "{\"t\": \"end\", \"why\": \"completed\", \"step\": 3}\n";
  CliFolder files;
};

TEST_F(CheckTest, BareNumbersOfPythonAreRead) {
  WriteTrace("python", {"4.0", "NaN", "Infinity"}, end_of_3);
  EXPECT_EQ(Check("python", "never nonfinite(loss)"), 1);
  EXPECT_EQ(Check("python", "eventually loss > 1000"), 0);
  WriteTrace("windows", {"4.0", "-Infinity", "2.0"}, "\r\n" + end_of_3);
  EXPECT_EQ(Check("windows", "eventually loss < -1000"), 0);
}

TEST_F(CheckTest, WithoutAnEndTheRunMayGoOn) {
  WriteTrace("running", {"4", "3", "2"}, "");
  EXPECT_EQ(Check("running", "never nonfinite(loss)"), 5);
  EXPECT_EQ(Check("running", "never loss < 3"), 1);  // it did already
  EXPECT_EQ(Check("running", "always[:2] loss < 5"), 0);
  EXPECT_EQ(Check("running", "eventually[:50] loss < 1"), 5);  // it may come to step 50
  EXPECT_EQ(Check("running", "not exited(signal=9)"), 5);
  EXPECT_EQ(Check("running", "count(loss[:]) <= 3"), 5);
  // Where its end is, nobody knows.
  const Called from_end = files.Call("check running --assert 'mean(loss[-2:]) < 3'");
  EXPECT_EQ(from_end.status, 5);
  EXPECT_TRUE(Contains(from_end.out, "planned end")) << from_end.output();
  EXPECT_TRUE(Contains(from_end.err, "--finished")) << from_end.output();
  EXPECT_EQ(Check("running", "max(loss[:-1]) > 3"), 5);

  EXPECT_EQ(Check("running", "never nonfinite(loss)", "--finished"), 0);
  EXPECT_EQ(Check("running", "mean(loss[-2:]) < 3", "--finished"), 0);
  EXPECT_EQ(Check("running", "never nonfinite(loss)", "--steps 3"), 0);
  EXPECT_EQ(Check("running", "never nonfinite(loss)", "--steps 4"), 5);
  EXPECT_EQ(Check("running", "not exited(signal=9)", "--steps 3"), 5);
  EXPECT_EQ(Check("running", "at_end loss < 3", "--steps 2"), 2);
  WriteTrace("ended", {"4", "3", "2"}, end_of_3);
  EXPECT_EQ(Check("ended", "never nonfinite(loss)"), 0);
  EXPECT_EQ(Check("ended", "not exited(signal=9)"), 0);
  // It says that it made 30 steps, 27 are not here.
  WriteTrace("short", {"4", "3", "2"}, "{\"t\":\"end\",\"why\":\"completed\",\"step\":30}\n");
  EXPECT_EQ(Check("short", "never nonfinite(loss)"), 5);
  // An end, and a start after it.
  WriteTrace("resumed", {"4", "3", "2"}, end_of_3 + "{\"t\":\"start\",\"rank\":0}\n");
  EXPECT_EQ(Check("resumed", "never nonfinite(loss)"), 5);
}

TEST_F(CheckTest, WhatCouldNotBeReadIsUnknown) {
  for (const char* bad : {"hello\n", "{\"t\":\"step\",\"step\":1,\"loss\":null}\n",
                          "\x1f\x8b\x08\n", "{\"t\":\"event\",\"ev"}) {
    WriteTrace("bad", {"4", "3", "2"}, end_of_3 + bad);
    EXPECT_EQ(Check("bad", "not exited(signal=9)"), 5) << bad;
    EXPECT_EQ(Check("bad", "eventually loss < 3"), 0) << bad;  // it was seen
  }
  const Called called = files.Call("check bad --assert 'not exited(signal=9)'");
  EXPECT_TRUE(Contains(called.err, "records are lost")) << called.output();
  // The lost line was a step.
  files.Write("gap/rank0.jsonl",
              "{\"t\":\"step\",\"step\":0,\"loss\":4}\n{\"t\":\"step\",\"step\":1,\"loss\":na}\n"
              "{\"t\":\"step\",\"step\":2,\"loss\":4}\n" +
                  end_of_3);
  EXPECT_EQ(Check("gap", "never nonfinite(loss)"), 5);
  files.Write("packed/rank0.jsonl.gz", "x");
  EXPECT_TRUE(Contains(files.Call("check packed --assert 'at_end loss < 3'").err, "unpack"));
}

TEST_F(CheckTest, AMissingRankIsLost) {
  WriteTrace("ranks", {"4", "3", "2"}, end_of_3, 0);
  WriteTrace("ranks", {"4", "3", "2"}, end_of_3, 2);
  const Called called = files.Call("check ranks --assert 'all_ranks(never nonfinite(loss))'");
  EXPECT_EQ(called.status, 5) << called.output();
  EXPECT_TRUE(Contains(called.err, "rank1.jsonl is missing")) << called.err;
  EXPECT_EQ(Check("ranks", "never nonfinite(loss@2)", "--finished"), 0);
  EXPECT_EQ(Check("ranks", "not exited(rank=1)", "--finished"), 5);
}

TEST_F(CheckTest, AStoredRunThatWasCopiedInPart) {
  files.WritePassing("ok");
  ASSERT_EQ(files.Call("run --keep all --full --history none --output out").status, 0);
  const std::string run = "out/fake/ok/control/0";
  EXPECT_EQ(Check(run, "never nonfinite(loss)"), 0);
  EXPECT_EQ(Check(run, "not exited(signal=9)"), 0);
  EXPECT_EQ(Check(run, "never nonfinite(loss)", "--finished"), 2);  // run.json says so
  files.Shell("cp -r " + run + " cut; sed -i '$d' cut/rank0.jsonl");
  const Called cut = files.Call("check cut --assert 'not exited(signal=9)'");
  EXPECT_EQ(cut.status, 5) << cut.output();
  EXPECT_TRUE(Contains(cut.err, "cut off")) << cut.err;
  files.Shell("cp -r " + run + " gone; rm gone/rank0.jsonl");
  EXPECT_EQ(Check("gone", "never nonfinite(loss)"), 5);
  files.Shell("cp -r " + run + " unwatched; rm unwatched/launcher.jsonl");
  EXPECT_EQ(Check("unwatched", "not exited(signal=9)"), 5);
  // One that was stopped once all was decided has not said the rest.
  ASSERT_EQ(files.Call("run --keep all --history none --output early --set fake.step_ms=40").status,
            0);
  const std::string early = "early/fake/ok/fault/0";
  if (Contains(files.Read(early + "/run.json"), "\"end\": \"decided\"")) {
    EXPECT_EQ(Check(early, "not leaked"), 5);
  }
}

TEST_F(CheckTest, WritesJsonInFullPrecision) {
  WriteTrace("trace", {"0.1", "0.30000000000000004", "NaN"}, end_of_3);
  const Called called = files.Call(
      "check trace --format json --assert 'loss[1] < 1' --assert 'always loss < 1' "
      "--assert 'never nonfinite(loss)'");
  EXPECT_EQ(called.status, 1);
  const Json json = Json::parse(called.out);
  EXPECT_EQ(json.at("schema"), "trainwreck/check");
  EXPECT_EQ(json.at("version"), 1);
  EXPECT_EQ(json.at("finished"), true);
  EXPECT_EQ(json.at("planned_steps"), 3);
  EXPECT_TRUE(json.at("lost_ranks").empty());
  const Json& readings = json.at("readings");
  ASSERT_EQ(readings.size(), 3u);
  EXPECT_EQ(readings[0].at("truth"), "true");
  EXPECT_EQ(readings[0].at("margins").at("octaves").at("lo"), 1.7369655941662061);
  EXPECT_EQ(readings[1].at("truth"), "unknown");
  EXPECT_EQ(readings[1].at("margins").at("octaves").at("lo"), "-inf");
  EXPECT_EQ(readings[2].at("truth"), "false");
  EXPECT_EQ(readings[2].at("step"), 2);
  EXPECT_FALSE(readings[0].contains("steps"));
}

TEST_F(CheckTest, SaysWhatHoldsAtEachStep) {
  WriteTrace("trace", {"4", "1", "2"}, end_of_3);
  const Called called = files.Call(
      "check trace --all-steps --format json --assert 'loss < 3' --assert 'always loss < 3'");
  EXPECT_EQ(called.status, 1) << called.output();  // at step 0
  const Json readings = Json::parse(called.out).at("readings");
  const Json& bare = readings.at(0).at("steps");
  ASSERT_EQ(bare.size(), 3u);
  EXPECT_EQ(bare[0].at("truth"), "false");
  EXPECT_EQ(bare[1].at("truth"), "true");
  EXPECT_EQ(bare[1].at("margins").at("octaves").at("lo"), 1.5849625007211561);
  const Json& always = readings.at(1).at("steps");
  EXPECT_EQ(always.at(0).at("truth"), "false");
  EXPECT_EQ(always.at(1).at("truth"), "true");  // from there on
  EXPECT_EQ(always.at(1).at("margins").at("octaves").at("lo"), 0.5849625007211562);
  const Called text = files.Call("check trace --all-steps --assert 'loss < 5'");
  EXPECT_EQ(text.status, 0);
  EXPECT_TRUE(Contains(text.out, "step 1 true, margin +2.32")) << text.out;
  EXPECT_EQ(files.Call("check trace --assert 'loss < 5'").status, 2);  // at which step?
}

}  // namespace
}  // namespace trainwreck
