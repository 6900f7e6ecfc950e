#include "harness/outcome/outcome.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace trainwreck {
namespace {

// In the order of `explain verdicts`, which is that of the enumerators.
constexpr VerdictInfo kVerdicts[] = {
    {VerdictKind::kPass, "pass", kExitPassed, "Every claim of the scenario was checked and holds.",
     ""},
    {VerdictKind::kFail, "fail", kExitFailed,
     "A claim was checked and does not hold; the class says which kind.", ""},
    {VerdictKind::kInconclusive, "inconclusive", kExitInconclusive,
     "A claim could be neither confirmed nor refuted: unknown is not passed.", ""},
    {VerdictKind::kError, "error", kExitInfrastructure,
     "A run could not be made or judged; says nothing about the claims.", ""},
    {VerdictKind::kSkip, "skip", kExitNothingRun,
     "The scenario requires what this machine or target lacks: requires:WHAT.",
     "Run it where WHAT is there; --max-skips bounds how many may be skipped."},
};

constexpr ClassInfo kClasses[] = {
    {FailureClass::kNone, VerdictKind::kPass, 0, "", "", ""},
    {FailureClass::kControlUnhealthy, VerdictKind::kFail, 9, "control_unhealthy",
     "A healthy check does not hold in the control arm, it was restarted, or the fault acted "
     "there: nothing can be concluded.",
     "Mend the recipe or the check; `trainwreck run NAME --arm control` shows the readings."},
    {FailureClass::kSymptomInControl, VerdictKind::kFail, 10, "symptom_in_control",
     "A symptom holds in the control arm, where no fault is: the check cannot tell.",
     "Tighten the formula."},
    {FailureClass::kSymptomAbsent, VerdictKind::kFail, 11, "symptom_absent",
     "A symptom does not hold in the fault arm: the fault does not do what is claimed.",
     "Strengthen the fault (measure first), or correct the claim."},
    {FailureClass::kSymptomWeak, VerdictKind::kFail, 12, "symptom_weak",
     "A symptom holds in the fault arm by less than its min_margin.",
     "Strengthen the fault, or lower min_margin if the margin was a guess."},
    {FailureClass::kFaultNotFired, VerdictKind::kFail, 8, "fault_not_fired",
     "A fault left no `fired` event, or its event shows that it changed nothing. Or a twin began "
     "anew that has to go on from a checkpoint.",
     "Look at its trigger: step, ranks, phase, attempt; `trainwreck explain SITE.FAULT` lists "
     "them."},
    {FailureClass::kRemedyIneffective, VerdictKind::kFail, 13, "remedy_ineffective",
     "With a remedy in place a symptom that it resolves still holds, or the run is not healthy.",
     "Correct the remedy, or list what it really does under `resolves` and `waives`."},
    {FailureClass::kRemedyCostly, VerdictKind::kFail, 14, "remedy_costly",
     "A remedy takes the symptom away, but the quality gate does not hold.",
     "Use a better remedy, or say `waives: [quality]` and `kind: mitigate`."},
    {FailureClass::kDecoyEffective, VerdictKind::kFail, 15, "decoy_effective",
     "A decoy, which is said not to help, takes a symptom away.",
     "It may be a remedy after all; or list what stays under `keeps`."},
    {FailureClass::kInvariantBroken, VerdictKind::kFail, 6, "invariant_broken",
     "What must hold in every sound run (invariants.yaml) does not hold in control, a twin, or "
     "with "
     "a remedy that the fault alone does not explain.",
     "The message names the part of the stack that the invariant is about, and the first step."},
    {FailureClass::kTwinsDiffer, VerdictKind::kFail, 7, "twins_differ",
     "A change that must not matter does: a twin and control do not agree.",
     "The message has the first step and signal that differ; look for what that signal is computed "
     "from."},
    {FailureClass::kBugUnnoticed, VerdictKind::kFail, 16, "bug_unnoticed",
     "Control and a twin agree although both have a fault that must make them differ: the check "
     "cannot fail.",
     "Compare a signal that the fault reaches, align the change with it, or strengthen the fault."},
    {FailureClass::kUnexpectedPass, VerdictKind::kFail, 0, "unexpected_pass",
     "The scenario says that it fails (`expect`), and it passes.", "Good news: remove `expect`."},
    {FailureClass::kNondeterministic, VerdictKind::kFail, 0, "nondeterministic",
     "The same run, made twice, gave different bits (--verify-determinism).",
     "Look for an unseeded generator or a race; `trainwreck rerun RUN` repeats one run."},
    {FailureClass::kUndecided, VerdictKind::kInconclusive, 17, "undecided",
     "A check is unknown: a NaN operand, a missing sample, a run that stopped before the window, a "
     "fault that could not act because its hook failed.",
     "The message names what was unknown."},
    {FailureClass::kTooFewSeeds, VerdictKind::kInconclusive, 18, "too_few_seeds",
     "Fewer seeds were run than the scenario requires to agree.",
     "Leave --seeds away, or lower `seeds: require`."},
    {FailureClass::kInfrastructure, VerdictKind::kError, 1, "infrastructure",
     "A process could not be started, or a file not written.",
     "`trainwreck doctor` checks this machine."},
    {FailureClass::kTimeout, VerdictKind::kError, 4, "timeout",
     "A run used up its budget of seconds, or stalled, and no check is about that.",
     "Raise `budget`, or look at the launcher.jsonl of the run."},
    {FailureClass::kCrash, VerdictKind::kError, 3, "crash",
     "A rank ended otherwise than by finishing, and no check is about that.",
     "The last words of the rank are in the report and in rank<k>.stderr; a crash that is meant "
     "can be claimed with the event exited or ended, as in exited(rank=2, signal=9). A rank with "
     "Gloo that is killed by SIGABRT after its last step was often met by a thread of Gloo that "
     "outlives Python (pytorch/pytorch issue 190489): run the case again, or with "
     "`adapter: python`, which lets these threads come to rest."},
    {FailureClass::kIncomplete, VerdictKind::kError, 5, "incomplete",
     "A run ended with exit code 0 before its planned steps were done, and no check is about that.",
     "Look at what the program did last; a run that is meant to end early can be claimed with the "
     "event ended_early."},
    {FailureClass::kLeak, VerdictKind::kError, 2, "leak",
     "A run left processes behind; they were killed.", "The target must end its children."},
    {FailureClass::kRequires, VerdictKind::kSkip, 0, "requires",
     "Class of a skip: requires:ranks, requires:device:cuda, requires:memory, ...", ""},
};

constexpr ExitInfo kExits[] = {
    {kExitPassed, "Every executed scenario passed."},
    {kExitFailed, "At least one failed."},
    {kExitUsage, "The command line is wrong; nothing was run."},
    {kExitInvalid, "A scenario, the target or the configuration is invalid; nothing was run."},
    {kExitNothingRun, "Nothing was executed: nothing was selected, or all was skipped."},
    {kExitInconclusive, "None failed, at least one was inconclusive."},
    {kExitRequirement, "--require or --max-skips was violated."},
    {kExitInfrastructure, "Infrastructure error or timeout, or a report could not be written."},
    {kExitChanged,
     "Of compare: something differs (other bits, a better margin), and nothing is known to be "
     "worse."},
    {kExitInternal, "Internal error: a bug of trainwreck."},
    {kExitInterrupted, "Interrupted; the report holds what was judged until then."},
};

template <typename Id>
struct Name {
  Id id;
  const char* name;
};

constexpr Name<ArmKind> kArmKinds[] = {
    {ArmKind::kControl, "control"},     {ArmKind::kFault, "fault"},
    {ArmKind::kRemedy, "remedy"},       {ArmKind::kDecoy, "decoy"},
    {ArmKind::kReference, "reference"}, {ArmKind::kTwin, "twin"},
    {ArmKind::kRounding, "rounding"},   {ArmKind::kBug, "bug"},
};

constexpr Name<ArmStatus> kArmStatuses[] = {
    {ArmStatus::kOk, "ok"},       {ArmStatus::kUndecided, "undecided"}, {ArmStatus::kFail, "fail"},
    {ArmStatus::kError, "error"}, {ArmStatus::kUndo, "undo"},
};

template <typename Row, std::size_t N>
constexpr bool IsInOrder(const Row (&rows)[N]) {
  for (std::size_t i = 0; i < N; ++i) {
    if (static_cast<std::size_t>(rows[i].id) != i) return false;
  }
  return true;
}

// Each enumerator has its row, at its own place.
static_assert(IsInOrder(kVerdicts) &&
              std::size(kVerdicts) == static_cast<std::size_t>(VerdictKind::kSkip) + 1);
static_assert(IsInOrder(kClasses) && std::size(kClasses) == FailureClass::kCount);
static_assert(IsInOrder(kArmKinds) &&
              std::size(kArmKinds) == static_cast<std::size_t>(ArmKind::kBug) + 1);
static_assert(IsInOrder(kArmStatuses) &&
              std::size(kArmStatuses) == static_cast<std::size_t>(ArmStatus::kUndo) + 1);

template <typename Row, std::size_t N, typename Id>
const Row& RowOf(const Row (&rows)[N], Id id) {
  return rows[static_cast<std::size_t>(id)];
}

template <typename Row, std::size_t N>
auto FindRow(const Row (&rows)[N], std::string_view name)
    -> std::optional<std::remove_const_t<decltype(rows[0].id)>> {
  for (const Row& row : rows) {
    if (name == row.name) return row.id;
  }
  return std::nullopt;
}

constexpr std::string_view kLacking = "requires:";

}  // namespace

std::span<const VerdictInfo> AllVerdicts() { return kVerdicts; }
const char* ToString(VerdictKind kind) { return RowOf(kVerdicts, kind).name; }
ExitStatus ExitStatusOf(VerdictKind kind) { return RowOf(kVerdicts, kind).exit_status; }
std::optional<VerdictKind> FindVerdict(std::string_view name) { return FindRow(kVerdicts, name); }

std::vector<std::string> VerdictNames() {
  std::vector<std::string> names;
  for (const VerdictInfo& verdict : kVerdicts) names.push_back(verdict.name);
  return names;
}

FailureClass FailureClass::Requires(std::string what) {
  FailureClass lacking(kRequires);
  lacking.lacking_ = std::move(what);
  return lacking;
}

std::optional<FailureClass> FailureClass::Find(std::string_view text) {
  if (text.starts_with(kLacking)) return Requires(std::string(text.substr(kLacking.size())));
  const std::optional<Id> id = FindRow(kClasses, text);
  if (!id || *id == kRequires) return std::nullopt;
  return FailureClass(*id);
}

std::string FailureClass::text() const {
  return id_ == kRequires ? std::string(kLacking) + lacking_ : RowOf(kClasses, id_).name;
}

VerdictKind FailureClass::verdict() const { return RowOf(kClasses, id_).verdict; }

std::ostream& operator<<(std::ostream& out, const FailureClass& failure_class) {
  return out << failure_class.text();
}

std::span<const ClassInfo> AllClasses() { return std::span(kClasses).subspan(1); }

std::vector<ClassInfo> ClassesByRank() {
  std::vector<ClassInfo> ranked;
  for (const ClassInfo& info : AllClasses()) {
    if (info.rank > 0) ranked.push_back(info);
  }
  std::sort(ranked.begin(), ranked.end(),
            [](const ClassInfo& a, const ClassInfo& b) { return a.rank < b.rank; });
  return ranked;
}

std::vector<std::string> ClassNames(VerdictKind verdict) {
  std::vector<std::string> names;
  for (const ClassInfo& info : AllClasses()) {
    if (info.verdict == verdict && info.id != FailureClass::kRequires) names.push_back(info.name);
  }
  return names;
}

std::string OutcomeText(VerdictKind verdict, const FailureClass& failure_class) {
  return std::string(ToString(verdict)) + (failure_class.empty() ? "" : "/" + failure_class.text());
}

const char* ToString(ArmKind kind) { return RowOf(kArmKinds, kind).name; }
std::optional<ArmKind> FindArmKind(std::string_view name) { return FindRow(kArmKinds, name); }

const char* ToString(ArmStatus status) { return RowOf(kArmStatuses, status).name; }
std::optional<ArmStatus> FindArmStatus(std::string_view name) {
  return FindRow(kArmStatuses, name);
}

std::span<const ExitInfo> AllExitStatuses() { return kExits; }

}  // namespace trainwreck
