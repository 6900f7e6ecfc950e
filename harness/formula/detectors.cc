#include "harness/formula/detectors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "harness/formula/temporal.h"
#include "harness/formula/typing.h"

namespace trainwreck::formula {
namespace {

// A step count as a formula gave it; unchecked ones are brought into reach.
int Length(double parameter, int steps) {
  if (!(parameter >= 1)) return 1;  // NaN, too
  return static_cast<int>(std::min(parameter, static_cast<double>(steps) + 1));
}

void Set(Track& track, Unit unit, int step, Tri truth, Interval margin) {
  track.truth[step] = truth;
  track.lo[static_cast<int>(unit)][step] = margin.lo;
  track.hi[static_cast<int>(unit)][step] = margin.hi;
}

Track UnknownTrack(Unit unit, int steps) {
  Value unknown;
  unknown.has[static_cast<int>(unit)] = true;
  return Constant(unknown, steps);
}

Track Nonfinite(const Samples& samples, int steps) {
  Track track = Constant(Value{}, steps);
  for (int step = 0; step < steps; ++step) {
    if (samples.At(step) != SampleState::kPresent) continue;
    track.truth[step] = std::isfinite(samples.Raw(step)) ? kNo : kYes;
  }
  return track;
}

// The samples of the last `capacity` steps, sorted.
class SortedWindow {
 public:
  explicit SortedWindow(int capacity) : capacity_(capacity) {}

  void Push(double value) {  // NaN: unknown
    recent_.push_back(value);
    if (std::isnan(value)) {
      ++unknown_;
    } else {
      sorted_.insert(std::lower_bound(sorted_.begin(), sorted_.end(), value), value);
    }
    if (static_cast<int>(recent_.size()) - first_ <= capacity_) return;
    const double oldest = recent_[first_++];
    if (std::isnan(oldest)) {
      --unknown_;
    } else {
      sorted_.erase(std::lower_bound(sorted_.begin(), sorted_.end(), oldest));
    }
  }

  // NaN where there is none, or an unknown one.
  double Median() const {
    if (unknown_ > 0 || sorted_.empty()) return std::nan("");
    const std::size_t middle = sorted_.size() / 2;
    if (sorted_.size() % 2 == 1 || sorted_[middle - 1] == sorted_[middle]) return sorted_[middle];
    return sorted_[middle - 1] + (sorted_[middle] - sorted_[middle - 1]) / 2;
  }

 private:
  int capacity_;
  int first_ = 0;
  int unknown_ = 0;
  std::vector<double> recent_;
  std::vector<double> sorted_;
};

// Positive quantities only: below zero a ratio says nothing, and nothing is no spike.
Track Spike(const Samples& samples, int steps, double ratio, int length) {
  Track track = UnknownTrack(Unit::kOctave, steps);
  SortedWindow window(length);
  for (int step = 0; step < steps; ++step) {
    const double value = samples.Raw(step);
    const double median = window.Median();
    window.Push(value);
    if (step == 0 || value <= 0) {
      Set(track, Unit::kOctave, step, kNo, MarginOf(kNo));
    } else if (median >= 0 && !std::isnan(value)) {
      const double level = ratio * median;
      if (std::isnan(level)) continue;
      Set(track, Unit::kOctave, step, value >= level ? kYes : kNo, Point(Octaves(value, level)));
    }
  }
  return track;
}

// Sums over each window of `length` samples that ends at a step, relative to the window's middle.
// Each is the sum of two runs of additions from a fixed boundary (every `length` steps), so nothing
// drifts over a long trace, and a NaN spoils just the windows that it is in.
struct WindowSums {
  std::vector<double> plain;    // of x
  std::vector<double> centred;  // of (step - middle) * x

  WindowSums(const Samples& samples, int steps, int length) {
    plain.assign(steps, std::nan(""));
    centred.assign(steps, std::nan(""));
    std::vector<double> tail(length + 1, 0.0), tail_moment(length + 1, 0.0);
    for (int boundary = 0; boundary < steps; boundary += length) {
      double sum = 0, moment = 0;
      for (int ahead = 0; ahead < length && boundary + ahead < steps; ++ahead) {
        const int step = boundary + ahead;
        sum += samples.Raw(step);
        moment += ahead * samples.Raw(step);
        const int behind = length - 1 - ahead;  // samples before the boundary that belong to it
        if (behind > boundary) continue;
        const double middle = ahead - (length - 1) / 2.0;  // relative to the boundary
        const double total = sum + tail[behind];
        plain[step] = total;
        centred[step] = moment + tail_moment[behind] - middle * total;
      }
      for (int behind = 1; behind <= length && behind <= boundary + length; ++behind) {
        const int step = boundary + length - behind;
        const double value = step < steps ? samples.Raw(step) : std::nan("");
        tail[behind] = tail[behind - 1] + value;
        tail_moment[behind] = tail_moment[behind - 1] - behind * value;
      }
    }
  }
};

Track Plateau(const Samples& samples, int steps, int length, double tolerance) {
  Track track = UnknownTrack(Unit::kOctave, steps);
  if (length > steps) length = steps + 1;
  const WindowSums sums(samples, steps, length);
  const double n = length;
  const double squares = n * (n * n - 1) / 12;  // of (step - middle)
  for (int step = 0; step < steps; ++step) {
    if (step + 1 < length) {
      Set(track, Unit::kOctave, step, kNo, MarginOf(kNo));
      continue;
    }
    const double slope = length > 1 ? sums.centred[step] / squares : 0;
    const double change = std::abs(slope) * n;
    const double allowed = tolerance * std::abs(sums.plain[step] / n);
    if (std::isnan(change) || std::isnan(allowed)) continue;
    Set(track, Unit::kOctave, step, change <= allowed ? kYes : kNo,
        Point(Octaves(allowed, change)));
  }
  return track;
}

// A turn at a step: the differences on its two sides have opposite signs. Unknown where one of the
// three samples is.
Tri TurnsAt(const Samples& samples, int step) {
  const double before = samples.Raw(step) - samples.Raw(step - 1);
  const double after = samples.Raw(step + 1) - samples.Raw(step);
  if (std::isnan(before) || std::isnan(after)) return kMaybe;
  return (before > 0 && after < 0) || (before < 0 && after > 0) ? kYes : kNo;
}

Track Oscillates(const Samples& samples, int steps, int length, double crossings) {
  Track track = UnknownTrack(Unit::kPlain, steps);
  std::vector<int> sure(steps + 1, 0), possible(steps + 1, 0);  // turns at steps below the index
  for (int step = 0; step < steps; ++step) {
    const Tri turns = step > 0 && step + 1 < steps ? TurnsAt(samples, step) : kNo;
    sure[step + 1] = sure[step] + (turns == kYes ? 1 : 0);
    possible[step + 1] = possible[step] + (turns != kNo ? 1 : 0);
  }
  for (int step = 0; step < steps; ++step) {
    if (step + 1 < length) {
      Set(track, Unit::kPlain, step, kNo, MarginOf(kNo));
      continue;
    }
    const int from = std::min(step - length + 2, step);  // the window's inner steps
    const Interval turns{static_cast<double>(sure[step] - sure[from]),
                         static_cast<double>(possible[step] - possible[from])};
    const Compared compared =
        Compare(CompareOp::kGreaterEqual, turns, Point(crossings), /*octaves=*/false);
    Set(track, Unit::kPlain, step, compared.truth, compared.margin);
  }
  return track;
}

int WindowOf(const Node& node, int steps) { return Length(node.parameter("window"), steps); }

std::optional<Refusal> TooManyCrossings(const Node& node) {
  const double most = std::max(node.parameter("window") - 2, 0.0);
  if (!(node.parameter("crossings") > most)) return std::nullopt;
  return Refusal{"crossings",
                 fmt::format("{} samples turn at most {} times", node.parameter("window"), most)};
}

}  // namespace

std::optional<Unit> AtomUnit(const Node& atom, const TargetDescription& target) {
  switch (atom.kind) {
    case Kind::kCompare:
      return ComparesInOctaves(atom, target) ? Unit::kOctave : Unit::kPlain;
    case Kind::kDetector:
      return atom.detector->unit;
    default:
      return std::nullopt;
  }
}

const std::vector<Detector>& Detectors() {
  static const std::vector<Detector> all = {
      {.name = "nonfinite",
       .judges_each_sample = true,
       .detect = [](const Node&, const Samples& samples,
                    int steps) { return Nonfinite(samples, steps); }},
      {.name = "spike",
       .parameters = {"ratio", "window"},
       .counts = {"window"},
       .unit = Unit::kOctave,
       .detect =
           [](const Node& node, const Samples& samples, int steps) {
             return Spike(samples, steps, node.parameter("ratio"), WindowOf(node, steps));
           }},
      {.name = "plateau",
       .parameters = {"window", "tolerance"},
       .counts = {"window"},
       .unit = Unit::kOctave,
       .detect =
           [](const Node& node, const Samples& samples, int steps) {
             return Plateau(samples, steps, WindowOf(node, steps), node.parameter("tolerance"));
           }},
      {.name = "oscillates",
       .parameters = {"window", "crossings"},
       .counts = {"window", "crossings"},
       .unit = Unit::kPlain,
       .detect =
           [](const Node& node, const Samples& samples, int steps) {
             return Oscillates(samples, steps, WindowOf(node, steps), node.parameter("crossings"));
           },
       .refuse = TooManyCrossings},
  };
  return all;
}

Track Detect(const Node& detector, const Samples& samples, int steps) {
  return detector.detector->detect(detector, samples, steps);
}

Track HeldFor(const Track& track, double length) {
  const int back = Length(length, track.size()) - 1;
  return Extreme(track, MovingWindows(-back, 0, track.size()), /*largest=*/false, kNo, kMaybe);
}

}  // namespace trainwreck::formula
