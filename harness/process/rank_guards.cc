#include "harness/process/rank_guards.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "harness/protocol/parse_json.h"

namespace trainwreck {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLostAfterVariable = "TRAINWRECK_GUARD_LOST_AFTER";

GuardPace::Duration LostAfter(double scale) {
  const char* wanted = std::getenv(kLostAfterVariable);
  const double seconds = wanted != nullptr ? std::atof(wanted) : 0;
  return GuardPace::Duration(seconds > 0 ? seconds : 5 * scale);
}

// "rank3.json" -> 3
std::optional<int> RankOfFile(const std::string& name) {
  int rank = -1, end = 0;
  if (std::sscanf(name.c_str(), "rank%d.json%n", &rank, &end) != 1) return std::nullopt;
  if (end != static_cast<int>(name.size()) || rank < 0) return std::nullopt;
  return rank;
}

std::optional<GuardedRank> RankFrom(const Json& json) {
  try {
    GuardedRank rank;
    rank.host = json.at("host").get<std::string>();
    rank.pid = json.at("pid").get<int>();
    rank.state = json.at("state").get<std::string>();
    rank.code = json.at("code").get<int>();
    rank.signal = json.at("signal").get<int>();
    rank.beat = json.at("beat").get<std::int64_t>();
    rank.trace_bytes = json.at("trace_bytes").get<std::int64_t>();
    rank.output_bytes = json.value("output_bytes", rank.output_bytes);  // not of older guards
    rank.addresses = json.value("addresses", rank.addresses);
    rank.unanswered = json.value("unanswered", rank.unanswered);
    rank.down = json.value("down", rank.down);
    for (const Json& one : json.at("obeyed")) {
      ObeyedOrder obeyed{one.at("id").get<int>(), one.at("before").get<std::string>(),
                         one.at("processes").get<int>()};
      if (one.contains("after")) {
        obeyed.answer = {obeyed.before, one.at("after").get<std::string>(),
                         one.at("status").get<int>(), one.at("words").get<std::string>()};
      }
      rank.obeyed.push_back(std::move(obeyed));
    }
    for (const Json& one : json.at("before")) {
      rank.before.push_back(
          {one.at("pid").get<int>(), one.at("code").get<int>(), one.at("signal").get<int>()});
    }
    return rank;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

}  // namespace

GuardPace::GuardPace(int ranks)
    : scale(std::max(1.0, ranks / 512.0)), lost_after(LostAfter(scale)) {}

std::string GuardFolder(const std::string& run_folder, const std::string& phase, int attempt) {
  return run_folder + "/" + kGuardFolderBegin + phase + "." + std::to_string(attempt);
}

std::string GuardFile(const std::string& guard_folder, int rank) {
  return guard_folder + "/rank" + std::to_string(rank) + ".json";
}

Json ToJson(const GuardedRank& rank) {
  Json obeyed = Json::array();
  for (const ObeyedOrder& one : rank.obeyed) {
    Json json = {{"id", one.id}, {"before", one.before}, {"processes", one.processes}};
    if (one.answer) {
      json.update({{"after", one.answer->after},
                   {"status", one.answer->status},
                   {"words", one.answer->words}});
    }
    obeyed.push_back(std::move(json));
  }
  Json before = Json::array();
  for (const EndedLife& one : rank.before) {
    before.push_back({{"pid", one.pid}, {"code", one.code}, {"signal", one.signal}});
  }
  return {{"beat", rank.beat},
          {"host", rank.host},
          {"pid", rank.pid},
          {"state", rank.state},
          {"code", rank.code},
          {"signal", rank.signal},
          {"trace_bytes", rank.trace_bytes},
          {"output_bytes", rank.output_bytes},
          {"addresses", rank.addresses},
          {"unanswered", rank.unanswered},
          {"down", rank.down},
          {"obeyed", std::move(obeyed)},
          {"before", std::move(before)}};
}

Json ToJson(const GuardOrder& order) {
  Json json = {{"id", order.id}, {"rank", order.rank}};
  if (order.command) {
    json["command"] = ToJson(*order.command);
  } else {
    json.update({{"signal", order.signal}, {"seconds", order.seconds}});
  }
  return json;
}

GuardOrder OrderFromJson(const Json& json) {
  GuardOrder order{.id = json.at("id").get<int>(), .rank = json.at("rank").get<int>()};
  if (json.contains("command")) {
    order.command = NodeCommandFromJson(json["command"]);
  } else {
    order.signal = json.at("signal").get<int>();
    order.seconds = json.at("seconds").get<double>();
  }
  return order;
}

std::map<int, GuardedRank> ReadGuards(const std::string& guard_folder) {
  std::map<int, GuardedRank> ranks;
  std::error_code error;
  for (fs::directory_iterator entry(guard_folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::optional<int> rank = RankOfFile(entry->path().filename().string());
    if (!rank) continue;
    if (auto found = ReadGuard(guard_folder, *rank)) ranks.emplace(*rank, std::move(*found));
  }
  return ranks;
}

std::optional<GuardedRank> ReadGuard(const std::string& guard_folder, int rank) {
  std::ifstream file(GuardFile(guard_folder, rank));
  std::stringstream text;
  text << file.rdbuf();
  return RankFrom(TryParseJson(text.str()));
}

bool ReplaceFile(const std::string& path, const std::string& text) {
  const fs::path wanted(path);
  const std::string beside =
      (wanted.parent_path() / ("." + wanted.filename().string() + ".new")).string();
  std::ofstream file(beside, std::ios::trunc);
  file << text;
  file.close();
  return file && std::rename(beside.c_str(), path.c_str()) == 0;
}

void EndGuards(const std::string& run_folder) {
  std::error_code error;
  for (fs::directory_iterator entry(run_folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().filename().string().rfind(kGuardFolderBegin, 0) == 0) {
      std::ofstream(entry->path() / "over");
    }
  }
}

void RankGuards::Read(Clock::time_point now) {
  next_read_ = now + std::chrono::duration_cast<Clock::duration>(pace_.read_every);
  for (auto& [rank, seen] : ReadGuards(folder_)) {
    const auto known = ranks_.find(rank);
    if (known == ranks_.end() || known->second.beat != seen.beat) beats_seen_[rank] = now;
    ranks_[rank] = std::move(seen);
  }
}

void RankGuards::Look(Clock::time_point now) {
  if (now >= next_read_) Read(now);
  if (ranks_.empty() || (now < next_beat_ && !has_new_order_)) return;
  next_beat_ = now + std::chrono::duration_cast<Clock::duration>(pace_.beat_every);
  ++beat_;
  Json orders = Json::array();
  for (const GuardOrder& order : orders_) orders.push_back(ToJson(order));
  const Json file = {{"beat", beat_}, {"orders", std::move(orders)}};
  has_new_order_ = !ReplaceFile(folder_ + "/orders.json",
                                file.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
}

bool RankGuards::IsLost(int rank, Clock::time_point now) const {
  const auto found = ranks_.find(rank);
  return found != ranks_.end() && found->second.state != "ended" &&
         now - beats_seen_.at(rank) > pace_.lost_after;
}

int RankGuards::Order(GuardOrder order) {
  order.id = static_cast<int>(orders_.size());
  orders_.push_back(std::move(order));
  has_new_order_ = true;
  return orders_.back().id;
}

}  // namespace trainwreck
