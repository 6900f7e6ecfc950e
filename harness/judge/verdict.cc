#include "harness/judge/verdict.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "harness/judge/arm_judge.h"
#include "harness/judge/hook_failures.h"
#include "harness/judge/notes.h"
#include "harness/judge/remarks.h"
#include "harness/judge/summary.h"
#include "harness/launch/trace_bits.h"
#include "harness/outcome/exit_status.h"
#include "harness/plan/device.h"
#include "harness/text/words.h"

namespace trainwreck {
namespace {

// A run that ended badly, a fault that did not act and a signal that was not read come before the
// checks that are false or unknown because of it.
void PutCausesFirst(std::vector<CheckResult>& checks) {
  const auto rank = [](const CheckResult& check) {
    if (check.failure_class.empty()) return 2;
    if (check.check == kEndCheck) return 0;
    return check.check == kFiredCheck || check.check == kSignalsSoundCheck ? 1 : 2;
  };
  std::stable_sort(checks.begin(), checks.end(),
                   [&](const CheckResult& a, const CheckResult& b) { return rank(a) < rank(b); });
}

std::string NameOf(const CheckResult& check) { return "'" + check.check + "' in " + check.arm; }

void DecideOutcome(Verdict& verdict) {
  for (const ClassInfo& outcome : ClassesByRank()) {
    int more = -1;
    for (const CheckResult& check : verdict.checks) {
      if (!(check.failure_class == outcome.id)) continue;
      if (++more > 0) continue;
      verdict.verdict = outcome.verdict;
      verdict.failure_class = outcome.id;
      verdict.reason = NameOf(check) + ": " + check.message;
      if (!check.seen.empty()) verdict.reason += "; " + check.seen;
      if (!check.place.empty()) verdict.reason += "; " + check.place;
      if (!check.suspects.empty()) verdict.reason += "; look at: " + Join(check.suspects);
    }
    if (more > 0) verdict.reason += " (and " + std::to_string(more) + " more like it)";
    if (more >= 0) return;
  }
  verdict.verdict = VerdictKind::kPass;
}

// A scenario may declare a known limit: then that outcome passes, and a pass is what has to be
// reported. With a fault that was kept from acting, no outcome is the one that it declares.
void CompareWithExpectation(const Expectation& expect, bool is_silenced, Verdict& verdict) {
  verdict.seen_verdict = verdict.verdict;
  if (expect.verdict == VerdictKind::kPass) return;
  const std::string expected = OutcomeText(expect.verdict, expect.failure_class);
  const bool matches =
      !is_silenced && verdict.verdict == expect.verdict &&
      (expect.failure_class.empty() || verdict.failure_class == expect.failure_class);
  if (matches) {
    verdict.verdict = VerdictKind::kPass;
    verdict.failure_class = FailureClass::kNone;
    verdict.expected_limit = true;
    verdict.reason = "known limit, " + expected + " as expected: " + expect.reason;
  } else if (verdict.verdict == VerdictKind::kPass) {
    verdict.verdict = VerdictKind::kFail;
    verdict.failure_class = FailureClass::kUnexpectedPass;
    verdict.reason = "every claim holds, but the scenario expects " + expected + " (" +
                     expect.reason + "): the limit is gone, remove `expect`";
  } else if (is_silenced) {
    verdict.reason += "; the scenario expects " + expected + ", of runs in which the fault acts";
  } else {
    verdict.reason += "; the scenario expects " + expected + " instead";
  }
}

// At this point: a symptom may be left to other points of the matrix.
bool ResolvesSomething(const Case& plan, const ArmPlan& arm) {
  const std::vector<Claim> claims = ClaimsOf(plan, arm);
  return std::any_of(claims.begin(), claims.end(),
                     [](const Claim& claim) { return !claim.expected; });
}

// What no single check says: remedies that are worth the name, enough seeds.
void CheckTheScenarioItself(const Case& plan, Verdict& verdict) {
  const Scenario& scenario = *plan.scenario;
  bool has_remedy = false;
  for (const ArmPlan& arm : plan.arms) {
    if (arm.kind != ArmKind::kRemedy) continue;
    if (arm.is_undo) verdict.undo_remedies.push_back(arm.name);
    has_remedy |= !arm.is_undo && ResolvesSomething(plan, arm);
  }
  auto add = [&](const char* name, FailureClass::Id failure_class, std::string message) {
    CheckResult result;
    result.check = name;
    result.arm = "all arms";
    result.failure_class = failure_class;
    result.message = std::move(message);
    verdict.checks.push_back(std::move(result));
  };
  const bool needs_remedy = !scenario.faults.empty() && scenario.no_remedy.empty();
  if (!plan.is_control_only && !has_remedy && needs_remedy) {
    add("remedies", FailureClass::kRemedyIneffective,
        verdict.undo_remedies.empty()
            ? "there is no remedy here that resolves a symptom; add one, or say why there is none "
              "with `no_remedy`"
            : "every remedy only undoes the fault (its plan equals control's); add one that works "
              "with the fault in, or say why there is none with `no_remedy`");
  }
  if (!plan.is_one_seed && plan.seed_count < scenario.seed_require) {
    add(kSeedsCheck, FailureClass::kTooFewSeeds,
        std::to_string(plan.seed_count) + " seeds were run, the scenario requires " +
            std::to_string(scenario.seed_require) + " that agree");
  }
}

RunResult MissingRun() {
  RunResult missing;
  missing.detail = "not run";
  return missing;
}

// The runs by arm and seed, without what no report shows.
void KeepRuns(const CaseResults& results, Verdict& verdict) {
  for (const ArmPlan& arm : results.plan->arms) {
    auto seeds = results.runs.find(arm.name);
    std::vector<RunResult>& kept = verdict.runs[arm.name];
    for (std::size_t seed = 0; seed < arm.runs.size(); ++seed) {
      const RunResult* run = nullptr;
      if (seeds != results.runs.end()) {
        auto found = seeds->second.find(static_cast<int>(seed));
        if (found != seeds->second.end()) run = &found->second;
      }
      if (run == nullptr) {
        kept.push_back(MissingRun());
        continue;
      }
      RunResult slim;
      slim.end = run->end;
      slim.detail = run->detail;
      slim.folder = run->folder;
      slim.exits = run->exits;
      slim.problems = run->problems;
      slim.restarts = run->restarts;
      slim.wall_seconds = run->wall_seconds;
      slim.cpu_seconds = run->cpu_seconds;
      slim.peak_memory_bytes = run->peak_memory_bytes;
      SummarizeTrace(run->trace, slim);
      AddEnvironment(run->trace, verdict.environment);
      verdict.wall_seconds += run->wall_seconds;
      verdict.cpu_seconds += run->cpu_seconds;
      kept.push_back(std::move(slim));
    }
    if (kept.empty()) verdict.runs.erase(arm.name);
  }
}

// Units do not compare: octaves before steps, seconds and plain numbers, then the smallest. The
// infinite margins of events say nothing beyond the verdict, so they come last.
void FindWorstMargin(Verdict& verdict) {
  auto rank = [](double margin, formula::Unit unit) {
    return std::make_tuple(std::isinf(margin), static_cast<int>(unit), margin);
  };
  const FailureClass wanted =
      verdict.verdict == VerdictKind::kPass ? FailureClass::kNone : verdict.failure_class;
  for (const CheckResult& check : verdict.checks) {
    if (check.failure_class != wanted || !check.worst_margin) continue;
    if (std::isinf(*check.worst_margin) && wanted.empty()) continue;
    if (!verdict.worst_margin || rank(*check.worst_margin, check.unit) <
                                     rank(*verdict.worst_margin, verdict.worst_margin_unit)) {
      verdict.worst_margin = check.worst_margin;
      verdict.worst_margin_unit = check.unit;
    }
  }
}

}  // namespace

Verdict Judge(const CaseResults& results, const TargetDescription& target) {
  const Case& plan = *results.plan;
  Verdict verdict;
  verdict.case_name = plan.name;
  verdict.scenario = plan.scenario->name;
  verdict.point = plan.point->name;
  verdict.file = plan.scenario->file;
  verdict.title = plan.scenario->title;
  verdict.tags = plan.scenario->tags;
  verdict.devices = plan.devices;
  verdict.scenario_digest = plan.digest;
  for (const std::string& device : plan.devices) {
    AddTo(verdict.environment, "device", DescribeDevice(device, target));
  }
  if (!plan.skip_reason.empty()) {
    verdict.verdict = VerdictKind::kSkip;
    verdict.failure_class = *FailureClass::Find(plan.skip_reason);
    verdict.reason = "this machine or target lacks " + verdict.failure_class.lacking();
    CompareWithExpectation(plan.scenario->expect, /*is_silenced=*/false, verdict);
    return verdict;
  }
  ArmsJudged judged = JudgeArms(results, target);
  verdict.checks = std::move(judged.checks);
  verdict.tolerated_seeds = std::move(judged.tolerated_seeds);
  verdict.invariants = std::move(judged.invariants);
  PutCausesFirst(verdict.checks);
  CheckTheScenarioItself(plan, verdict);
  DecideOutcome(verdict);
  CompareWithExpectation(plan.scenario->expect, judged.is_silenced, verdict);
  verdict.notes = FindNotes(results, target);
  KeepRuns(results, verdict);
  verdict.arms = SummarizeArms(results, verdict.checks);
  verdict.remarks = RemarksOn(results, target, verdict.tolerated_seeds);
  for (std::string& remark : RemarksOnHooks(results)) verdict.remarks.push_back(std::move(remark));
  FindWorstMargin(verdict);
  return verdict;
}

std::string CompareTraces(const RunTrace& a, const RunTrace& b) {
  std::set<std::pair<std::string, int>> keys;
  for (const auto& [key, series] : a.series) keys.insert(key);
  for (const auto& [key, series] : b.series) keys.insert(key);
  int first_step = -1;
  std::string difference;
  for (const auto& key : keys) {
    if (IsTimeOrMemory(key.first)) continue;
    static const Series kNone;
    const Series* x = a.Find(key.first, key.second);
    const Series* y = b.Find(key.first, key.second);
    if (x == nullptr) x = &kNone;
    if (y == nullptr) y = &kNone;
    int steps = static_cast<int>(std::max(x->values.size(), y->values.size()));
    if (first_step >= 0) steps = std::min(steps, first_step);
    const int step = FirstDifference(*x, *y, steps);
    if (step < 0) continue;
    first_step = step;
    const auto show = [step](const Series& series) {
      return series.Has(step) ? ExactNumber(series.values[step]) : std::string("nothing");
    };
    difference = key.first + " at step " + std::to_string(step) + " of rank " +
                 std::to_string(key.second) + ": " + show(*x) + " and " + show(*y);
  }
  return difference;
}

void FailAsNondeterministic(const Scenario& scenario, const std::string& difference,
                            Verdict& verdict) {
  if (verdict.verdict == VerdictKind::kError) return;
  const Expectation& expect = scenario.expect;
  verdict.seen_verdict = VerdictKind::kFail;
  verdict.expected_limit = expect.failure_class == FailureClass::kNondeterministic;
  verdict.verdict = verdict.expected_limit ? VerdictKind::kPass : VerdictKind::kFail;
  verdict.failure_class =
      verdict.expected_limit ? FailureClass::kNone : FailureClass::kNondeterministic;
  verdict.reason = verdict.expected_limit
                       ? "known limit, fail/nondeterministic as expected: " + expect.reason
                       : difference;
}

int ExitCode(const std::vector<Verdict>& verdicts) {
  for (VerdictKind worst : {VerdictKind::kFail, VerdictKind::kError, VerdictKind::kInconclusive}) {
    const bool any = std::any_of(verdicts.begin(), verdicts.end(),
                                 [&](const Verdict& one) { return one.verdict == worst; });
    if (any) return ExitStatusOf(worst);
  }
  // A skip that was expected is still nothing that was executed.
  const bool any_executed = std::any_of(verdicts.begin(), verdicts.end(), [](const Verdict& one) {
    return one.verdict == VerdictKind::kPass && one.seen_verdict != VerdictKind::kSkip;
  });
  return ExitStatusOf(any_executed ? VerdictKind::kPass : VerdictKind::kSkip);
}

}  // namespace trainwreck
