#include "harness/history/rank_statistics.h"

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <cstdlib>
#include <map>
#include <numeric>
#include <utility>

namespace trainwreck {
namespace {

// Above this the normal approximation is good to three digits, and the exact count costs more.
constexpr int kExactUpTo = 60;

const boost::math::normal kNormal;

// Twice the mid-ranks of the pooled sample, so that ties stay whole numbers.
std::vector<int> DoubledRanks(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> pooled = a;
  pooled.insert(pooled.end(), b.begin(), b.end());
  std::vector<std::size_t> order(pooled.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t x, std::size_t y) { return pooled[x] < pooled[y]; });
  std::vector<int> ranks(pooled.size());
  for (std::size_t begin = 0, end; begin < order.size(); begin = end) {
    end = begin;
    while (end < order.size() && pooled[order[end]] == pooled[order[begin]]) ++end;
    for (std::size_t i = begin; i < end; ++i) {
      ranks[order[i]] = static_cast<int>(begin + end + 1);
    }
  }
  return ranks;
}

// ways[s]: in how many ways `size` of the numbers add up to s. As doubles: only ratios are used.
std::vector<double> WaysToSum(const std::vector<int>& numbers, int size) {
  const auto total = static_cast<std::size_t>(std::accumulate(numbers.begin(), numbers.end(), 0));
  std::vector<std::vector<double>> ways(size + 1, std::vector<double>(total + 1, 0.0));
  ways[0][0] = 1;
  std::size_t reached = 0;
  for (int number : numbers) {
    reached += static_cast<std::size_t>(number);
    for (int taken = size; taken >= 1; --taken) {
      for (std::size_t sum = reached; sum >= static_cast<std::size_t>(number); --sum) {
        ways[taken][sum] += ways[taken - 1][sum - number];
      }
    }
  }
  return ways[size];
}

// The same for the ranks 2, 4, ..., 2 * n, as they are without ties; kept, since it is asked for
// again and again. (This program has one thread.)
const std::vector<double>& WaysWithoutTies(int n, int size) {
  static std::map<std::pair<int, int>, std::vector<double>> known;
  std::vector<double>& ways = known[{n, size}];
  if (!ways.empty()) return ways;
  std::vector<int> ranks(n);
  for (int i = 0; i < n; ++i) ranks[i] = 2 * (i + 1);
  return ways = WaysToSum(ranks, size);
}

bool HasTies(std::vector<int> ranks) {
  std::sort(ranks.begin(), ranks.end());
  return std::adjacent_find(ranks.begin(), ranks.end()) != ranks.end();
}

double ExactTwoSided(const std::vector<int>& ranks, int size, int sum) {
  const std::vector<double>& ways = HasTies(ranks)
                                        ? WaysToSum(ranks, size)
                                        : WaysWithoutTies(static_cast<int>(ranks.size()), size);
  const double mean = static_cast<double>(std::accumulate(ranks.begin(), ranks.end(), 0)) * size /
                      static_cast<double>(ranks.size());
  const double distance = std::abs(sum - mean) - 1e-9;
  double all = 0, as_far = 0;
  for (std::size_t s = 0; s < ways.size(); ++s) {
    all += ways[s];
    if (std::abs(static_cast<double>(s) - mean) >= distance) as_far += ways[s];
  }
  return std::min(1.0, as_far / all);
}

// With the variance that the ties leave, and a correction for continuity.
double ApproximateTwoSided(const std::vector<int>& ranks, int size, int sum) {
  const auto n = static_cast<double>(ranks.size());
  const double mean_rank = std::accumulate(ranks.begin(), ranks.end(), 0.0) / n;
  double squares = 0;
  for (int rank : ranks) squares += (rank - mean_rank) * (rank - mean_rank);
  const double variance = size * (n - size) / (n * (n - 1)) * squares;
  if (variance == 0) return 1;
  const double distance = std::max(0.0, std::abs(sum - mean_rank * size) - 1);
  return std::min(1.0, 2 * cdf(complement(kNormal, distance / std::sqrt(variance))));
}

// The largest q with P(X < q) < tail / 2, for a statistic that counts from 0 with these ways; the
// interval then runs from the q-th smallest to the q-th largest. 0: not even the ends will do.
int TailRank(const std::vector<double>& ways, double tail) {
  const double all = std::accumulate(ways.begin(), ways.end(), 0.0);
  double below = 0;
  for (std::size_t q = 0; q < ways.size(); ++q) {
    below += ways[q];
    if (below / all >= tail / 2) return static_cast<int>(q);
  }
  return 0;
}

int ApproximateTailRank(double mean, double variance, double tail) {
  const double at = mean + quantile(kNormal, tail / 2) * std::sqrt(variance) - 0.5;
  return std::max(0, static_cast<int>(std::floor(at)));
}

std::optional<ShiftInterval> FromSorted(std::vector<double> values, int tail_rank) {
  if (tail_rank < 1 || static_cast<std::size_t>(tail_rank) > values.size()) return std::nullopt;
  const std::size_t n = values.size();
  auto smallest = [&](std::size_t k) {
    std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(k), values.end());
    return values[k];
  };
  return ShiftInterval{.estimate = (smallest((n - 1) / 2) + smallest(n / 2)) / 2,
                       .lo = smallest(tail_rank - 1),
                       .hi = smallest(n - tail_rank)};
}

bool AllFinite(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); });
}

}  // namespace

RankTest MannWhitney(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.empty() || b.empty()) std::abort();
  const std::vector<int> ranks = DoubledRanks(a, b);
  const bool use_a = a.size() <= b.size();  // the smaller one: fewer ways to count
  const auto first = ranks.begin() + (use_a ? 0 : static_cast<std::ptrdiff_t>(a.size()));
  const auto size = static_cast<int>(use_a ? a.size() : b.size());
  const int sum = std::accumulate(first, first + size, 0);
  RankTest test;
  test.p = static_cast<int>(ranks.size()) <= kExactUpTo ? ExactTwoSided(ranks, size, sum)
                                                        : ApproximateTwoSided(ranks, size, sum);
  const auto na = static_cast<double>(a.size()), nb = static_cast<double>(b.size());
  const double sum_b =
      std::accumulate(ranks.begin() + static_cast<std::ptrdiff_t>(a.size()), ranks.end(), 0.0) / 2;
  test.superiority = (sum_b - nb * (nb + 1) / 2) / (na * nb);
  return test;
}

double SmallestP(int a, int b) {
  double choices = 1;
  for (int i = 1; i <= a; ++i) choices = choices * (b + i) / i;
  return std::min(1.0, 2 / choices);
}

std::optional<ShiftInterval> Shift(const std::vector<double>& a, const std::vector<double>& b,
                                   double confidence) {
  if (a.empty() || b.empty() || !AllFinite(a) || !AllFinite(b)) return std::nullopt;
  std::vector<double> differences;
  differences.reserve(a.size() * b.size());
  for (double x : a) {
    for (double y : b) differences.push_back(y - x);
  }
  const auto na = static_cast<int>(a.size()), nb = static_cast<int>(b.size());
  int tail_rank = 0;
  if (na + nb <= kExactUpTo) {
    const std::vector<double>& doubled = WaysWithoutTies(na + nb, na);
    std::vector<double> ways(na * nb + 1);  // of U
    for (int u = 0; u <= na * nb; ++u) ways[u] = doubled[2 * u + na * (na + 1)];
    tail_rank = TailRank(ways, 1 - confidence);
  } else {
    tail_rank = ApproximateTailRank(na * nb / 2.0, na * nb * (na + nb + 1) / 12.0, 1 - confidence);
  }
  return FromSorted(std::move(differences), tail_rank);
}

std::optional<ShiftInterval> PairedShift(const std::vector<double>& differences,
                                         double confidence) {
  if (differences.empty() || !AllFinite(differences)) return std::nullopt;
  const auto n = static_cast<int>(differences.size());
  std::vector<double> means;  // Walsh averages
  for (int i = 0; i < n; ++i) {
    for (int j = i; j < n; ++j) means.push_back((differences[i] + differences[j]) / 2);
  }
  int tail_rank = 0;
  if (n <= kExactUpTo) {
    std::vector<double> ways(n * (n + 1) / 2 + 1, 0.0);  // of the signed-rank statistic
    ways[0] = 1;
    for (int rank = 1; rank <= n; ++rank) {
      for (int sum = n * (n + 1) / 2; sum >= rank; --sum) ways[sum] += ways[sum - rank];
    }
    tail_rank = TailRank(ways, 1 - confidence);
  } else {
    tail_rank =
        ApproximateTailRank(n * (n + 1) / 4.0, n * (n + 1) * (2.0 * n + 1) / 24.0, 1 - confidence);
  }
  return FromSorted(std::move(means), tail_rank);
}

}  // namespace trainwreck
