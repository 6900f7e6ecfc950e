// Makes foreign texts safe to print and to store (a scenario's title, a target's description, a
// dying rank's last words): a terminal obeys control characters.
#pragma once

#include <string>

namespace trainwreck {

// The text as valid UTF-8 without control characters. A newline and a tab stay. Other control
// characters become text such as "\x1b". Those beyond ASCII, and characters that change the writing
// direction, become text such as "\u009b" (which JSON can hold, too). Invalid bytes become U+FFFD.
// Characters that XML 1.0 cannot hold are replaced too.
std::string CleanText(const std::string& text);

}  // namespace trainwreck
