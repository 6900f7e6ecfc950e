#include "harness/protocol/parse_json.h"

#include <iterator>
#include <stdexcept>

namespace trainwreck {

Json TryParseJson(std::string_view text) {
  if (IsNestedTooDeep(text)) return Json(Json::value_t::discarded);
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

Json ParseJson(std::string_view text) {
  if (IsNestedTooDeep(text)) throw std::runtime_error("nested more than 128 deep");
  try {
    return Json::parse(text);
  } catch (const Json::exception& error) {
    const std::string what = error.what();  // "[json.exception.parse_error.101] parse error at ..."
    throw std::runtime_error("not JSON: " + what.substr(what.find("] ") + 2));
  }
}

Json ParseJson(std::istream& text) {
  return ParseJson(std::string(std::istreambuf_iterator<char>(text), {}));
}

}  // namespace trainwreck
