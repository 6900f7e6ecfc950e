// How much memory a recipe will need, before it is run: from a few steps at small sizes. What a
// training allocates is a sum of parts that do not depend on the size (parameters, gradients,
// optimizer state: counted in these steps), in proportion to it (activations), and in proportion to
// its square (attention that keeps its scores). So a parabola through three sizes gives the others.
// The peak is the highest of many moments, and each has a parabola of its own: in small batches the
// update needs the most, in large ones the backward pass, at one layer or at another. Where the
// target says what is in use at each moment of a step (event `memory_moments`), and those of a
// fourth size are as three let expect, all of them are continued.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/checkup/known.h"
#include "harness/inspect/memory_report.h"
#include "harness/protocol/json.h"
#include "harness/session/session.h"

namespace trainwreck {

// The peak at one size: a batch size, a sequence length.
struct PeakAt {
  int size = 0;
  double peak = 0;                // bytes
  std::vector<MemoryPart> parts;  // of it
  // What was in use at each moment of a stage, such as "backward", in all its passes; empty: not
  // recorded.
  std::map<std::string, std::vector<double>> moments = {};
};

// The peak by size, from measured ones.
class PeakCurve {
 public:
  // `points` by size, rising; three at least.
  explicit PeakCurve(std::vector<PeakAt> points);

  // A measured size: the measured peak. Else that of the parabolas through the last three sizes
  // where `size` is above them, and between two measured sizes on the line that joins them.
  double At(int size) const;
  // The largest size with a peak of at most `budget`; 0: none has.
  int Largest(double budget) const;
  // How far the peak of the largest measured size is from the parabolas through the three before
  // it, as a share; empty: there are only three.
  std::optional<double> Miss() const;

 private:
  std::vector<PeakAt> points_;
};

struct FitsOptions {
  std::string key;               // that varies; empty: that with the role batch_size
  std::optional<double> budget;  // bytes
  bool verify = false;           // also measure the size of the recipe
};

struct FitsReport {
  std::string recipe, key;
  int own = 0;  // the recipe's size
  std::vector<PeakAt> points;
  std::optional<double> miss;  // of the curve
  double predicted = 0;        // the peak at `own`
  bool is_measured = false;    // `own` is so small that it was measured
  std::optional<double> verified;
  // With a budget: the largest size that fits, measured, and the next one, which does not. 0: not
  // even 1 fits.
  std::optional<int> largest;
  std::optional<PeakAt> fits, exceeds;
};

// Peaks at these sizes, in their order; empty: interrupted.
using MeasuredPeaks = std::optional<std::vector<PeakAt>>;
using MeasurePeaks = std::function<MeasuredPeaks(const std::vector<int>& sizes)>;

// The four sizes to begin with: a sixteenth of the recipe's, twice, 4 and 8 times that.
std::vector<int> SizesToMeasure(int own);

// Predicts the recipe's peak. With a budget, finds the largest size: predicted, measured, and where
// the measured peaks contradict, predicted again with them. Empty: interrupted.
std::optional<FitsReport> FindWhatFits(int own, const FitsOptions& options,
                                       const MeasurePeaks& measure);

// The same with runs of a few steps. Throws UsageError when the target has no such key or does not
// record its peak, ConfigurationError when a run did not complete.
std::optional<FitsReport> MeasureFits(const Patient& patient, const FitsOptions& options,
                                      const Session& session, int cores);

// "24000000", "24MB", "1.5GB", "2GiB". Throws UsageError.
double ParseBytes(const std::string& text);

Json ToJson(const FitsReport& report);

}  // namespace trainwreck
