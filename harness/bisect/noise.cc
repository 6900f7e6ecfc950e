#include "harness/bisect/noise.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace trainwreck {
namespace {

constexpr double kRates[] = {0,   0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3,  0.4, 0.5,
                             0.6, 0.7,  0.75, 0.8, 0.85, 0.9, 0.95, 0.98, 1};
constexpr int kRateCount = sizeof kRates / sizeof kRates[0];
// Less of a difference cannot be told in a bounded number of runs.
constexpr double kSmallestEffect = 0.15;

// Before anything was seen: flat over the grid, which is denser at both ends, with more weight on
// what is commonest. Most regressions are not noisy at all, and most tests do not fail without a
// reason. Much more weight there would name the wrong commit when it is not so.
constexpr double kOfGridPoint = 1.0 / (kRateCount - 1);
constexpr double kOnCertainty = 0.1;  // more, on "never fails" before and on "always fails" after
constexpr double kOnBothCertain = 0.15;
constexpr double kOnNeverBefore = 0.1;  // spread over all rates after

double PairPrior(int good, int bad) {
  const bool never = good == 0, always = bad == kRateCount - 1;
  const double of_good = (1 - kOnCertainty) * kOfGridPoint + (never ? kOnCertainty : 0);
  const double of_bad = (1 - kOnCertainty) * kOfGridPoint + (always ? kOnCertainty : 0);
  return of_good * of_bad + (never ? kOnNeverBefore * kOfGridPoint : 0) +
         (never && always ? kOnBothCertain : 0);
}

double SinglePrior(int rate) {
  const bool is_certain = rate == 0 || rate == kRateCount - 1;
  return (1 - kOnCertainty) * kOfGridPoint + (is_certain ? kOnCertainty : 0);
}

void Normalize(std::vector<double>& weights) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (double& weight : weights) weight /= sum;
}

double Term(double p) { return p > 0 ? -p * std::log2(p) : 0.0; }

double Binomial(double rate, int runs, int k) {
  if (rate <= 0) return k == 0;
  if (rate >= 1) return k == runs;
  return std::exp(std::lgamma(runs + 1) - std::lgamma(k + 1) - std::lgamma(runs - k + 1) +
                  k * std::log(rate) + (runs - k) * std::log1p(-rate));
}

}  // namespace

int NoiseModel::BinOf(double result) const {
  return static_cast<int>(std::upper_bound(edges.begin(), edges.end(), result) - edges.begin());
}

NoiseModel FailureRates(bool nothing_flakes) {
  NoiseModel model;
  model.edges = {0.5};
  for (int good = 0; good < kRateCount; ++good) {
    for (int bad = 0; bad < kRateCount; ++bad) {
      if (kRates[bad] - kRates[good] < kSmallestEffect - 1e-9) continue;
      if (nothing_flakes && good > 0) continue;
      // The larger a change, the likelier that somebody bisects it.
      model.pair_prior.push_back(PairPrior(good, bad) * (kRates[bad] - kRates[good]));
      model.good.push_back({1 - kRates[good], kRates[good]});
      model.bad.push_back({1 - kRates[bad], kRates[bad]});
      model.good_level.push_back(kRates[good]);
      model.bad_level.push_back(kRates[bad]);
      model.capacity.push_back(Capacity(model.good.back(), model.bad.back()));
    }
    model.single_prior.push_back(SinglePrior(good));
    model.single.push_back({1 - kRates[good], kRates[good]});
  }
  Normalize(model.pair_prior);
  Normalize(model.single_prior);
  return model;
}

std::vector<double> Mix(const NoiseModel::Table& table, const std::vector<double>& weights) {
  std::vector<double> mixed(table.front().size(), 0.0);
  for (std::size_t i = 0; i < table.size(); ++i) {
    for (std::size_t k = 0; k < mixed.size(); ++k) mixed[k] += weights[i] * table[i][k];
  }
  return mixed;
}

double Entropy(const std::vector<double>& bins) {
  double bits = 0;
  for (double p : bins) bits += Term(p);
  return bits;
}

double Information(double yes, const std::vector<double>& if_no,
                   const std::vector<double>& if_yes) {
  double bits = -yes * Entropy(if_yes) - (1 - yes) * Entropy(if_no);
  for (std::size_t k = 0; k < if_no.size(); ++k)
    bits += Term(yes * if_yes[k] + (1 - yes) * if_no[k]);
  return std::max(bits, 0.0);
}

double BatchInformation(const NoiseModel& model, const std::vector<double>& pair_weights,
                        double is_bad, int runs) {
  const std::vector<double> good = Mix(model.good, pair_weights);
  const std::vector<double> bad = Mix(model.bad, pair_weights);
  int best_cut = 1;
  double most = -1, good_below = 0, bad_below = 0;
  for (int cut = 1; cut < model.bins(); ++cut) {
    good_below += good[cut - 1];
    bad_below += bad[cut - 1];
    const double bits =
        Information(is_bad, {good_below, 1 - good_below}, {bad_below, 1 - bad_below});
    if (bits > most) most = bits, best_cut = cut;
  }
  std::vector<double> if_good(runs + 1, 0.0), if_bad(runs + 1, 0.0);
  for (int pair = 0; pair < model.pairs(); ++pair) {
    if (pair_weights[pair] < 1e-6) continue;
    auto below = [&](const std::vector<double>& row) {
      return std::accumulate(row.begin(), row.begin() + best_cut, 0.0);
    };
    const double of_good = below(model.good[pair]), of_bad = below(model.bad[pair]);
    for (int k = 0; k <= runs; ++k) {
      if_good[k] += pair_weights[pair] * Binomial(of_good, runs, k);
      if_bad[k] += pair_weights[pair] * Binomial(of_bad, runs, k);
    }
  }
  return Information(is_bad, if_good, if_bad);
}

double Capacity(const std::vector<double>& if_no, const std::vector<double>& if_yes) {
  double low = 0, high = 1;  // Information is concave in `yes`
  for (int i = 0; i < 60; ++i) {
    const double a = low + (high - low) / 3, b = high - (high - low) / 3;
    if (Information(a, if_no, if_yes) < Information(b, if_no, if_yes)) {
      low = a;
    } else {
      high = b;
    }
  }
  return Information((low + high) / 2, if_no, if_yes);
}

}  // namespace trainwreck
