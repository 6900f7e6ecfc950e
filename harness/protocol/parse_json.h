// Parsing JSON that others have written: targets, files that may be damaged, caches. A value that
// is nested deep ends the process when it is copied, printed or destroyed, since all of that
// recurses; so such a text is refused before anything is built of it. Every foreign text is parsed
// here.
//
//   const Json json = TryParseJson(line);
//   if (!json.is_object()) return Complain("not a JSON object");
#pragma once

#include <istream>
#include <string>
#include <string_view>

#include "harness/protocol/json.h"

namespace trainwreck {

// More than 128 lists and objects in each other. Looks at brackets alone, in one pass.
bool IsNestedTooDeep(std::string_view json_text);

// Discarded (Json::is_discarded) when the text is no JSON or nested too deep.
Json TryParseJson(std::string_view text);

// Throws std::runtime_error: "not JSON: ..." or "nested more than 128 deep".
Json ParseJson(std::string_view text);
Json ParseJson(std::istream& text);

}  // namespace trainwreck
