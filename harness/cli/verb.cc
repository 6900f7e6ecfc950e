#include "harness/cli/verb.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace trainwreck {
namespace {

std::vector<Verb>& Registered() {
  static std::vector<Verb> verbs;
  return verbs;
}

}  // namespace

const std::vector<Verb>& Verbs() {
  std::vector<Verb>& verbs = Registered();
  std::sort(verbs.begin(), verbs.end(), [](const Verb& a, const Verb& b) {
    return std::tie(a.place, a.name) < std::tie(b.place, b.name);
  });
  return verbs;
}

void RegisterVerb(Verb verb) { Registered().push_back(std::move(verb)); }

}  // namespace trainwreck
