#include "harness/spec/strength.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "harness/yaml/fields.h"

namespace trainwreck {
namespace {

constexpr std::string_view kReference = "$strength";
constexpr std::string_view kQuotient = " / $strength";

std::optional<Strength> ReadStrength(const YamlNode& node, Errors& errors) {
  if (!CheckFilledMap(node, "'strength'", errors, "such as {default: 1000, from: 2, to: 1.0e+5}")) {
    return std::nullopt;
  }
  const std::size_t errors_before = errors.size();
  Strength strength;
  Fields fields(node, "'strength'", errors);
  for (const auto& [key, value] :
       {std::pair{"default", &strength.own}, {"from", &strength.from}, {"to", &strength.to}}) {
    const YamlNode* number = fields.Require(key);
    if (number == nullptr) continue;
    *value = ReadNumber(*number, std::string("'") + key + "'", errors).value_or(1);
    if (!(*value > 0) || !std::isfinite(*value)) {
      errors.Add(*number, std::string("'") + key + "' must be more than 0");
    }
  }
  fields.RejectRest();
  if (errors.size() == errors_before && !strength.Allows(strength.own)) {
    errors.Add(*node.FindKey("default"), "'default' must lie between 'from' and 'to'");
  }
  strength.value = strength.own;
  return strength;
}

// What stands in the place of a text that mentions the strength; empty: it does not.
std::optional<double> ValueOf(const std::string& text, double strength) {
  if (text == kReference) return strength;
  if (!text.ends_with(kQuotient)) return std::nullopt;
  const std::string number = text.substr(0, text.size() - kQuotient.size());
  char* end = nullptr;
  const double dividend = std::strtod(number.c_str(), &end);
  if (number.empty() || *end != '\0') return std::nullopt;
  return dividend / strength;
}

class Replacer {
 public:
  Replacer(const std::optional<Strength>& strength, Errors& errors)
      : strength_(strength), errors_(errors) {}

  void Walk(YamlNode& node, bool may_stand) {
    for (std::size_t i = 0; i < node.items.size(); ++i) {
      const std::string key = node.IsMap() ? node.keys[i].text : "";
      if (key == "healthy" || key == "symptoms" || key == "quality" || key == "agree") continue;
      const bool begins = key == "recipe" || key == "with" || key == "set" || key == "scale";
      Walk(node.items[i], may_stand || begins);
    }
    if (may_stand && node.IsScalar() && node.is_plain) Replace(node);
  }

  bool is_used() const { return is_used_; }

 private:
  void Replace(YamlNode& node) {
    const std::optional<double> value = ValueOf(node.text, strength_ ? strength_->value : 1);
    if (!value) return;
    is_used_ = true;
    if (!strength_) {
      errors_.Add(node, "the scenario has no 'strength'",
                  "such as strength: {default: 1000, from: 2, to: 1.0e+5}");
    }
    node.text = fmt::format("{}", *value);
  }

  const std::optional<Strength>& strength_;
  Errors& errors_;
  bool is_used_ = false;
};

}  // namespace

bool Strength::Allows(double wanted) const {
  return wanted >= std::min(from, to) && wanted <= std::max(from, to);
}

std::string Strength::Text() const {
  std::string text = fmt::format("{:g}", value);
  if (!calibrated) return text;
  text += value == *calibrated ? fmt::format(", calibrated; the scenario itself says {:g}", own)
                               : fmt::format(": the calibrated {:g} is not between {:g} and {:g}",
                                             *calibrated, from, to);
  return text + (remark.empty() ? "" : "; " + remark);
}

std::optional<Strength> ApplyStrength(YamlNode& root, const std::string& scenario,
                                      const Calibration& calibration, Errors& errors) {
  if (!root.IsMap()) return std::nullopt;
  std::optional<Strength> strength;
  const YamlNode* node = root.Find("strength");
  if (node != nullptr) strength = ReadStrength(*node, errors);
  const auto measured = calibration.strengths.find(scenario);
  if (strength && measured != calibration.strengths.end()) {
    if (strength->Allows(measured->second)) strength->value = measured->second;
    strength->calibrated = measured->second;
    strength->remark = calibration.remark;
  }
  Replacer replacer(strength, errors);
  replacer.Walk(root, /*may_stand=*/false);
  if (strength && !replacer.is_used()) {
    errors.Add(*root.FindKey("strength"), "nothing of the scenario says $strength",
               "such as inject: {hot: {fault: recipe.high_lr, with: {factor: $strength}}}");
  }
  return strength;
}

}  // namespace trainwreck
