#include "harness/picture/ranks.h"

#include <string>
#include <vector>

#include "harness/launch/last_calls.h"
#include "harness/picture/curve.h"
#include "harness/text/clean_text.h"

namespace trainwreck {
namespace {

constexpr int kMostRanks = 64;

Json Encode(const LastCall& call) {
  const bool is_over = call.state == CallState::kEnded;
  return {call.call,
          call.step,
          CleanText(call.op + " " + call.shape + (call.dtype.empty() ? "" : " " + call.dtype)),
          Rounded(call.began_s),
          is_over ? Json(Rounded(call.ended_s)) : Json(),
          ToString(call.state)};
}

}  // namespace

Json CallsOf(const std::map<int, RunResult>& by_seed) {
  const RunResult* shown = nullptr;
  int shown_seed = 0;
  for (const auto& [seed, run] : by_seed) {
    const bool ended_well = run.end == RunEnd::kCompleted || run.end == RunEnd::kDecided;
    if (shown != nullptr && ended_well) continue;
    shown = &run;
    shown_seed = seed;
    if (!ended_well) break;
  }
  if (shown == nullptr || shown->trace.world_size < 2) return {};
  Json ranks = Json::array();
  bool is_empty = true;
  for (int rank = 0; rank < std::min(shown->trace.world_size, kMostRanks); ++rank) {
    Json calls = Json::array();
    for (const LastCall& call : ReadLastCalls(shown->folder, rank)) calls.push_back(Encode(call));
    is_empty &= calls.empty();
    ranks.push_back(std::move(calls));
  }
  if (is_empty) return {};
  return {{"seed", shown_seed},
          {"end", std::string(ToString(shown->end)) + ": " + CleanText(shown->detail)},
          {"ranks", std::move(ranks)}};
}

}  // namespace trainwreck
