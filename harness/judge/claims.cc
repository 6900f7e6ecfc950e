// What is claimed of each arm, and the small questions that every claim comes down to.
#include <algorithm>
#include <cstdio>
#include <utility>

#include "harness/judge/arm_judge.h"

namespace trainwreck {
namespace {

using formula::Interval;
using formula::Reading;

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

bool IsFaulty(ArmKind kind) {
  return kind == ArmKind::kFault || kind == ArmKind::kRemedy || kind == ArmKind::kDecoy ||
         kind == ArmKind::kBug;
}

const char* ToString(CheckRole role) {
  switch (role) {
    case CheckRole::kHealthy:
      return "healthy";
    case CheckRole::kSymptom:
      return "symptom";
    case CheckRole::kQuality:
      return "quality";
    case CheckRole::kAgree:
      return "agree";
    case CheckRole::kNotices:
      return "notices";
    case CheckRole::kInvariant:
      return "invariant";
  }
  return "?";
}

namespace {

// The claims of one arm, as they come.
class ClaimList {
 public:
  ClaimList(const Case& plan, const ArmPlan& arm) : plan_(plan), arm_(arm) {}

  void Add(CheckRole role, const Check& check, bool expected, FailureClass failure_class) {
    if (!AppliesTo(check.when, *plan_.point)) return;
    Claim claim;
    claim.check = {plan_.scenario, &check};
    claim.role = role;
    claim.expected = expected;
    claim.failure_class = std::move(failure_class);
    claim.has_to_be_clear = expected && arm_.kind != ArmKind::kDecoy;
    claim.only_where_shown = arm_.kind == ArmKind::kRemedy && !expected;
    claims_.push_back(claim);
  }

  // What the faults break shows in their arm; a remedy of all symptoms mends it, too.
  void AddBroken(bool expected, FailureClass::Id failure_class) {
    for (const StandingCheck& standing : arm_.invariants) {
      if (!Contains(plan_.scenario->breaks, standing.check.name)) continue;
      Add(CheckRole::kInvariant, standing.check, expected, failure_class);
      // It belongs to the arm, and who asks may keep it longer.
      claims_.back().check = std::make_shared<const Check>(standing.check);
      claims_.back().only_where_shown = expected;
    }
  }

  void AddRemedy(const Remedy& remedy) {
    const Scenario& scenario = *plan_.scenario;
    for (const Check& check : scenario.symptoms) {
      if (remedy.resolves.empty() || Contains(remedy.resolves, check.name)) {
        Add(CheckRole::kSymptom, check, false, FailureClass::kRemedyIneffective);
      }
    }
    if (remedy.resolves.empty()) AddBroken(true, FailureClass::kRemedyIneffective);
    for (const Check& check : scenario.healthy) {
      if (!Contains(remedy.waives, check.name))
        Add(CheckRole::kHealthy, check, true, FailureClass::kRemedyIneffective);
    }
    if (scenario.quality && !Contains(remedy.waives, "quality")) {
      Add(CheckRole::kQuality, *scenario.quality, true, FailureClass::kRemedyCostly);
    }
  }

  void AddNotices(const std::shared_ptr<const Check>& notices) {
    if (notices == nullptr) return;
    Add(CheckRole::kNotices, *notices, true, FailureClass::kBugUnnoticed);
    claims_.back().check = notices;  // no part of the scenario
  }

  std::vector<Claim> Take() { return std::move(claims_); }

 private:
  const Case& plan_;
  const ArmPlan& arm_;
  std::vector<Claim> claims_;
};

}  // namespace

std::vector<Claim> ClaimsOf(const Case& plan, const ArmPlan& arm) {
  const Scenario& scenario = *plan.scenario;
  ClaimList claims(plan, arm);
  switch (arm.kind) {
    case ArmKind::kControl:
      for (const Check& check : scenario.healthy)
        claims.Add(CheckRole::kHealthy, check, true, FailureClass::kControlUnhealthy);
      for (const Check& check : scenario.symptoms)
        claims.Add(CheckRole::kSymptom, check, false, FailureClass::kSymptomInControl);
      break;
    case ArmKind::kFault:
      for (const Check& check : scenario.symptoms)
        claims.Add(CheckRole::kSymptom, check, true, FailureClass::kSymptomAbsent);
      claims.AddBroken(false, FailureClass::kSymptomAbsent);
      break;
    case ArmKind::kRemedy:
      claims.AddRemedy(*arm.remedy);
      break;
    case ArmKind::kDecoy:
      for (const Check& check : scenario.symptoms) {
        if (arm.decoy->keeps.empty() || Contains(arm.decoy->keeps, check.name)) {
          claims.Add(CheckRole::kSymptom, check, true, FailureClass::kDecoyEffective);
        }
      }
      break;
    case ArmKind::kTwin:
      for (const Check& check : scenario.agree)
        claims.Add(CheckRole::kAgree, check, true, FailureClass::kTwinsDiffer);
      break;
    case ArmKind::kBug:
      claims.AddNotices(arm.notices);
      break;
    case ArmKind::kReference:
    case ArmKind::kRounding:
      break;
  }
  return claims.Take();
}

bool ClaimsHealthOfControl(const Case& plan, const TargetDescription& target) {
  if (!plan.scenario->agree.empty()) return true;   // what is not sound agrees with nothing
  if (!plan.scenario->breaks.empty()) return true;  // they are asked of control
  formula::Vocabulary vocabulary;
  vocabulary.target = &target;
  vocabulary.arms = {"control", "fault", "reference"};
  for (const ArmPlan& arm : plan.arms) {
    if (arm.kind != ArmKind::kControl || arm.runs.empty()) continue;
    vocabulary.planned_steps = arm.runs.front().steps;
    vocabulary.world_size = arm.runs.front().ranks;
  }
  const std::vector<Check>& healthy = plan.scenario->healthy;
  return std::any_of(healthy.begin(), healthy.end(), [&](const Check& check) {
    return AppliesTo(check.when, *plan.point) &&
           check.formula.FindVacuous(vocabulary, "control").empty();
  });
}

bool HasFired(const RunTrace& trace, const InjectedFault& fault, std::string* seen) {
  std::string text = "it did not fire";
  bool fired = false;
  for (const Event& event : trace.events) {
    if (event.name != "fired" || !event.fields.is_object()) continue;
    auto id = event.fields.find("id");
    if (id == event.fields.end() || *id != Json(fault.id)) continue;
    const Json before = event.fields.value("before", Json());
    const Json after = event.fields.value("after", Json());
    auto dump = [](const Json& value) {
      return value.dump(-1, ' ', false, Json::error_handler_t::replace).substr(0, 80);
    };
    if (before != after) {
      fired = true;
      text = "it changed " + dump(before) + " to " + dump(after);
      break;
    }
    text = before.is_null() ? "it fired without saying what it changed"
                            : "it fired but changed nothing: " + dump(before) + " before and after";
  }
  if (seen != nullptr) *seen = text;
  return fired;
}

Clearance ClearanceOf(const Check& check, const Reading& reading) {
  if (!check.min_margin) return Clearance::kClear;
  const std::optional<Interval>& margin = reading.margins[static_cast<int>(check.min_margin->unit)];
  if (!margin) return Clearance::kUnknown;
  if (margin->lo >= check.min_margin->value) return Clearance::kClear;
  return margin->hi < check.min_margin->value ? Clearance::kWeak : Clearance::kUnknown;
}

std::string ExactNumber(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

std::string ShortNumber(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

}  // namespace trainwreck
