// Lists of words as a sentence has them, and words as a shell has them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trainwreck {

// "a, b, c"
template <typename Words>
std::string Join(const Words& words, std::string_view separator = ", ") {
  std::string text;
  bool is_first = true;
  for (const auto& word : words) {
    if (!is_first) text += separator;
    is_first = false;
    text += word;
  }
  return text;
}

// As it can be pasted into a shell: as it is, or in quotes.
std::string ShellWord(const std::string& word);

// The words of a line that ShellWord's words were put together to, with their quotes resolved.
std::vector<std::string> SplitShellWords(const std::string& line);

}  // namespace trainwreck
