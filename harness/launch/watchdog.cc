#include "harness/launch/watchdog.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace trainwreck {
namespace {

const std::vector<Collective>& CallsOf(const RunTrace& trace, int rank) {
  static const std::vector<Collective> none;
  const auto found = trace.collectives.find(rank);
  return found == trace.collectives.end() ? none : found->second;
}

// Puts the last call of a rank into the fields under "waiting_..." or "lagging_...".
void Name(const RunTrace& trace, int rank, const std::string& role, Json& fields) {
  const std::vector<Collective>& calls = CallsOf(trace, rank);
  fields[role + "_rank"] = rank;
  fields[role + "_op"] = calls.empty() ? "" : calls.back().op;
  fields[role + "_call"] = calls.empty() ? -1 : calls.back().call;
  fields[role + "_step"] = calls.empty() ? trace.last_step(rank) : calls.back().step;
}

std::string WhoWaits(const Json& fields) {
  const int waiting = fields.at("waiting_rank").get<int>();
  const int lagging = fields.at("lagging_rank").get<int>();
  const std::string op = fields.at("waiting_op").get<std::string>();
  std::string state = fields.at("lagging_state").get<std::string>();
  std::replace(state.begin(), state.end(), '_', ' ');
  std::string where = fmt::format("step {}", fields.at("waiting_step").get<int>());
  if (!op.empty())
    where = fmt::format("{} (call {}, {})", op, fields.at("waiting_call").get<int>(), where);
  const double idle_s = fields.at("idle_s").get<double>();
  if (lagging < 0) {
    return fmt::format("no progress for {:.1f} s: rank {} came to {}, and no rank is known to lag",
                       idle_s, waiting, where);
  }
  if (waiting == lagging) {
    return fmt::format("no progress for {:.1f} s: rank {} is {} at {}", idle_s, waiting, state,
                       where);
  }
  if (fields.at("lagging_op").get<std::string>().empty() && fields.at("lagging_step") == -1 &&
      state != "running") {
    return fmt::format("no progress for {:.1f} s: rank {} waits at {}; rank {} {}", idle_s, waiting,
                       where, lagging,
                       state == "died" || state == "finished" ? "has " + state : "is " + state);
  }
  std::string last = fields.at("lagging_op").get<std::string>();
  last = last.empty()
             ? fmt::format("step {}", fields.at("lagging_step").get<int>())
             : fmt::format("{} (call {}, step {})", last, fields.at("lagging_call").get<int>(),
                           fields.at("lagging_step").get<int>());
  return fmt::format("no progress for {:.1f} s: rank {} waits at {}; rank {} ({}) came to {}",
                     idle_s, waiting, where, lagging, state, last);
}

}  // namespace

const char* ToString(RankState state) {
  switch (state) {
    case RankState::kRunning:
      return "running";
    case RankState::kStopped:
      return "stopped";
    case RankState::kDied:
      return "died";
    case RankState::kFinished:
      return "finished";
    case RankState::kLost:
      return "lost";
    case RankState::kSilent:
      return "silent";
    case RankState::kCutOff:
      return "cut_off";
  }
  return "";
}

Json DescribeStall(const RunTrace& trace, const std::vector<RankState>& ranks, double idle_s,
                   const std::string& dead_link) {
  // How far a rank has come; those that cannot go on come first among the laggards.
  auto progress = [&](int rank) {
    return std::make_tuple(static_cast<int>(CallsOf(trace, rank).size()), trace.last_step(rank));
  };
  // Those whose peers are lost with a machine may die of that.
  auto gone = [&](int rank) {
    if (ranks[rank] == RankState::kLost) return 2;
    const RankState state = ranks[rank];
    const bool is_gone = state == RankState::kDied || state == RankState::kStopped;
    return is_gone || state == RankState::kCutOff ? 1 : 0;
  };
  const int count = static_cast<int>(ranks.size());
  int lagging = 0;
  for (int rank = 1; rank < count; ++rank) {
    if (ranks[rank] == RankState::kSilent) continue;
    if (ranks[lagging] == RankState::kSilent) {
      lagging = rank;
    } else if (gone(rank) != gone(lagging)) {
      if (gone(rank) > gone(lagging)) lagging = rank;
    } else if (progress(rank) < progress(lagging)) {
      lagging = rank;
    }
  }
  int waiting = -1;
  for (int rank = 0; rank < count; ++rank) {
    if (rank == lagging && count > 1) continue;
    if (waiting < 0 ||
        (ranks[rank] == RankState::kRunning) > (ranks[waiting] == RankState::kRunning) ||
        ((ranks[rank] == RankState::kRunning) == (ranks[waiting] == RankState::kRunning) &&
         progress(rank) > progress(waiting))) {
      waiting = rank;
    }
  }
  const bool is_behind = [&] {
    if (count == 1 || gone(lagging) > 0) return true;
    if (!dead_link.empty()) return false;  // what one has, and the other has not, was on its way
    return ranks[waiting] != RankState::kSilent && progress(lagging) < progress(waiting);
  }();
  if (!is_behind &&
      (ranks[waiting] == RankState::kSilent || progress(waiting) < progress(lagging))) {
    waiting = lagging;
  }
  Json fields;
  Name(trace, waiting, "waiting", fields);
  Name(trace, is_behind ? lagging : -1, "lagging", fields);
  fields["lagging_state"] = is_behind ? ToString(ranks[lagging]) : "";
  fields["dead_link"] = dead_link;
  fields["idle_s"] = idle_s;
  return fields;
}

std::string StallSentence(const Json& fields) {
  const std::string dead_link = fields.at("dead_link").get<std::string>();
  return WhoWaits(fields) + (dead_link.empty() ? "" : "; " + dead_link);
}

std::optional<Json> CollectiveComparer::Next(const RunTrace& trace) {
  if (found_ || trace.collectives.size() < 2) return std::nullopt;
  for (;; ++compared_) {
    const std::size_t i = compared_;
    int first_rank = -1;
    std::size_t seen = 0;
    for (const auto& [rank, calls] : trace.collectives) {
      if (i >= calls.size()) continue;
      ++seen;
      if (first_rank < 0) {
        first_rank = rank;
        continue;
      }
      const Collective& a = CallsOf(trace, first_rank)[i];
      const Collective& b = calls[i];
      if (a.op == b.op && a.shape == b.shape && a.dtype == b.dtype) continue;
      found_ = true;
      return Json{{"call", a.call},     {"rank_a", first_rank}, {"op_a", a.op},
                  {"step_a", a.step},   {"shape_a", a.shape},   {"dtype_a", a.dtype},
                  {"rank_b", rank},     {"op_b", b.op},         {"step_b", b.step},
                  {"shape_b", b.shape}, {"dtype_b", b.dtype}};
    }
    if (seen < trace.collectives.size())
      return std::nullopt;  // some rank has not come to this call yet
  }
}

}  // namespace trainwreck
