// JSON as this project writes it: nlohmann::json, with non-finite numbers as the strings "nan",
// "inf" and "-inf" (JSON has no other way to carry them).
//
//   Json record;
//   record["loss"] = EncodeNumber(loss);
//   double loss = DecodeNumber(record["loss"]).value();
#pragma once

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace trainwreck {

using Json = nlohmann::json;  // keys are sorted, so a dump is a canonical text

inline Json EncodeNumber(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

// Empty when the value is no number in either form.
inline std::optional<double> DecodeNumber(const Json& value) {
  if (value.is_number()) return value.get<double>();
  if (value.is_boolean()) return value.get<bool>() ? 1.0 : 0.0;
  if (!value.is_string()) return std::nullopt;
  const std::string& text = value.get_ref<const std::string&>();
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-inf") return -std::numeric_limits<double>::infinity();
  return std::nullopt;
}

}  // namespace trainwreck
