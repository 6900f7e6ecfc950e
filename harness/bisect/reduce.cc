#include "harness/bisect/reduce.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <vector>

namespace trainwreck {
namespace {

std::vector<ChangeSet> Split(const ChangeSet& changes, std::size_t parts) {
  std::vector<ChangeSet> split(parts);
  std::size_t index = 0;
  for (int change : changes) split[index++ * parts / changes.size()].insert(change);
  return split;
}

ChangeSet Without(const ChangeSet& changes, const ChangeSet& part) {
  ChangeSet rest;
  std::set_difference(changes.begin(), changes.end(), part.begin(), part.end(),
                      std::inserter(rest, rest.end()));
  return rest;
}

}  // namespace

ChangeSet Reduce(const ChangeSet& all, const std::function<bool(const ChangeSet&)>& flips) {
  std::map<ChangeSet, bool> asked;
  auto ask = [&](const ChangeSet& changes) {
    const auto known = asked.find(changes);
    if (known != asked.end()) return known->second;
    return asked.emplace(changes, flips(changes)).first->second;
  };
  auto smaller = [&](const ChangeSet& changes,
                     std::size_t parts) -> std::optional<std::pair<ChangeSet, std::size_t>> {
    const std::vector<ChangeSet> split = Split(changes, parts);
    for (const ChangeSet& part : split) {
      if (ask(part)) return std::pair(part, std::size_t{2});
    }
    for (const ChangeSet& part : split) {
      const ChangeSet rest = Without(changes, part);
      if (parts > 2 && ask(rest)) return std::pair(rest, parts - 1);
    }
    return std::nullopt;
  };
  ChangeSet changes = all;
  for (std::size_t parts = 2; changes.size() >= 2;) {
    if (const auto found = smaller(changes, parts)) {
      changes = found->first;
      parts = std::min(std::max<std::size_t>(found->second, 2), changes.size());
    } else if (parts < changes.size()) {
      parts = std::min(2 * parts, changes.size());
    } else {
      break;
    }
  }
  return changes;
}

}  // namespace trainwreck
