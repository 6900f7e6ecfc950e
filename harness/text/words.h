// Lists of words for sentences, and words for a shell.
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

// Without newlines at its end; the others become spaces.
std::string InOneLine(std::string text);

// The word as it can be pasted into a shell: unchanged, or in quotes.
std::string ShellWord(const std::string& word);

// The words of a line that was made of ShellWord's results, without their quotes.
std::vector<std::string> SplitShellWords(const std::string& line);

}  // namespace trainwreck
