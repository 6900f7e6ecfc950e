#include "harness/judge/wording.h"

namespace trainwreck {

std::string SeedList(const std::vector<int>& seeds) {
  std::string text = seeds.size() == 1 ? "seed " : "seeds ";
  for (std::size_t i = 0; i < seeds.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(seeds[i]);
  }
  return text;
}

std::string AmountText(const formula::Amount& amount) {
  const std::string name = formula::ToString(amount.unit);
  return ShortNumber(amount.value) + (name.empty() ? "" : " " + name);
}

std::string CountedSeeds(const std::string& what, const std::vector<int>& seeds) {
  if (seeds.empty()) return "";
  return ", " + what + " in " + std::to_string(seeds.size()) + " (" + SeedList(seeds) + ")";
}

Words WordsOf(const ArmPlan& arm, const Claim& claim) {
  if (claim.role == CheckRole::kAgree) {
    return {"twin '" + arm.name + "' must agree with control", "differs"};
  }
  if (claim.role == CheckRole::kNotices) {
    return {"with '" + arm.control + "' planted in both, twin '" + arm.twin->name +
                "' must differ from control",
            "agrees"};
  }
  return {std::string("expected ") + (claim.expected ? "true" : "false"),
          std::string("seen ") + (claim.expected ? "false" : "true")};
}

}  // namespace trainwreck
