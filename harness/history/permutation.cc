#include "harness/history/permutation.h"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <cstdint>
#include <map>
#include <numeric>
#include <random>

#include "harness/history/rank_statistics.h"

namespace trainwreck {
namespace {

constexpr double kMostDeals = 1000;  // all are tried up to so many, else a sample of them
constexpr double kRounding = 1e-12;

// One side's values, then the other's, with a mean of 0 and a sum of squares of 1. Infinite values
// are put far beyond the finite ones.
std::vector<double> Standardised(const Samples& samples) {
  std::vector<double> values = samples.first;
  values.insert(values.end(), samples.second.begin(), samples.second.end());
  double lo = 0, hi = 0;
  bool any = false;
  for (double value : values) {
    if (std::isinf(value)) continue;
    lo = any ? std::min(lo, value) : value;
    hi = any ? std::max(hi, value) : value;
    any = true;
  }
  const double reach = hi > lo ? hi - lo : std::max(1.0, std::abs(lo));
  for (double& value : values) {
    if (std::isinf(value)) value = value > 0 ? hi + 1000 * reach : lo - 1000 * reach;
    // Before sums are made, so that the digits of a small deviation are not lost.
    value = (value - lo) / reach;
  }
  const auto n = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double squares = 0;
  for (double& value : values) {
    value -= mean;
    squares += value * value;
  }
  for (double& value : values) value = squares > 0 ? value / std::sqrt(squares) : 0;
  return values;
}

// The share of the squares that lies between the sides, when `chosen` are A's. Student's t grows
// with it, and between margins of equal size they have the same order.
double ShareBetween(const std::vector<double>& values, const std::vector<int>& chosen) {
  double sum = 0;
  for (int index : chosen) sum += values[static_cast<std::size_t>(index)];
  const auto n = static_cast<double>(values.size()), a = static_cast<double>(chosen.size());
  return sum * sum * n / (a * (n - a));
}

// Calls `visit` with each way to choose `chosen` of `total`, the first ones first.
template <typename Visit>
void VisitAll(int total, int chosen, Visit visit) {
  std::vector<int> indices(static_cast<std::size_t>(chosen));
  std::iota(indices.begin(), indices.end(), 0);
  for (;;) {
    visit(indices);
    int at = chosen - 1;
    while (at >= 0 && indices[at] == total - chosen + at) --at;
    if (at < 0) return;
    ++indices[at];
    for (int later = at + 1; later < chosen; ++later) indices[later] = indices[later - 1] + 1;
  }
}

template <typename Visit>
void VisitSome(int total, int chosen, int deals, Visit visit) {
  std::mt19937_64 random(20240229);  // the same on every machine
  std::vector<int> indices(static_cast<std::size_t>(total));
  std::iota(indices.begin(), indices.end(), 0);
  for (int deal = 0; deal < deals; ++deal) {
    for (int i = 0; i < chosen; ++i) {
      const auto left = static_cast<std::uint64_t>(total - i);
      std::swap(indices[i], indices[i + static_cast<int>(random() % left)]);
    }
    visit(std::vector<int>(indices.begin(), indices.begin() + chosen));
  }
}

// Margins with `a` and `b` seeds; `p` gets the answers at their places.
void TestGroup(const std::vector<Samples>& margins, const std::vector<std::size_t>& places, int a,
               int b, double level, std::vector<double>& p) {
  std::vector<int> seen(static_cast<std::size_t>(a));
  std::iota(seen.begin(), seen.end(), 0);
  struct Margin {
    std::size_t place;
    std::vector<double> values;
    double share;
    int as_far = 0;
  };
  std::vector<Margin> ordered;  // the farthest first
  for (std::size_t place : places) {
    Margin margin{place, Standardised(margins[place]), 0};
    margin.share = ShareBetween(margin.values, seen);
    ordered.push_back(std::move(margin));
  }
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const Margin& x, const Margin& y) { return x.share > y.share; });
  int deals = 0;
  auto visit = [&](const std::vector<int>& chosen) {
    ++deals;
    double largest = 0;  // of this margin and those that are less far out
    for (auto margin = ordered.rbegin(); margin != ordered.rend(); ++margin) {
      largest = std::max(largest, ShareBetween(margin->values, chosen));
      margin->as_far += largest >= margin->share - kRounding;
    }
  };
  const bool is_exact = 2 / SmallestP(a, b) <= kMostDeals;
  if (is_exact) {
    VisitAll(a + b, a, visit);
  } else {
    VisitSome(a + b, a, static_cast<int>(std::max(kMostDeals - 1, 10 / level)), visit);
  }
  double largest = 0;
  for (const Margin& margin : ordered) {
    const int own = is_exact ? 0 : 1;  // the deal that was seen is one of them
    largest = std::max(largest, static_cast<double>(margin.as_far + own) / (deals + own));
    p[margin.place] = largest;
  }
}

}  // namespace

std::vector<double> FamilywiseP(const std::vector<Samples>& margins, double level) {
  std::vector<double> p(margins.size(), 1);
  std::map<std::pair<int, int>, std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < margins.size(); ++i) {
    const auto& [a, b] = margins[i];
    groups[{static_cast<int>(a.size()), static_cast<int>(b.size())}].push_back(i);
  }
  int able = 0;
  for (const auto& [sizes, places] : groups) {
    if (SmallestP(sizes.first, sizes.second) > level) continue;
    ++able;
    TestGroup(margins, places, sizes.first, sizes.second, level, p);
  }
  for (double& one : p) one = std::min(1.0, one * std::max(1, able));
  return p;
}

double StudentP(const std::vector<double>& a, const std::vector<double>& b) {
  const double freedom = static_cast<double>(a.size() + b.size()) - 2;
  if (freedom < 1) return 1;
  std::vector<int> seen(a.size());
  std::iota(seen.begin(), seen.end(), 0);
  const double share = std::min(1.0, ShareBetween(Standardised({a, b}), seen));
  if (share >= 1) return 0;
  const double t = std::sqrt(share / (1 - share) * freedom);
  return 2 * cdf(complement(boost::math::students_t(freedom), t));
}

}  // namespace trainwreck
