#include "harness/protocol/parse_json.h"

#include <iterator>
#include <stdexcept>

namespace trainwreck {

// Up to the first mistake of the text the brackets are counted as a parser would; after it no
// parser goes on.
bool IsNestedTooDeep(std::string_view json_text) {
  constexpr int kMostLevels = 128;
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < json_text.size(); ++i) {
    const char c = json_text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kMostLevels) return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

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
