// Hooks that failed: the verdict says so, and a fault that they kept from acting is unknown.
#include "harness/judge/hook_failures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/judge/test_support.h"

namespace trainwreck::testing {
namespace hook_failures_test {

using ::testing::Contains;
using ::testing::HasSubstr;

// A target whose fault acts in a hook.
struct HookBench : Bench {
  HookBench() { target.faults[0].hooks = {"faults", "names"}; }

  // The hook fails in the runs of an arm, at step 3.
  void Fail(const std::string& arm, int seed, const std::string& hook,
            const std::string& why = "ValueError('no 1')", int rank = 0) {
    In(arm, seed, [=](RunResult& run) {
      AddEvent(run, "hook_failed", 3, {{"hook", hook}, {"why", why}, {"rank", rank}});
    });
  }

  // The arm's runs are as they would be without the fault.
  void LeaveOut(const std::string& arm, int seed = -1) {
    In(arm, seed, [](RunResult& run) {
      run = MakeRun(LearningLoss(1));
      run.trace.events.clear();
    });
  }
};

std::vector<std::string> OfHooks(const Verdict& verdict) {
  std::vector<std::string> remarks;
  for (const std::string& remark : verdict.remarks) {
    if (remark.find(": hook '") != std::string::npos) remarks.push_back(remark);
  }
  return remarks;
}

// What a signal's hook would have recorded is missing, so a check of it is unknown.
TEST(HookFailures, AreNamedWhereASignalIsUnknown) {
  HookBench bench;
  bench.scenario().healthy.push_back(MakeCheck("small", "max(grad_norm) < 2"));
  for (const char* arm : {"control", "lower_lr"}) {
    bench.Fail(arm, -1, "gradients", "ValueError('no norm')");
  }
  const Verdict verdict = bench.Judged();
  EXPECT_EQ(Outcome(verdict), "inconclusive/undecided") << verdict.reason;
  EXPECT_EQ(OfHooks(verdict),
            std::vector<std::string>{
                "control, seed 0 (and 5 more runs): hook 'gradients' failed at step 3: "
                "ValueError('no norm'); what it records is missing from then on"});
}

TEST(HookFailures, AreNamedOnceForEachHookAndReason) {
  HookBench bench;
  bench.Fail("control", 0, "loss", "KeyError(1)");
  bench.Fail("control", 0, "loss", "KeyError(1)", 1);  // the same run
  bench.Fail("control", 1, "loss", "KeyError(25)");    // other numbers
  bench.Fail("fault", 2, "loss", "TypeError()", 1);
  bench.Fail("decay", 2, "rate", "TypeError()");
  EXPECT_EQ(OfHooks(bench.Judged()),
            (std::vector<std::string>{
                "control, seed 0 (and 1 more run): hook 'loss' failed at step 3: KeyError(1); what "
                "it records is missing from then on",
                "fault, seed 2: hook 'loss' failed at step 3 of rank 1: TypeError(); what it "
                "records is missing from then on",
                "decay, seed 2: hook 'rate' failed at step 3: TypeError(); what it records is "
                "missing from then on"}));
  EXPECT_TRUE(OfHooks(HookBench().Judged()).empty());
}

// A rank writes what it likes.
TEST(HookFailures, OfAnyTypesAreRead) {
  RunResult run = MakeRun(LearningLoss(1));
  AddEvent(run, "hook_failed", -1, {{"hook", 7}, {"why", Json::array({"a", "b"})}});
  AddEvent(run, "hook_failed", 0, {{"why", "two\nlines " + std::string(5000, 'x')}});
  const std::vector<HookFailure> failures = HookFailuresIn(run.trace);
  ASSERT_EQ(failures.size(), 2U);
  EXPECT_EQ(ToString(failures[0]), "hook '7' failed: [\"a\",\"b\"]");
  EXPECT_THAT(failures[1].why, HasSubstr("two lines xxx"));
  EXPECT_EQ(failures[1].why.size(), 300U);
}

TEST(HookFailures, OfTheFaultLeaveTheCaseOpen) {
  for (const char* hook : {"faults", "names"}) {
    HookBench bench;
    bench.LeaveOut("fault");
    bench.Fail("fault", -1, hook);
    const Verdict verdict = bench.Judged();
    EXPECT_EQ(Outcome(verdict), "inconclusive/undecided") << verdict.reason;
    EXPECT_THAT(verdict.reason,
                HasSubstr("'fired' in fault: fault 'hot' (recipe.high_lr) must act "
                          "and change something in 3 of 3 seeds, it is not known "
                          "to in seeds 0, 1, 2; seed 0: fault 'hot' could not act: "
                          "hook '" +
                          std::string(hook) + "' failed at step 3: ValueError('no 1')"));
    EXPECT_THAT(verdict.remarks, Contains(HasSubstr("fault, seed 0 (and 2 more runs): hook")));
  }
}

// Also where the fault is in: without it, such a run says nothing of the remedy or the decoy.
TEST(HookFailures, OfTheFaultLeaveRemediesAndDecoysOpen) {
  for (const char* arm : {"lower_lr", "decay"}) {
    for (const int seed : {-1, 1}) {
      HookBench bench;
      bench.LeaveOut(arm, seed);
      bench.Fail(arm, seed, "faults");
      EXPECT_EQ(Outcome(bench.Judged()), "inconclusive/undecided") << arm;
      bench.In(arm, seed, WithLoss(LearningLoss(4)));  // nor does one that is not healthy
      EXPECT_EQ(Outcome(bench.Judged()), "inconclusive/undecided") << arm;
    }
  }
}

TEST(HookFailures, OfTheFaultLeaveTheSignalsOfARemedyOpen) {
  for (const bool has_failed : {false, true}) {
    HookBench bench;
    bench.target.level = 1;
    bench.In("lower_lr", -1, [](RunResult& run) { run.trace.series[{"step_s", 0}].Set(3, -1); });
    if (has_failed) {
      bench.In("lower_lr", -1, [](RunResult& run) { run.trace.events.clear(); });
      bench.Fail("lower_lr", -1, "faults");
    }
    EXPECT_EQ(Outcome(bench.Judged()),
              has_failed ? "inconclusive/undecided" : "fail/remedy_ineffective");
  }
}

TEST(HookFailures, OfTheFaultLeaveWhatIsComparedWithItsArmOpen) {
  HookBench bench;
  bench.scenario().healthy.push_back(MakeCheck("steeper", "loss[10] < 0.9 * fault.loss[10]"));
  bench.LeaveOut("fault");
  bench.Fail("fault", -1, "faults");
  for (const CheckResult& check : bench.Judged().checks) {
    if (check.check != "steeper") continue;
    EXPECT_EQ(check.unknown, kSeeds) << check.arm;
  }
}

// Whatever the hooks do: it must fire, and say so.
TEST(HookFailures, LeaveAFaultThatDidNotFireAFailure) {
  HookBench bench;
  bench.LeaveOut("fault");
  EXPECT_EQ(Outcome(bench.Judged()), "fail/fault_not_fired") << "no hook has failed";

  HookBench other;
  other.LeaveOut("fault");
  other.Fail("fault", -1, "gradients");
  EXPECT_EQ(Outcome(other.Judged()), "fail/fault_not_fired") << "another hook than the fault's";
  EXPECT_THAT(other.Judged().remarks, Contains(HasSubstr("hook 'gradients' failed")));

  HookBench elsewhere;
  elsewhere.LeaveOut("fault");
  elsewhere.Fail("control", -1, "faults");
  EXPECT_EQ(Outcome(elsewhere.Judged()), "fail/fault_not_fired") << "not in this arm";

  HookBench unchanged;
  unchanged.LeaveOut("fault");
  unchanged.In("fault", -1, [](RunResult& run) { AddFired(run, 0.1, 0.1); });
  unchanged.Fail("fault", -1, "faults");
  EXPECT_EQ(Outcome(unchanged.Judged()), "fail/fault_not_fired") << "it fired, and changed nothing";

  HookBench of_other_rank;
  of_other_rank.scenario().faults[0].trigger.ranks = {0};
  of_other_rank.LeaveOut("fault");
  of_other_rank.Fail("fault", -1, "faults", "KeyError()", 1);
  EXPECT_EQ(Outcome(of_other_rank.Judged()), "fail/fault_not_fired") << "it acts on rank 0 alone";
}

// One seed is left open; in another one the fault has not fired for a reason of its own.
TEST(HookFailures, HideNoFailureOfAnotherSeed) {
  HookBench bench;
  bench.LeaveOut("fault", 0);
  bench.Fail("fault", 0, "faults");
  EXPECT_EQ(Outcome(bench.Judged()), "inconclusive/undecided");
  bench.LeaveOut("fault", 2);
  EXPECT_EQ(Outcome(bench.Judged()), "fail/fault_not_fired");
}

// What is wrong without the fault stays so.
TEST(HookFailures, OfTheFaultHideNoSickControl) {
  HookBench bench;
  bench.LeaveOut("fault");
  bench.Fail("fault", -1, "faults");
  bench.In("control", -1, WithLoss(LearningLoss(4)));
  EXPECT_EQ(Outcome(bench.Judged()), "fail/control_unhealthy");
}

TEST(HookFailures, AfterTheFaultHasFiredChangeNoVerdict) {
  HookBench bench;
  for (const char* arm : {"fault", "lower_lr", "decay"}) bench.Fail(arm, -1, "faults");
  const Verdict verdict = bench.Judged();
  EXPECT_EQ(Outcome(verdict), "pass") << verdict.reason;
  EXPECT_EQ(OfHooks(verdict).size(), 1U);
}

// A known limit is one of runs in which the fault acts.
TEST(HookFailures, OfTheFaultAreNoKnownLimit) {
  for (const VerdictKind expected : {VerdictKind::kInconclusive, VerdictKind::kFail}) {
    HookBench bench;
    bench.LeaveOut("fault");
    bench.Fail("fault", -1, "faults");
    const bool is_open = expected == VerdictKind::kInconclusive;
    if (!is_open) bench.In("control", -1, WithLoss(LearningLoss(4)));
    bench.scenario().expect = {expected,
                               is_open ? FailureClass::kUndecided : FailureClass::kControlUnhealthy,
                               "it is known"};
    const Verdict verdict = bench.Judged();
    EXPECT_EQ(verdict.verdict, expected) << verdict.reason;
    EXPECT_FALSE(verdict.expected_limit);
    EXPECT_THAT(verdict.reason, HasSubstr("of runs in which the fault acts"));
  }
}

// As many seeds may be lost as before, and no more.
TEST(HookFailures, LoseTheirSeeds) {
  for (const int lost : {1, 2}) {
    HookBench bench;
    bench.scenario().seed_require = kSeeds - 1;
    for (int seed = 0; seed < lost; ++seed) {
      bench.LeaveOut("fault", seed);
      bench.Fail("fault", seed, "faults");
    }
    const Verdict verdict = bench.Judged();
    EXPECT_EQ(Outcome(verdict), lost == 1 ? "pass" : "inconclusive/undecided") << verdict.reason;
    EXPECT_EQ(verdict.tolerated_seeds, lost == 1 ? std::vector<int>{0} : std::vector<int>{});
  }
}

}  // namespace hook_failures_test
}  // namespace trainwreck::testing
