#include "harness/report/timeline.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>
#include <utility>

#include "harness/protocol/memory_signals.h"

namespace trainwreck {
namespace {

constexpr int kStepThread = 1, kCallThread = 2, kEventThread = 3;
constexpr double kMicro = 1e6;  // of a second

std::optional<double> NumberIn(const Json& record, const char* key) {
  const auto member = record.find(key);
  if (member == record.end() || !member->is_number()) return std::nullopt;
  const auto value = member->get<double>();
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::string TextIn(const Json& record, const char* key) {
  const auto member = record.find(key);
  return member != record.end() && member->is_string() ? member->get<std::string>() : "";
}

int IntIn(const Json& record, const char* key) {
  const auto number = NumberIn(record, key);
  return number && std::abs(*number) < 1e9 ? static_cast<int>(*number) : 0;
}

// A call that was drawn, for the flows.
struct Call {
  int pid = 0;
  double at_us = 0;
  std::string what;  // operation, shape, type
};

// By phase, attempt and number of the call.
using CallKey = std::tuple<std::string, int, int>;

// Draws one rank. Times in records are seconds since a start; starts are placed by the clock of the
// machine, where they have it.
class RankTrack {
 public:
  RankTrack(int pid, std::optional<double> origin_s, Json& events, TimelineCounts& counts)
      : pid_(pid), origin_s_(origin_s), events_(events), counts_(counts) {}

  void Draw(const RankRecords& rank) {
    counts_.unreadable += rank.unreadable;
    for (const Json& record : rank.records) {
      const std::string type = TextIn(record, "t");
      if (type == "start") Start(record);
      if (type == "step") Step(record);
      if (type == "collective") Collective(record);
      if (type == "event" && TextIn(record, "event") == "memory_by_stage") {
        StageMemory(record);
      } else if (type == "start" || type == "event" || type == "end") {
        Instant(record, type);
      }
    }
    DrawWaiting();  // calls of a step that did not end
  }

  const std::map<CallKey, Call>& calls() const { return calls_; }

 private:
  void Start(const Json& record) {
    DrawWaiting();
    phase_ = TextIn(record, "phase");
    attempt_ = IntIn(record, "attempt");
    const auto clock = NumberIn(record, "clock_s");
    if (clock && origin_s_) {
      start_us_ = std::max(0.0, (*clock - *origin_s_) * kMicro);
    } else {
      start_us_ = end_us_;
      ++counts_.unaligned;
    }
    end_us_ = std::max(end_us_, start_us_);
  }

  // The time of a record on the timeline.
  std::optional<double> At(const Json& record) {
    const auto time = NumberIn(record, "time");
    if (!time) return std::nullopt;
    const double at = start_us_ + *time * kMicro;
    latest_us_ = std::max(latest_us_, at);
    return at;
  }

  void Add(const char* kind, int thread, const std::string& name, double at_us, Json more) {
    more["ph"] = kind;
    more["pid"] = pid_;
    more["tid"] = thread;
    more["name"] = name;
    more["ts"] = at_us;
    events_.push_back(std::move(more));
  }

  void Step(const Json& record) {
    const auto at = At(record);
    if (!at) {
      ++counts_.untimed_steps;
      return;
    }
    ++counts_.steps;
    const double end = std::max(*at, end_us_);
    const double length = NumberIn(record, "step_s").value_or(0) * kMicro;
    const double begin = std::clamp(end - length, end_us_, end);
    Json args = Json::object();
    for (const auto& [key, value] : record.items()) {
      if (key == "t") continue;
      args[key] = value.is_number_float() ? EncodeNumber(value.get<double>()) : value;
    }
    Add("X", kStepThread, "step " + std::to_string(IntIn(record, "step")), begin,
        {{"dur", end - begin}, {"cat", "step"}, {"args", std::move(args)}});
    Stages(record, begin, end);
    Memory(record, end);
    DrawWaiting(begin);
    end_us_ = end;
  }

  // Data come first in a step and collectives last; what is between was not measured apart.
  void Stages(const Json& record, double begin, double end) {
    const auto data = NumberIn(record, "data_s"), comm = NumberIn(record, "comm_s");
    if (!data && !comm) return;
    const double compute = std::min(end, begin + std::max(0.0, data.value_or(0)) * kMicro);
    const double reduce = std::max(compute, end - std::max(0.0, comm.value_or(0)) * kMicro);
    const auto stage = [&](const char* name, double from, double to) {
      if (to > from) {
        Add("X", kStepThread, name, from, {{"dur", to - from}, {"cat", "stage"}});
      }
    };
    stage("data", begin, compute);
    stage("forward, backward, update", compute, reduce);
    stage("wait for ranks", reduce, end);
  }

  // Of a step's peak, by owner, from the signals memory_*_bytes.
  void Memory(const Json& record, double end) {
    Json bytes = Json::object();
    for (const auto& [key, value] : record.items()) {
      const std::string owner = MemoryOwnerIn(key);
      if (!owner.empty() && value.is_number()) bytes[owner] = value;
    }
    if (!bytes.empty()) AddCounter("memory at the step's peak", end, std::move(bytes));
  }

  // Of the stages of a step, in an event `memory_by_stage`.
  void StageMemory(const Json& record) {
    const auto at = At(record);
    const auto stages = record.find("stages");
    if (!at || stages == record.end() || !stages->is_array()) return;
    for (const Json& stage : *stages) {
      const auto before = NumberIn(stage, "before_s");
      const auto bytes = stage.find("bytes");
      if (!before || bytes == stage.end() || !bytes->is_object()) continue;
      AddCounter("memory in use", std::max(0.0, *at - *before * kMicro), *bytes);
    }
  }

  // A curve for each value; viewers stack them.
  void AddCounter(const char* name, double at_us, Json values) {
    ++counts_.memory;
    Add("C", kStepThread, name, at_us, {{"cat", "memory"}, {"args", std::move(values)}});
  }

  void Collective(const Json& record) {
    ++counts_.collectives;
    const auto at = At(record);
    if (!at) {
      ++counts_.untimed_collectives;
      waiting_.push_back(record);
      return;
    }
    DrawCall(record, *at);
  }

  // Calls without a time, when their step's beginning is known.
  void DrawWaiting(std::optional<double> begin = std::nullopt) {
    double at = std::max(begin.value_or(end_us_), end_us_);
    for (const Json& record : std::exchange(waiting_, {})) DrawCall(record, at++);
  }

  void DrawCall(const Json& record, double at) {
    const int call = IntIn(record, "call");
    const std::string what =
        TextIn(record, "op") + " " + TextIn(record, "shape") + " " + TextIn(record, "dtype");
    Add("X", kCallThread, TextIn(record, "op"), at,
        {{"dur", 1},
         {"cat", "collective"},
         {"args",
          {{"call", call},
           {"step", IntIn(record, "step")},
           {"shape", TextIn(record, "shape")},
           {"dtype", TextIn(record, "dtype")}}}});
    calls_[{phase_, attempt_, call}] = {pid_, at, what};
  }

  void Instant(const Json& record, const std::string& type) {
    ++counts_.events;
    std::string name = type == "event" ? TextIn(record, "event") : type;
    if (name == "fired") name += " " + TextIn(record, "fault");
    if (type == "end") name += " " + TextIn(record, "why");
    const double at = At(record).value_or(std::max(latest_us_, end_us_));
    Add("i", kEventThread, name, at,
        {{"s", "p"},
         {"cat", TextIn(record, "event") == "fired" ? "fault" : type},
         {"args", record}});
  }

  int pid_;
  std::optional<double> origin_s_;
  Json& events_;
  TimelineCounts& counts_;
  std::string phase_;
  int attempt_ = 0;
  double start_us_ = 0;   // of the attempt
  double end_us_ = 0;     // of the step before
  double latest_us_ = 0;  // time that a record named
  std::vector<Json> waiting_;
  std::map<CallKey, Call> calls_;
};

// Joins the calls of one number over the ranks, in the order in which they were made.
class Flows {
 public:
  Flows(Json& events, TimelineCounts& counts) : events_(events), counts_(counts) {}

  void Join(const std::vector<std::map<CallKey, Call>>& ranks) {
    if (ranks.size() < 2) return;
    std::map<CallKey, std::vector<Call>> together;
    for (const auto& calls : ranks) {
      for (const auto& [key, call] : calls) together[key].push_back(call);
    }
    for (auto& [key, calls] : together) {
      if (calls.size() < 2) {
        ++counts_.unmatched;
      } else if (std::any_of(calls.begin(), calls.end(),
                             [&](const Call& call) { return call.what != calls[0].what; })) {
        ++counts_.different;
      } else {
        Draw(calls);
      }
    }
  }

 private:
  void Draw(std::vector<Call>& calls) {
    std::stable_sort(calls.begin(), calls.end(),
                     [](const Call& a, const Call& b) { return a.at_us < b.at_us; });
    ++counts_.flows;
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const bool is_last = i + 1 == calls.size();
      Json event = {{"ph", i == 0    ? "s"
                           : is_last ? "f"
                                     : "t"},
                    {"id", counts_.flows},
                    {"pid", calls[i].pid},
                    {"tid", kCallThread},
                    {"cat", "collective"},
                    {"name", calls[i].what},
                    {"ts", calls[i].at_us}};
      if (is_last) event["bp"] = "e";
      events_.push_back(std::move(event));
    }
  }

  Json& events_;
  TimelineCounts& counts_;
};

void NameProcess(Json& names, int pid, const std::string& process) {
  const auto name = [&](const char* what, int tid, const std::string& text) {
    names.push_back(
        {{"ph", "M"}, {"pid", pid}, {"tid", tid}, {"name", what}, {"args", {{"name", text}}}});
  };
  name("process_name", 0, process);
  name("thread_name", kStepThread, "steps");
  name("thread_name", kCallThread, "collectives");
  name("thread_name", kEventThread, "events");
  names.push_back({{"ph", "M"},
                   {"pid", pid},
                   {"tid", 0},
                   {"name", "process_sort_index"},
                   {"args", {{"sort_index", pid}}}});
}

// The clock of the machine when the first rank of the run began. Empty where no rank has it.
std::optional<double> OriginOf(const TimelineRun& run) {
  std::optional<double> first;
  for (const auto& [number, rank] : run.ranks) {
    for (const Json& record : rank.records) {
      if (TextIn(record, "t") != "start") continue;
      const auto clock = NumberIn(record, "clock_s");
      if (clock) first = std::min(first.value_or(*clock), *clock);
    }
  }
  return first;
}

std::vector<std::string> LeftOut(const TimelineCounts& counts) {
  std::vector<std::string> sentences = {
      "how long each collective took (comm_s of a step has the sum), and the forward pass, "
      "backward "
      "pass and update apart: the trace does not say"};
  const auto add = [&](int count, const char* what) {
    if (count > 0) sentences.push_back(std::string(what) + ": " + std::to_string(count));
  };
  add(counts.unreadable, "lines that cannot be read");
  add(counts.untimed_steps, "steps without a time");
  add(counts.untimed_collectives,
      "times of collectives, which are drawn at the beginning of their step");
  add(counts.unmatched, "flows of collectives that one rank alone made");
  add(counts.different, "flows of collectives that are not the same on all ranks");
  add(counts.unaligned,
      "the places of starts without clock_s, which are drawn one after the other");
  return sentences;
}

}  // namespace

Timeline MakeTimeline(const std::vector<TimelineRun>& runs) {
  Timeline timeline;
  Json names = Json::array(), events = Json::array();
  int pid = 0;
  for (const TimelineRun& run : runs) {
    const std::optional<double> origin = OriginOf(run);
    std::vector<std::map<CallKey, Call>> calls;
    for (const auto& [number, rank] : run.ranks) {
      ++pid;
      NameProcess(names, pid,
                  run.name + (number < 0 ? " launcher" : " rank " + std::to_string(number)));
      RankTrack track(pid, origin, events, timeline.counts);
      track.Draw(rank);
      if (number >= 0) calls.push_back(track.calls());
    }
    Flows(events, timeline.counts).Join(calls);
  }
  std::stable_sort(events.begin(), events.end(), [](const Json& a, const Json& b) {
    return a["ts"].get<double>() < b["ts"].get<double>();
  });
  names.insert(names.end(), events.begin(), events.end());
  timeline.left_out = LeftOut(timeline.counts);
  timeline.json = {{"displayTimeUnit", "ms"},
                   {"traceEvents", std::move(names)},
                   {"otherData", {{"tool", "trainwreck"}, {"left_out", timeline.left_out}}}};
  return timeline;
}

}  // namespace trainwreck
