// The claims of a case, arm by arm: which check must have which truth where, and what it says when
// it has another. For this package and for what shows claims without judging them (`explain`,
// `run --dry-run`); verdict.h is what others use.
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

// In the order in which they are reported.
std::vector<Claim> ClaimsOf(const Case& plan, const ArmPlan& arm);

// Whether some healthy check, or what twins must agree in, says something of control. A healthy
// check that compares with control compares it there with itself.
bool ClaimsHealthOfControl(const Case& plan, const TargetDescription& target);

// Faulty arms must have performed every fault: true when a `fired` event of `fault` changed
// something.
bool HasFired(const RunTrace& trace, const InjectedFault& fault, std::string* seen = nullptr);
bool IsFaulty(ArmKind kind);

enum class Clearance { kClear, kWeak, kUnknown };
// Whether a reading that holds does so by at least the check's min_margin.
Clearance ClearanceOf(const Check& check, const formula::Reading& reading);

struct ArmsJudged {
  std::vector<CheckResult> checks;   // of all arms: claims, faults fired, ends of runs
  std::vector<int> tolerated_seeds;  // in which some claim is broken or unknown, as `seeds` allows
  std::vector<InvariantCount> invariants;
};
ArmsJudged JudgeArms(const CaseResults& results, const TargetDescription& target);

// "0.1", "nan"; with as many digits as tell two doubles apart, or with four.
std::string ExactNumber(double value);
std::string ShortNumber(double value);

}  // namespace trainwreck
