#include "harness/cli/verbs/dry_run.h"

#include <algorithm>
#include <string>

#include "harness/campaign/campaign.h"
#include "harness/campaign/claims.h"

namespace trainwreck {
namespace {

std::string TriggerText(const Trigger& trigger) {
  std::string text;
  if (trigger.at) text += " at " + std::to_string(*trigger.at);
  if (trigger.from) text += " from " + std::to_string(*trigger.from);
  if (trigger.to) text += " to " + std::to_string(*trigger.to);
  if (trigger.every != 1) text += " every " + std::to_string(trigger.every);
  for (std::size_t i = 0; i < trigger.ranks.size(); ++i) {
    text += (i == 0 ? " ranks " : ",") + std::to_string(trigger.ranks[i]);
  }
  if (!trigger.phase.empty()) text += " phase " + trigger.phase;
  if (trigger.attempt) text += " attempt " + std::to_string(*trigger.attempt);
  if (trigger.probability != 1.0) text += " probability " + std::to_string(trigger.probability);
  return text;
}

// What `recipe` has otherwise than `base`.
std::string Differences(const Recipe& base, const Recipe& recipe) {
  std::string text;
  for (const auto& [key, value] : recipe) {
    auto before = base.find(key);
    if (before != base.end() && before->second == value) continue;
    text += "      " + key + ": " + (before == base.end() ? "-" : before->second.dump()) + " -> " +
            value.dump() + "\n";
  }
  return text;
}

void PrintArm(std::ostream& out, const Case& one, const ArmPlan& arm, const Run* control) {
  out << "    " << ToString(arm.kind) << " " << arm.name;
  if (arm.is_undo) {
    out << "  undo: only takes the fault back, so it is not run\n";
    return;
  }
  if (arm.runs.empty()) {
    out << "  no runs\n";
    return;
  }
  const Run& first = arm.runs.front();
  out << "  " << arm.runs.size() << (arm.runs.size() == 1 ? " run" : " runs") << " of "
      << first.steps << " steps";
  if (first.ranks > 1) out << " on " << first.ranks << " ranks";
  out << "\n";
  for (const AppliedAmendment& amendment : first.amendments) {
    out << "      fault " << amendment.fault_id << " (" << amendment.fault << "): " << amendment.key
        << " " << amendment.before.dump() << " -> " << amendment.after.dump() << "\n";
  }
  for (const PlannedFault& fault : first.plan.faults) {
    out << "      fault " << fault.id << " (" << fault.fault << ")" << TriggerText(fault.trigger)
        << ":";
    for (const auto& [name, value] : fault.with) out << " " << name << "=" << value.dump();
    out << "\n";
  }
  if (control != nullptr && control != &first) {
    out << Differences(control->plan.recipe, first.plan.recipe);
  }
  for (const Claim& claim : ClaimsOf(one, arm)) {
    out << "      " << (claim.expected ? "must hold: " : "must not hold: ") << claim.check->name
        << ": " << claim.check->formula.text() << "\n";
  }
}

}  // namespace

void PrintPlan(std::ostream& out, const std::vector<Case>& cases) {
  for (const Case& one : cases) {
    out << one.name << "  (" << one.scenario->title << ")\n";
    if (!one.skip_reason.empty()) {
      out << "    skipped: " << one.skip_reason << "\n";
      continue;
    }
    const Run* control = nullptr;
    for (const ArmPlan& arm : one.arms) {
      if (arm.kind == ArmKind::kControl && !arm.runs.empty()) control = &arm.runs.front();
    }
    for (const ArmPlan& arm : one.arms) PrintArm(out, one, arm, control);
  }
  const int runs = CountRuns(cases);
  out << "# " << cases.size() << (cases.size() == 1 ? " case, " : " cases, ") << runs
      << (runs == 1 ? " run" : " runs") << "\n";
}

}  // namespace trainwreck
