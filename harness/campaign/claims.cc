#include "harness/campaign/claims.h"

#include <set>

#include "harness/report/console.h"

namespace trainwreck {

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
