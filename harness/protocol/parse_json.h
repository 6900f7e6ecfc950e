// Parsing JSON that others have written: targets, files that may be damaged, caches. Copying,
// printing or destroying a deeply nested value recurses and can end the process, so such a text is
// refused before any value is built. Every foreign text is parsed here.
//
//   const Json json = TryParseJson(line);
//   if (!json.is_object()) return Complain("not a JSON object");
#pragma once

#include <istream>
#include <string>
#include <string_view>

#include "harness/protocol/json.h"

namespace trainwreck {

// Whether lists and objects are nested more than 128 deep. Looks only at brackets, in one pass.
bool IsNestedTooDeep(std::string_view json_text);

// The value; discarded (Json::is_discarded) when the text is no JSON or nested too deep.
Json TryParseJson(std::string_view text);

// Throws std::runtime_error: "not JSON: ..." or "nested more than 128 deep".
Json ParseJson(std::string_view text);
Json ParseJson(std::istream& text);

}  // namespace trainwreck
