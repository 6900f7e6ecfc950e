// How runs behave when one commit does not give the same result twice. A noise model lists possible
// behaviours, each with its prior weight: pairs (how runs look before the culprit, how from it on)
// and, for a world without a culprit, single ones. The search weighs all of them at once, so the
// rates need not be known beforehand. Results are sorted into bins, so a model is no more than
// tables.
#pragma once

#include <vector>

namespace trainwreck {

struct NoiseModel {
  using Table = std::vector<std::vector<double>>;  // behaviour -> bin -> probability

  std::vector<double> edges;  // of the bins: a result in [edges[k-1], edges[k]) is in bin k
  std::vector<double> pair_prior;
  Table good, bad;                            // of a pair
  std::vector<double> good_level, bad_level;  // a pair's rate or mean margin
  std::vector<double> capacity;               // of each pair: bits that a run tells at best
  std::vector<double> single_prior;
  Table single;

  int pairs() const { return static_cast<int>(pair_prior.size()); }
  int singles() const { return static_cast<int>(single_prior.size()); }
  int bins() const { return static_cast<int>(edges.size()) + 1; }
  int BinOf(double result) const;
};

// Runs that fail (1) or pass (0), with unknown rates; the rate after the culprit is the larger one.
// With `nothing_flakes` no run fails before the culprit, which the user must know.
NoiseModel FailureRates(bool nothing_flakes = false);

// Margins of a formula (margins.cc). After the culprit all of them are smaller by about as much, or
// a larger share of them lies below some threshold; means, spread, thresholds and shares are
// unknown. A few runs of both ends give their range. Runs of other commits count too, though nobody
// knows on which side of the culprit they are. Margins may be infinite.
NoiseModel Margins(const std::vector<double>& good_end, const std::vector<double>& bad_end,
                   const std::vector<double>& between = {});

// Whether some margins lie so far from the others that runs of one kind would hardly ever give
// both.
bool HaveClearGap(const std::vector<double>& margins);

// The distribution of one run's result under `weights`: the mean of the table's rows.
std::vector<double> Mix(const NoiseModel::Table& table, const std::vector<double>& weights);

// Shannon's entropy of a distribution, in bits.
double Entropy(const std::vector<double>& bins);

// The bits that one run gives about a question whose answer is yes with probability `yes`.
double Information(double yes, const std::vector<double>& if_no, const std::vector<double>& if_yes);

// The bits that `runs` runs of one commit give about whether it is bad. Each result counts only as
// above or below the most informative edge: a lower bound, exact for failure rates.
double BatchInformation(const NoiseModel& model, const std::vector<double>& pair_weights,
                        double is_bad, int runs);

// The maximum of Information over all `yes`: what a run is worth to a search that knows the
// behaviour.
double Capacity(const std::vector<double>& if_no, const std::vector<double>& if_yes);

}  // namespace trainwreck
