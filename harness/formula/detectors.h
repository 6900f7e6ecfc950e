// The patterns that have a name: nonfinite, spike, plateau, oscillates, holds.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/formula/formula.h"
#include "harness/formula/node.h"
#include "harness/formula/samples.h"
#include "harness/formula/value.h"

namespace trainwreck::formula {

// The unit of an atom's own margin; none for events and nonfinite.
std::optional<Unit> AtomUnit(const Node& atom, const TargetDescription& target);

// The objection of a detector to its parameters.
struct Refusal {
  std::string_view parameter;
  std::string message;
};

// A pattern of one signal: nonfinite, spike, plateau, oscillates, as docs/reference/formulas.md
// defines them. A new one is one more entry of Detectors(), with its oracle and its text there.
struct Detector {
  std::string_view name;
  std::vector<std::string_view> parameters;  // key=value, all required, all positive
  std::vector<std::string_view> counts;      // the parameters that are whole numbers
  std::optional<Unit> unit;                  // of its margin
  // The detector judges each sample by itself: a missing sample leaves its step open. Other
  // detectors look at a window, and need a signal that is recorded at every step.
  bool judges_each_sample = false;
  Track (*detect)(const Node& node, const Samples& samples, int steps) = nullptr;
  std::optional<Refusal> (*refuse)(const Node& node) = nullptr;  // null: takes all

  bool Counts(std::string_view key) const {
    return std::find(counts.begin(), counts.end(), key) != counts.end();
  }
};

const std::vector<Detector>& Detectors();

// The truth of a node of kind kDetector at each step, in time linear in the steps.
Track Detect(const Node& detector, const Samples& samples, int steps);

// At each step: whether `track` holds there and at each of the `length -
// 1` steps before. False at the first `length - 1` steps.
Track HeldFor(const Track& track, double length);

}  // namespace trainwreck::formula
