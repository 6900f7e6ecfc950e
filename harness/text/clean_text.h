// Texts that may come from anywhere (a scenario's title, a target's description, a dying rank's
// last words), made safe to print and to store: a terminal obeys control characters.
#pragma once

#include <string>

namespace trainwreck {

// Valid UTF-8 without control characters: a newline and a tab stay, other controls become "\x1b",
// those beyond ASCII and what turns the direction of writing "\u009b" (which JSON can hold, too),
// broken bytes U+FFFD. What XML 1.0 cannot hold is replaced too.
std::string CleanText(const std::string& text);

}  // namespace trainwreck
