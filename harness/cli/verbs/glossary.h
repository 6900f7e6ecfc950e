// Words that need no target to be explained: verdicts, their classes, exit statuses.
#pragma once

#include <string>
#include <vector>

namespace trainwreck {

struct GlossaryEntry {
  std::string kind;  // "verdict", "verdict class", "exit status"
  std::string name;
  std::string meaning;
  std::string remedy;  // what to do about it; may be empty
};

std::vector<GlossaryEntry> Glossary();

}  // namespace trainwreck
