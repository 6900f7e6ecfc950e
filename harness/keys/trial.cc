#include "harness/keys/trial.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace trainwreck {
namespace {

constexpr char kEvent[] = "event ";

// "resumed" of "event resumed.from_step of rank 0"; empty: it is no event's.
std::string EventOf(const std::string& record) {
  if (!record.starts_with(kEvent)) return "";
  return record.substr(sizeof kEvent - 1, record.find('.') - (sizeof kEvent - 1));
}

}  // namespace

bool KeyTrial::operator<(const KeyTrial& other) const {
  return std::tie(condition, changes, repeat) <
         std::tie(other.condition, other.changes, other.repeat);
}

bool MayBeNoise(const std::string& record) { return record.starts_with(kEvent); }

std::string FirstOtherRecord(const KeyObservation& a, const KeyObservation& b,
                             const std::set<std::string>& noise) {
  std::set<std::string> names;
  for (const auto* one : {&a, &b}) {
    for (const auto& [name, digest] : one->records) names.insert(name);
  }
  for (const std::string& name : names) {
    if (noise.contains(name)) continue;
    const auto x = a.records.find(name), y = b.records.find(name);
    if (x == a.records.end() || y == b.records.end() || x->second != y->second) return name;
  }
  return "";
}

bool IsRefused(const KeyObservation& seen, const KeyObservation& base) {
  if (seen.is_whole || seen.has_begun || !seen.is_usable) return false;
  std::set<std::string> known;
  for (const auto& [name, digest] : base.records) known.insert(EventOf(name));
  return std::all_of(seen.records.begin(), seen.records.end(), [&](const auto& record) {
    return known.contains(EventOf(record.first)) || EventOf(record.first).empty();
  });
}

}  // namespace trainwreck
