// Runs that need not go on, since no later step can change their claims.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/judge/test_support.h"
#include "harness/judge/verdict.h"

namespace trainwreck {
namespace decided_test {

using testing::AddEvent;
using testing::Bench;
using testing::EndingWith;
using testing::ExplodingLoss;
using testing::LearningLoss;
using testing::MakeCheck;
using testing::Outcome;
using testing::WithLoss;

class DecidedTest : public ::testing::Test {
 protected:
  // What is known after `steps` steps of the arm's first run.
  bool Decided(const std::string& arm_name, int steps) {
    bench_.MakeRuns();
    for (const ArmPlan& arm : bench_.cases[0].arms) {
      if (arm.name != arm_name) continue;
      RunTrace prefix = bench_.results.runs[arm_name][0].trace;
      prefix.finished = false;
      for (auto& [key, series] : prefix.series) {
        series.values.resize(steps);
        series.present.resize(steps);
      }
      prefix.time_s[0].values.resize(steps);
      prefix.time_s[0].present.resize(steps);
      std::map<std::string, const RunTrace*> finished;
      if (control_is_finished_) finished["control"] = &bench_.results.runs["control"][0].trace;
      trainwreck::Run run = arm.runs[0];
      change_run_(run);
      return IsDecided(bench_.cases[0], run, prefix, finished, bench_.target);
    }
    throw std::runtime_error("no arm " + arm_name);
  }
  Bench bench_;
  bool control_is_finished_ = true;
  std::function<void(trainwreck::Run&)> change_run_ = [](trainwreck::Run&) {};
};

TEST_F(DecidedTest, OnceTheSymptomIsSeen) {
  EXPECT_FALSE(Decided("fault", 5));
  EXPECT_TRUE(Decided("fault", 6));
  EXPECT_FALSE(Decided("decay", 5));
  EXPECT_TRUE(Decided("decay", 6));
}

TEST_F(DecidedTest, OnceTheSymptomCannotComeAnyMore) {
  bench_.In("fault", -1, WithLoss(LearningLoss(1)));
  EXPECT_FALSE(Decided("fault", 10));
  EXPECT_TRUE(Decided("fault", 11));
}

TEST_F(DecidedTest, NeverForControlAndRemedies) {
  EXPECT_FALSE(Decided("control", 20));
  EXPECT_FALSE(Decided("lower_lr", 20));
}

TEST_F(DecidedTest, NeverWhereAStepMayBeRunAgain) {
  change_run_ = [](trainwreck::Run& run) { run.policy.max_restarts = 1; };
  EXPECT_FALSE(Decided("fault", 6));
  change_run_ = [](trainwreck::Run& run) { run.phases = {{"train", 5}, {"resume", std::nullopt}}; };
  EXPECT_FALSE(Decided("fault", 6));
}

TEST_F(DecidedTest, NotBeforeTheFaultFired) {
  bench_.In("fault", -1, [](RunResult& run) { run.trace.events.clear(); });
  EXPECT_FALSE(Decided("fault", 12));
}

TEST_F(DecidedTest, NotBeforeTheArmsItIsComparedWithAreFinished) {
  bench_.scenario().symptoms[0] =
      MakeCheck("worse", "mean(loss[3:5]) > 1.01 * control.mean(loss[3:5])");
  control_is_finished_ = false;
  EXPECT_FALSE(Decided("fault", 12));
  control_is_finished_ = true;
  EXPECT_TRUE(Decided("fault", 12));
}

TEST_F(DecidedTest, NotWhenAnotherArmIsComparedWithIt) {
  bench_.scenario().quality = MakeCheck("quality", "mean(loss[-5:]) < 100 + fault.mean(loss[:2])");
  EXPECT_FALSE(Decided("fault", 12));
}

TEST_F(DecidedTest, AnEarlyStopChangesNoVerdict) {
  bench_.MakeRuns();
  for (const char* arm : {"fault", "decay"}) {
    for (auto& [seed, run] : bench_.results.runs[arm]) {
      std::vector<double> loss = ExplodingLoss(5);
      loss.resize(6);
      WithLoss(loss)(run);
      run.end = RunEnd::kDecided;
    }
  }
  const Verdict verdict = Judge(bench_.results, bench_.target);
  EXPECT_EQ(Outcome(verdict), "pass") << verdict.reason;
}

TEST_F(DecidedTest, WhatAStoppedRunHasNotSaidIsUnknown) {
  bench_.scenario().symptoms.push_back(MakeCheck("goes_on", "not stalled(waiting_rank=0)"));
  bench_.scenario().remedies[0].resolves = {"blows_up"};
  bench_.In("control", -1, [](RunResult& run) {
    AddEvent(run, "stalled", 3, {{"waiting_rank", 0}});
  });
  EXPECT_EQ(Outcome(bench_.Judged()), "pass");
  bench_.In("fault", -1, EndingWith(RunEnd::kDecided));
  EXPECT_EQ(Outcome(bench_.Judged()), "inconclusive/undecided");
}

}  // namespace decided_test
}  // namespace trainwreck
