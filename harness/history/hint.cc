#include "harness/history/hint.h"

#include <optional>
#include <stdexcept>

#include "harness/history/missing_seeds.h"

namespace trainwreck {
namespace {

// How far back a run is looked for that tells code from environment.
constexpr int kLookBack = 200;

bool HasSameEnvironment(const Record& x, const Record& y) {
  bool in_common = false;
  for (const CaseRecord& one : x.cases) {
    for (const CaseRecord& other : y.cases) {
      if (one.name != other.name) continue;
      in_common = true;
      if (one.environment != other.environment) return false;
    }
  }
  return in_common;
}

// A's program in B's environment; empty: the history has no such run.
std::optional<std::int64_t> FindBetween(const Comparison& comparison, RunHistory& history) {
  if (comparison.a.target_digest.empty()) return std::nullopt;
  for (const RecordSummary& run : history.List(kLookBack)) {
    if (run.target_digest != comparison.a.target_digest) continue;
    const auto record = history.Load(run.id);
    if (record && HasSameEnvironment(*record, comparison.b)) return run.id;
  }
  return std::nullopt;
}

}  // namespace

std::string HintFor(const Comparison& comparison, const std::string& b, RunHistory* history) {
  if (comparison.environment.empty() || comparison.same_code) {
    return comparison.CountMargins(Answer::kUnknown) > 0 ? SeedsHint(comparison) : "";
  }
  try {
    if (const auto run = history == nullptr ? std::nullopt : FindBetween(comparison, *history)) {
      const std::string id = std::to_string(*run);
      return "run " + id + " has A's program in B's environment: trainwreck compare " + id + " " +
             b;
    }
  } catch (const std::runtime_error&) {  // a damaged history: a hint is only nice to have
  }
  return "to tell code from environment, run A's commit in B's environment and compare that";
}

}  // namespace trainwreck
