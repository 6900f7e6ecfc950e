#include "harness/targets/target_hints.h"

#include <algorithm>
#include <set>
#include <utility>

#include "harness/yaml/fields.h"

namespace trainwreck {
namespace {

std::string DidYouMeanName(const std::string& name) { return "did you mean '" + name + "'?"; }

std::string LastWord(const std::string& name) { return name.substr(name.rfind('.') + 1); }

}  // namespace

std::string SuggestPlaceholder(const std::string& name, const std::vector<std::string>& known) {
  for (const std::string& candidate : known) {
    if (LastWord(candidate) == LastWord(name)) return DidYouMeanName(candidate);
  }
  return SuggestName(name, known);
}

std::string SuggestType(const std::string& name, const std::vector<std::string>& known) {
  static constexpr std::pair<const char*, const char*> kTheirs[] = {
      {"float", "number"}, {"double", "number"}, {"real", "number"},  {"integer", "int"},
      {"str", "string"},   {"text", "string"},   {"boolean", "bool"}, {"list", "strings"}};
  for (const auto& [theirs, ours] : kTheirs) {
    if (name == theirs) return DidYouMeanName(ours);
  }
  return SuggestName(name, known);
}

std::optional<ForeignPlaceholder> FindForeignPlaceholder(const std::string& text,
                                                         const std::vector<std::string>& known) {
  for (const auto& [open, close] : {std::pair{"${", "}"}, std::pair{"%(", ")s"}}) {
    for (std::size_t begin = text.find(open); begin != std::string::npos;
         begin = text.find(open, begin + 1)) {
      const std::size_t end = text.find(close, begin);
      if (end == std::string::npos) break;
      const std::string name = text.substr(begin + 2, end - begin - 2);
      if (std::count(known.begin(), known.end(), name) == 0) continue;
      return ForeignPlaceholder{text.substr(begin, end - begin + std::string(close).size()), name,
                                begin};
    }
  }
  return std::nullopt;
}

std::string GroupGivenTwice(const std::string& pattern) {
  std::set<std::string> seen;
  for (std::size_t at = pattern.find("(?P<"); at != std::string::npos;
       at = pattern.find("(?P<", at + 1)) {
    std::string name = pattern.substr(at + 4, pattern.find('>', at) - at - 4);
    if (!seen.insert(name).second) return name;
  }
  return "";
}

std::string PatternHint(const std::string& pattern) {
  for (const char* look : {"(?=", "(?!", "(?<=", "(?<!"}) {
    if (pattern.find(look) != std::string::npos) {
      return std::string("RE2 has no '") + look + "': match what stands there as well";
    }
  }
  return "the syntax is RE2's; in single quotes backslashes stand for themselves";
}

}  // namespace trainwreck
