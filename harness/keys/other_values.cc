#include "harness/keys/other_values.h"

#include <algorithm>
#include <cmath>

namespace trainwreck {
namespace {

std::vector<Json> Integers(const ParamInfo& info, std::int64_t base) {
  if (base == 0) return {1, 2, 10, 3, 1000};
  std::vector<Json> values = {base + base, 1, base / 2, base + 1};
  if (info.min) values.push_back(static_cast<std::int64_t>(std::ceil(*info.min)));
  return values;
}

std::vector<Json> Numbers(const ParamInfo& info, double base) {
  if (base == 0) return {1.0, 0.1, 0.001, 0.5, 1000.0};
  std::vector<Json> values = {2 * base, base / 2, 0.0};
  for (const auto& bound : {info.min, info.max}) {
    if (bound) values.push_back(*bound);
  }
  values.push_back(1000 * base);
  values.push_back(base / 1000);
  return values;
}

std::vector<Json> Candidates(const ParamInfo& info, const Json& base) {
  switch (info.type) {
    case ValueType::kBool:
      return {true, false};
    case ValueType::kInt:
      return Integers(info, base.is_number() ? base.get<std::int64_t>() : 0);
    case ValueType::kNumber:
      return Numbers(info, base.is_number() ? base.get<double>() : 0);
    case ValueType::kString:
      if (!info.choices.empty()) return {info.choices.begin(), info.choices.end()};
      return {"another", "*", ""};  // the second is a glob that matches all
    case ValueType::kStringList:
    case ValueType::kIntList:
      return {};
  }
  return {};
}

}  // namespace

std::vector<Json> OtherValues(const ParamInfo& info, const Json& base) {
  std::vector<Json> values;
  for (Json& value : Candidates(info, base)) {
    const bool is_new =
        value != base && std::find(values.begin(), values.end(), value) == values.end();
    if (is_new && CheckValue(info, value).empty()) values.push_back(std::move(value));
  }
  return values;
}

}  // namespace trainwreck
