#include "harness/history/course.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>

#include "harness/history/comparison.h"
#include "harness/history/comparison_words.h"
#include "harness/text/words.h"

namespace trainwreck {
namespace {

// One state of the program: one run, or several of the same clean commit.
struct State {
  std::vector<Record> newest_first;  // with this case alone
  Record combined;
  const CaseRecord& one() const { return combined.cases.front(); }
};

bool IsSameState(const Record& a, const Record& b) {
  return !a.commit.empty() && a.commit == b.commit && !a.is_dirty && !b.is_dirty &&
         a.target_digest == b.target_digest;
}

std::vector<State> StatesOf(const std::vector<Record>& oldest_first, const std::string& name) {
  std::vector<State> states;
  for (const Record& record : oldest_first) {
    Record alone = record;
    std::erase_if(alone.cases, [&](const CaseRecord& one) { return one.name != name; });
    if (alone.cases.empty()) continue;
    if (states.empty() || !IsSameState(states.back().newest_first.front(), alone)) {
      states.emplace_back();
    }
    std::vector<Record>& runs = states.back().newest_first;
    runs.insert(runs.begin(), std::move(alone));
  }
  for (State& state : states) state.combined = Combine(state.newest_first);
  return states;
}

double MiddleOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

Json MedianMeasure(const CaseRecord& one, double TrainingRecord::*measure) {
  std::vector<double> values;
  for (const TrainingRecord& training : one.trainings) {
    if (training.*measure > 0) values.push_back(training.*measure);
  }
  return values.empty() ? Json() : Json(MiddleOf(values));
}

Json PointOf(const State& state) {
  const Record& record = state.combined;
  const CaseRecord& one = state.one();
  Json point = {{"run", record.id},
                {"runs", Json::array()},
                {"started_utc", record.started_utc},
                {"commit", record.commit},
                {"dirty", record.is_dirty},
                {"program", record.target_digest},
                {"verdict", ToString(one.verdict)},
                {"class", one.failure_class.text()},
                {"step_seconds", MedianMeasure(one, &TrainingRecord::step_seconds)},
                {"peak_memory_bytes", MedianMeasure(one, &TrainingRecord::peak_memory_bytes)},
                {"margins", Json::array()}};
  for (auto run = state.newest_first.rbegin(); run != state.newest_first.rend(); ++run) {
    point["runs"].push_back(run->id);
  }
  for (const MarginRecord& margin : one.margins) {
    if (margin.by_seed.empty()) continue;
    std::vector<double> values;
    for (const auto& [seed, value] : margin.by_seed) values.push_back(value);
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    point["margins"].push_back({{"arm", margin.arm},
                                {"check", margin.check},
                                {"unit", margin.unit},
                                {"seeds", values.size()},
                                {"least", EncodeNumber(*least)},
                                {"most", EncodeNumber(*most)},
                                {"median", EncodeNumber(MiddleOf(values))}});
  }
  return point;
}

class MoveWriter {
 public:
  explicit MoveWriter(const Comparison& comparison) : comparison_(comparison) {}

  // Null: nothing moved.
  Json Write() {
    for (const VerdictChange& change : comparison_.verdicts) {
      Add("verdict", change.before + " -> " + change.after, change.direction == Direction::kWorse,
          change.cause);
    }
    for (const LostChecks& lost : comparison_.lost_checks) {
      Add("check", "no longer checks " + Join(lost.checks), true, Cause::kCode);
    }
    for (const MarginChange& change : comparison_.margins) {
      if (!change.is_different()) continue;
      Add("margin",
          fmt::format("'{}' in {}: {:.4g} -> {:.4g}{}", change.check, change.arm,
                      change.result.median_a, change.result.median_b, UnitText(change)),
          change.is_worse(), change.cause);
      changes_.back()["unit"] = change.unit;
    }
    for (const BitsChange& change : comparison_.bits) {
      Add("bits",
          fmt::format("{}: other bits in {} of {} seeds", change.arm, change.seeds.size(),
                      change.compared),
          false, change.cause);
    }
    for (const SpeedChange& change : comparison_.speed) {
      AddRatio("step_time", "step time", change.step_time, 0.8, 1.25);
      AddRatio("memory", "peak memory", change.memory, 0.99, 1.01);
    }
    if (changes_.empty()) return nullptr;
    const Record& after = comparison_.b;
    return {{"from", comparison_.a.id},  {"to", after.id},     {"commit", after.commit},
            {"cause", ToString(cause_)}, {"worse", is_worse_}, {"changes", changes_}};
  }

 private:
  void Add(const char* kind, const std::string& text, bool is_worse, Cause cause) {
    // What code alone can have done says most.
    cause_ = changes_.empty() || cause == Cause::kCode ? cause : cause_;
    is_worse_ = is_worse_ || is_worse;
    changes_.push_back({{"kind", kind}, {"text", text}, {"worse", is_worse}});
  }

  void AddRatio(const char* kind, const std::string& name,
                const std::optional<RatioInterval>& ratio, double least, double most) {
    if (!ratio || (ratio->hi >= least && ratio->lo <= most)) return;
    Add(kind, fmt::format("{} x {:.3f} [{:.3f}, {:.3f}]", name, ratio->ratio, ratio->lo, ratio->hi),
        ratio->ratio > 1, comparison_.same_code ? Cause::kChance : Cause::kEither);
  }

  const Comparison& comparison_;
  Json changes_ = Json::array();
  Cause cause_ = Cause::kCode;
  bool is_worse_ = false;
};

}  // namespace

Json CoursesOf(const std::vector<Record>& oldest_first) {
  std::map<std::string, Json> courses;
  for (const Record& record : oldest_first) {
    for (const CaseRecord& one : record.cases) courses.try_emplace(one.name);
  }
  Json list = Json::array();
  for (const auto& [name, ignored] : courses) {
    const std::vector<State> states = StatesOf(oldest_first, name);
    Json points = Json::array(), moves = Json::array();
    for (std::size_t i = 0; i < states.size(); ++i) {
      points.push_back(PointOf(states[i]));
      if (i == 0) continue;
      const Comparison comparison = Compare(states[i - 1].combined, states[i].combined, {});
      Json move = MoveWriter(comparison).Write();
      if (!move.is_null()) moves.push_back(std::move(move));
    }
    list.push_back({{"case", name}, {"points", std::move(points)}, {"moves", std::move(moves)}});
  }
  return list;
}

}  // namespace trainwreck
