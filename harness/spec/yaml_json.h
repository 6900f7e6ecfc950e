// YAML as JSON, for tests that hold scenario files against the JSON Schema as an editor would.
#pragma once

#include <yaml-cpp/yaml.h>

#include <string>

#include "harness/protocol/json.h"

namespace trainwreck {

inline Json YamlToJson(const YAML::Node& node) {
  if (node.IsMap()) {
    Json object = Json::object();
    for (const auto& entry : node) object[entry.first.Scalar()] = YamlToJson(entry.second);
    return object;
  }
  if (node.IsSequence()) {
    Json list = Json::array();
    for (const auto& element : node) list.push_back(YamlToJson(element));
    return list;
  }
  if (!node.IsScalar()) return nullptr;
  const std::string& text = node.Scalar();
  if (node.Tag() == "!") return text;
  if (text == "true" || text == "false") return text == "true";
  const Json number = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  return number.is_number() ? number : Json(text);
}

}  // namespace trainwreck
