// The claims of a case, arm by arm: which check must have which truth where, and the message when
// it has another. For this package, and for verbs that show claims without judging them
// (`explain`, `run --dry-run`). Others use verdict.h.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "harness/judge/verdict.h"

namespace trainwreck {

// Which part of a scenario a check is.
enum class CheckRole { kHealthy, kSymptom, kQuality, kAgree, kNotices, kInvariant };
const char* ToString(CheckRole role);  // "healthy", "symptom", "quality", "agree", ...

// One thing that the scenario claims about an arm.
struct Claim {
  std::shared_ptr<const Check> check;  // a part of the case's scenario
  CheckRole role = CheckRole::kHealthy;
  bool expected = true;
  FailureClass failure_class;     // when it does not hold
  bool has_to_be_clear = false;   // min_margin counts here
  bool only_where_shown = false;  // in seeds whose fault arm shows the symptom
};

// The claims about an arm, in the order of the reports.
std::vector<Claim> ClaimsOf(const Case& plan, const ArmPlan& arm);

// Whether a healthy check, or an `agree` check of twins, says something about control. There, a
// healthy check that compares with control compares control with itself.
bool ClaimsHealthOfControl(const Case& plan, const TargetDescription& target);

// Whether the run performed `fault`, as every faulty arm must: a `fired` event of it changed
// something.
bool HasFired(const RunTrace& trace, const InjectedFault& fault, std::string* seen = nullptr);
bool IsFaulty(ArmKind kind);

enum class Clearance { kClear, kWeak, kUnknown };
// Whether a reading that holds does so by at least the check's min_margin.
Clearance ClearanceOf(const Check& check, const formula::Reading& reading);

struct ArmsJudged {
  std::vector<CheckResult> checks;   // of all arms: claims, faults fired, ends of runs
  std::vector<int> tolerated_seeds;  // with a broken or unknown claim, as `seeds` allows
  std::vector<InvariantCount> invariants;
  bool is_silenced = false;  // in some run a fault could not act, since its hook failed
};
ArmsJudged JudgeArms(const CaseResults& results, const TargetDescription& target);

// A number as text: "0.1", "nan"; with enough digits to tell two doubles apart, or with four.
std::string ExactNumber(double value);
std::string ShortNumber(double value);

}  // namespace trainwreck
