// How deep a JSON text is nested: see parse_json.h, which declares this for all but the trace's
// reader. That header is no part of the library that every file of the trainer depends on.
#include <string_view>

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

}  // namespace trainwreck
