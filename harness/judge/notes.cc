#include "harness/judge/notes.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "harness/judge/arm_judge.h"

namespace trainwreck {
namespace {

constexpr int kFrozenSamples = 10;  // one value so often in a row is no chance
constexpr int kStrideSamples = 5;   // from so many on it is known at which steps a signal comes

struct Watched {
  std::string name;  // as in formulas
  int rank = 0;
  const SignalInfo* info = nullptr;
  const Series* series = nullptr;
  bool is_loss = false;
  std::string Label() const { return rank == 0 ? name : name + " of rank " + std::to_string(rank); }
};

// Losses and gradients: they are never still in a run that learns. Rates, scales, counts and norms
// of weights may well be, and shares of elements.
std::vector<Watched> WatchedSignals(const RunTrace& trace, const TargetDescription& target) {
  std::vector<Watched> watched;
  for (const auto& [key, series] : trace.series) {
    const auto& [name, rank] = key;
    if (name.find('{') != std::string::npos) continue;
    const bool is_loss = name.ends_with("loss");
    const SignalInfo* info = target.FindSignal(name);
    if ((info != nullptr && info->exact) || name.ends_with("_share")) continue;
    if (!is_loss && name.find("grad") == std::string::npos) continue;
    watched.push_back({name, rank, info, &series, is_loss});
  }
  return watched;
}

// The steps that have a sample.
std::vector<int> StepsOf(const Series& series) {
  std::vector<int> steps;
  for (int step = 0; step < static_cast<int>(series.values.size()); ++step) {
    if (series.Has(step)) steps.push_back(step);
  }
  return steps;
}

std::optional<double> FloorOf(const std::string& signal, const TargetDescription& target) {
  const std::string prefix = "floor:" + signal + "=";
  for (const std::string& feature : target.features) {
    if (feature.starts_with(prefix)) return std::strtod(feature.c_str() + prefix.size(), nullptr);
  }
  return std::nullopt;
}

bool SameBits(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

class RunNotes {
 public:
  RunNotes(const RunResult& run, const TargetDescription& target)
      : run_(run), target_(target), watched_(WatchedSignals(run.trace, target)) {}

  std::vector<Note> Find() {
    for (const Watched& signal : watched_) {
      const std::vector<int> steps = StepsOf(*signal.series);
      if (signal.is_loss) LookForZero(signal, steps);
      LookForFrozen(signal, steps);
      LookForFloor(signal, steps);
      if (signal.is_loss) LookForNanAtTheEnd(signal, steps);
      if (signal.is_loss && signal.rank == 0) LookForGaps(signal, steps);
    }
    LookForLoneNan();
    LookForRepeats();
    return std::move(notes_);
  }

 private:
  void Add(int step, std::string text) {
    notes_.push_back({.step = step, .text = std::move(text)});
  }

  void LookForZero(const Watched& signal, const std::vector<int>& steps) {
    const auto found = std::find_if(steps.begin(), steps.end(),
                                    [&](int step) { return signal.series->values[step] == 0; });
    if (found != steps.end()) Add(*found, signal.Label() + " is exactly 0");
  }

  void LookForFrozen(const Watched& signal, const std::vector<int>& steps) {
    const std::vector<double>& values = signal.series->values;
    int begin = 0;
    for (int i = 0; i <= static_cast<int>(steps.size()); ++i) {
      const bool goes_on =
          i < static_cast<int>(steps.size()) && SameBits(values[steps[i]], values[steps[begin]]);
      if (goes_on) continue;
      const double value = values[steps.empty() ? 0 : steps[begin]];
      const bool is_told_otherwise = !std::isfinite(value) || (signal.is_loss && value == 0);
      if (i - begin >= kFrozenSamples && !is_told_otherwise) {
        return Add(steps[begin], signal.Label() + " is frozen bit for bit at " +
                                     ShortNumber(value) + ", " + std::to_string(i - begin) +
                                     " samples in a row");
      }
      begin = i;
    }
  }

  void LookForFloor(const Watched& signal, const std::vector<int>& steps) {
    const std::optional<double> floor = FloorOf(signal.name, target_);
    if (!floor) return;
    const auto found = std::find_if(steps.begin(), steps.end(),
                                    [&](int step) { return signal.series->values[step] < *floor; });
    if (found == steps.end()) return;
    Add(*found, signal.Label() + " is " + ShortNumber(signal.series->values[*found]) +
                    ", below its floor of " + ShortNumber(*floor));
  }

  void LookForNanAtTheEnd(const Watched& signal, const std::vector<int>& steps) {
    if (run_.end != RunEnd::kCompleted) return;
    int first = -1;
    for (auto step = steps.rbegin();
         step != steps.rend() && std::isnan(signal.series->values[*step]); ++step) {
      first = *step;
    }
    if (first >= 0) {
      Add(first, "ended with exit code 0, though " + signal.Label() + " is nan to the end");
    }
  }

  // A program that says something every tenth step is not taken to skip nine.
  void LookForGaps(const Watched& signal, const std::vector<int>& steps) {
    if (signal.info != nullptr && signal.info->sparse) return;
    if (static_cast<int>(steps.size()) < kStrideSamples) return;
    std::map<int, int> strides;
    for (std::size_t i = 1; i < steps.size(); ++i) ++strides[steps[i] - steps[i - 1]];
    const int usual = std::max_element(strides.begin(), strides.end(), [](auto& a, auto& b) {
                        return a.second < b.second;
                      })->first;
    for (std::size_t i = 1; i < steps.size(); ++i) {
      if (steps[i] - steps[i - 1] <= usual) continue;
      return Add(steps[i], "step numbers are skipped: " + std::to_string(steps[i]) + " follows " +
                               std::to_string(steps[i - 1]));
    }
  }

  // NaN in one of them at a step where another of the same rank is finite.
  void LookForLoneNan() {
    for (const Watched& nan : watched_) {
      for (const Watched& other : watched_) {
        if (nan.rank != other.rank) continue;
        for (const int step : StepsOf(*nan.series)) {
          if (!std::isnan(nan.series->values[step]) || !other.series->Has(step)) continue;
          const double beside = other.series->values[step];
          if (!std::isfinite(beside)) continue;
          return Add(step, nan.Label() + " is nan while " + other.Label() + " is finite (" +
                               ShortNumber(beside) + ")");
        }
      }
    }
  }

  void LookForRepeats() {
    for (const Event& event : run_.trace.events) {
      if (event.name != "repeated_step") continue;
      return Add(event.step, "step numbers are repeated: step " + std::to_string(event.step) +
                                 " came again in one attempt");
    }
  }

  const RunResult& run_;
  const TargetDescription& target_;
  const std::vector<Watched> watched_;
  std::vector<Note> notes_;
};

// Two texts about one thing differ in their numbers alone.
std::string KindOf(const std::string& text) {
  return text.substr(0, text.find_first_of("0123456789"));
}

// That its formulas read, without modules.
std::set<std::string> SignalsOf(const Scenario& scenario) {
  std::set<std::string> names;
  ForEachCheck(scenario, [&](const Check& check) {
    for (const std::string& name : check.formula.signals()) {
      names.insert(name.substr(0, name.find('{')));
    }
  });
  return names;
}

}  // namespace

std::vector<Note> NotesOf(const RunResult& run, const TargetDescription& target) {
  return RunNotes(run, target).Find();
}

std::vector<Note> FindNotes(const CaseResults& results, const TargetDescription& target) {
  std::vector<Note> notes;
  for (const LeftOut& arm : results.plan->scenario->left_out) {
    const std::string why = " left out: no key of the target has the role '" + arm.role + "'";
    notes.push_back(
        {.arm = arm.name, .kind = arm.kind, .seeds = 0, .text = ToString(arm.kind) + why});
  }
  if (const auto& strength = results.plan->scenario->strength; strength && strength->calibrated) {
    notes.push_back({.arm = "strength", .seeds = 0, .text = strength->Text()});
  }
  for (const std::string& name : SignalsOf(*results.plan->scenario)) {
    const SignalInfo* info = target.FindSignal(name);
    if (info == nullptr || info->own_name.empty()) continue;
    notes.push_back({.arm = "signals",
                     .seeds = 0,
                     .text = name + " is what the program calls " + info->own_name});
  }
  for (const ArmPlan& arm : results.plan->arms) {
    const auto runs = results.runs.find(arm.name);
    if (runs == results.runs.end()) continue;
    const std::size_t begin = notes.size();
    for (const auto& [seed, run] : runs->second) {
      for (Note& note : NotesOf(run, target)) {
        const auto same = std::find_if(notes.begin() + begin, notes.end(), [&](const Note& known) {
          return KindOf(known.text) == KindOf(note.text);
        });
        if (same != notes.end()) {
          ++same->seeds;
          continue;
        }
        note.arm = arm.name;
        note.kind = arm.kind;
        note.seed = seed;
        notes.push_back(std::move(note));
      }
    }
  }
  return notes;
}

}  // namespace trainwreck
