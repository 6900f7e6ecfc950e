#include "harness/cli/claims.h"

#include <algorithm>
#include <set>

#include "harness/report/console.h"

namespace trainwreck {
namespace {

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// An empty list in the file means all.
bool Names(const std::vector<std::string>& names, const std::string& name) {
  return names.empty() || Contains(names, name);
}

}  // namespace

std::vector<Claim> ClaimsOf(const Case& one, const ArmPlan& arm) {
  const Scenario& scenario = *one.scenario;
  std::vector<Claim> claims;
  const bool is_remedy = arm.kind == ArmKind::kRemedy && arm.remedy != nullptr;
  const bool is_healthy = arm.kind == ArmKind::kControl || is_remedy;
  for (const Check& check : scenario.healthy) {
    if (!is_healthy || !AppliesTo(check.when, *one.point)) continue;
    if (is_remedy && Contains(arm.remedy->waives, check.name)) continue;
    claims.push_back({&check, "healthy", true});
  }
  for (const Check& check : scenario.symptoms) {
    if (!AppliesTo(check.when, *one.point)) continue;
    switch (arm.kind) {
      case ArmKind::kControl:
        claims.push_back({&check, "symptom", false});
        break;
      case ArmKind::kFault:
        claims.push_back({&check, "symptom", true});
        break;
      case ArmKind::kRemedy:
        if (is_remedy && Names(arm.remedy->resolves, check.name)) {
          claims.push_back({&check, "symptom", false});
        }
        break;
      case ArmKind::kDecoy:
        if (arm.decoy != nullptr && Names(arm.decoy->keeps, check.name)) {
          claims.push_back({&check, "symptom", true});
        }
        break;
      case ArmKind::kReference:
        break;
    }
  }
  if (is_remedy && scenario.quality && AppliesTo(scenario.quality->when, *one.point) &&
      !Contains(arm.remedy->waives, "quality")) {
    claims.push_back({&*scenario.quality, "quality", true});
  }
  return claims;
}

std::vector<std::string> ArmsNeeded(const Case& one, const ArmPlan& arm) {
  std::set<std::string> needed = {arm.name};
  for (const Claim& claim : ClaimsOf(one, arm)) {
    for (const std::string& name : claim.check->formula.arms()) needed.insert(name);
  }
  return {needed.begin(), needed.end()};
}

std::string MarginText(const formula::Reading& reading) {
  const auto& margin = reading.margins[static_cast<int>(reading.main_unit)];
  if (!margin) return "";
  std::string text = FormatMargin(margin->lo, reading.main_unit);
  if (margin->lo != margin->hi) text += " to " + FormatMargin(margin->hi, reading.main_unit);
  return text;
}

}  // namespace trainwreck
