#include "harness/swarm/rules.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace trainwreck {
namespace {

// Two ranks and a supervisor; the fault `a` is aimed at rank 1 in step 2.
Run ARun(const std::string& fault) {
  Run run;
  run.ranks = 2;
  run.steps = 4;
  run.policy = {.max_restarts = 1, .seconds = 60};
  PlannedFault planned{.id = "a", .fault = fault};
  planned.trigger.at = 2;
  planned.trigger.ranks = {1};
  run.plan.faults = {planned};
  return run;
}

Event Fired(int rank) {
  return {.name = "fired",
          .step = 2,
          .rank = rank,
          .fields = {{"id", "a"}, {"rank", rank}, {"before", 1}, {"after", 2}}};
}

RunResult Completed(double last_loss = 0.5) {
  RunResult result;
  result.end = RunEnd::kCompleted;
  result.trace.planned_steps = 4;
  result.trace.world_size = 2;
  for (int rank = 0; rank < 2; ++rank) {
    for (int step = 0; step < 4; ++step) {
      result.trace.series[{"loss", rank}].Set(step, step < 3 ? 1.0 : last_loss);
      result.trace.time_s[rank].Set(step, 0.1 * step);
    }
  }
  return result;
}

std::vector<std::string> Rules(const std::vector<BrokenRule>& findings) {
  std::vector<std::string> rules;
  for (const BrokenRule& finding : findings) rules.push_back(finding.rule);
  return rules;
}

const std::vector<std::string> kNone;

TEST(RulesTest, APlanThatTheProgramRefusesIsNoFailure) {
  RunResult result = Completed();
  result.end = RunEnd::kFailed;
  result.exits = {{.rank = 0, .code = 1}};
  EXPECT_FALSE(IsRefused(result));  // it trained
  result.trace.end_why[0] = "bad_plan";
  EXPECT_TRUE(IsRefused(result));
  result.end = RunEnd::kStalled;  // a peer waits for it
  EXPECT_TRUE(IsRefused(result));
}

TEST(RulesTest, ARunMustEndWithinItsBudget) {
  const auto run = ARun("optimizer.nan_gradient");
  RunResult result = Completed();
  EXPECT_EQ(Rules(CheckEnd(run, result)), kNone);
  result.wall_seconds = 66;
  EXPECT_EQ(Rules(CheckEnd(run, result)), std::vector<std::string>{"ends"});
  result.wall_seconds = 1;
  result.end = RunEnd::kTimeout;
  result.detail = "over its budget of 60 s";
  EXPECT_EQ(Rules(CheckEnd(run, result)), std::vector<std::string>{"ends"});
}

TEST(RulesTest, ARunFailsOnlyByAFaultThatActed) {
  const auto run = ARun("optimizer.nan_gradient");
  RunResult result = Completed();
  result.end = RunEnd::kFailed;
  result.detail = "rank 1 exited with code 1";
  EXPECT_EQ(Rules(CheckEnd(run, result)), std::vector<std::string>{"ends"});
  result.trace.events = {Fired(1)};
  EXPECT_EQ(Rules(CheckEnd(run, result)), kNone);
}

TEST(RulesTest, OnlyGlooMayAbortAndOnlyWhereCollectivesDoNotMatch) {
  RunResult result = Completed();
  result.end = RunEnd::kFailed;
  result.detail = "rank 0 was killed by signal 6";
  result.exits = {{.rank = 0, .signal = SIGABRT, .last_words = "'gloo::EnforceNotMet'"}};
  result.trace.events = {Fired(1)};
  EXPECT_EQ(Rules(CheckEnd(ARun("collective.skip"), result)), kNone);
  auto on_all_ranks = ARun("model.flip_bit");
  on_all_ranks.plan.faults[0].trigger.ranks.clear();
  EXPECT_EQ(Rules(CheckEnd(on_all_ranks, result)), std::vector<std::string>{"ends"});
  EXPECT_EQ(Rules(CheckEnd(ARun("model.flip_bit"), result)), kNone);
  result.exits[0].last_words = "free(): invalid pointer";
  EXPECT_EQ(Rules(CheckEnd(ARun("collective.skip"), result)), std::vector<std::string>{"ends"});
  result.exits[0].signal = SIGSEGV;
  EXPECT_EQ(Rules(CheckEnd(ARun("collective.skip"), result)), std::vector<std::string>{"ends"});
}

TEST(RulesTest, ProcessesAndFilesMustNotBeLeft) {
  RunResult result = Completed();
  EXPECT_EQ(Rules(CheckLeftBehind(result, {})), kNone);
  EXPECT_EQ(CheckLeftBehind(result, {.processes = {17}}).size(), 1u);
  EXPECT_EQ(CheckLeftBehind(result, {.files = {"runs/core"}}).size(), 1u);
  result.trace.events = {{.name = "leaked", .fields = {{"command", "sleep"}}}};
  EXPECT_EQ(Rules(CheckLeftBehind(result, {})), std::vector<std::string>{"leaves_nothing"});
}

TEST(RulesTest, OnlyARankWithAFaultMayBeBlamed) {
  const auto run = ARun("process.sleep");
  RunResult result = Completed();
  result.trace.events = {Fired(1), {.name = "stalled", .fields = {{"lagging_rank", 1}}}};
  EXPECT_EQ(Rules(CheckBlame(run, result)), kNone);
  result.trace.events[1].fields["lagging_rank"] = 0;
  EXPECT_EQ(Rules(CheckBlame(run, result)), std::vector<std::string>{"blames_no_healthy_rank"});
  result.trace.events = {Fired(1), {.name = "restarted", .fields = {{"dead_rank", 0}}}};
  EXPECT_EQ(Rules(CheckBlame(run, result)), std::vector<std::string>{"blames_no_healthy_rank"});
}

TEST(RulesTest, AnAlarmNeedsAFault) {
  const auto run = ARun("process.sleep");
  RunResult result = Completed();
  result.trace.events = {{.name = "desync", .rank = 0, .fields = {{"reference", "rank 0"}}}};
  EXPECT_EQ(Rules(CheckBlame(run, result)), std::vector<std::string>{"blames_no_healthy_rank"});
  result.trace.events.push_back(Fired(1));
  EXPECT_EQ(Rules(CheckBlame(run, result)), kNone);
}

TEST(RulesTest, AFaultFiresWhereItIsAimed) {
  const auto run = ARun("process.sleep");
  RunResult result = Completed();
  EXPECT_EQ(SilentIn(run, result), std::vector<std::string>{"a"});
  result.trace.events = {Fired(1)};
  EXPECT_TRUE(SilentIn(run, result).empty());
  EXPECT_EQ(Rules(CheckBlame(run, result)), kNone);
  result.trace.events = {Fired(0)};
  EXPECT_EQ(Rules(CheckBlame(run, result)), std::vector<std::string>{"fires"});
}

TEST(RulesTest, AnEventWithoutAChangeIsNoEvidence) {
  RunResult result = Completed();
  result.trace.events = {Fired(1)};
  result.trace.events[0].fields["after"] = 1;
  EXPECT_TRUE(FiredIn(result).empty());
}

TEST(RulesTest, ARestartedRunIsTheUninterruptedOne) {
  EXPECT_TRUE(ResumesExactly(ARun("process.crash_rank")));
  EXPECT_FALSE(ResumesExactly(ARun("model.flip_bit")));
  EXPECT_EQ(Rules(CheckResumed(Completed(), Completed())), kNone);
  const auto found = CheckResumed(Completed(0.25), Completed());
  ASSERT_EQ(Rules(found), std::vector<std::string>{"resumes_exactly"});
  EXPECT_NE(found[0].text.find("'loss' of rank 0 differs from the uninterrupted run at step 3"),
            std::string::npos)
      << found[0].text;
}

}  // namespace
}  // namespace trainwreck
