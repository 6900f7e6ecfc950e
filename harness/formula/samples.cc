#include "harness/formula/samples.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_set>

namespace trainwreck::formula {
namespace {

// The slice's samples, and what is wrong with it.
struct Gathered {
  std::vector<double> steps;
  std::vector<double> values;  // without NaN
  int present = 0;             // with NaN
  int future = 0;
  bool complete = true;  // nothing missing, no NaN, at least one sample

  Gathered(const Samples& samples, std::pair<int, int> range) {
    for (int step = range.first; step < range.second; ++step) {
      const SampleState state = samples.At(step);
      if (state == SampleState::kPresent) {
        ++present;
        const double value = samples.Raw(step);
        if (std::isnan(value)) {
          complete = false;
        } else {
          steps.push_back(step);
          values.push_back(value);
        }
      } else if (state == SampleState::kFuture) {
        ++future;
        complete = false;
      } else if (!samples.sparse) {
        complete = false;
      }
    }
    if (values.empty()) complete = false;
  }
};

// The sample at the near end of the slice; a sparse signal's first one from there.
Interval EndSample(const Samples& samples, int from, int to, int stride) {
  for (int step = from; step != to; step += stride) {
    const SampleState state = samples.At(step);
    if (state == SampleState::kPresent) return samples.Known(step);
    if (state == SampleState::kFuture || !samples.sparse) return kAll;
  }
  return kAll;
}

double MeanOf(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double DeviationOf(const std::vector<double>& values) {
  const double mean = MeanOf(values);
  double squares = 0;
  for (double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / static_cast<double>(values.size()));
}

}  // namespace

double Samples::Raw(int step) const {
  if (series == nullptr || !series->Has(step)) return std::numeric_limits<double>::quiet_NaN();
  return series->values[step];
}

std::pair<int, int> StepsOf(const Slice& slice, int planned_steps) {
  auto place = [&](int bound) {
    return std::clamp(bound < 0 ? bound + planned_steps : bound, 0, std::max(planned_steps, 0));
  };
  const int from = slice.from ? place(*slice.from) : 0;
  const int to = slice.to ? place(*slice.to) : std::max(planned_steps, 0);
  return {from, std::max(from, to)};
}

double MedianOf(std::vector<double> values) {
  const std::size_t middle = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + middle, values.end());
  const double upper = values[middle];
  if (values.size() % 2 == 1) return upper;
  const double lower = *std::max_element(values.begin(), values.begin() + middle);
  return lower == upper ? upper : lower + (upper - lower) / 2;
}

double SlopeOf(const std::vector<double>& times, const std::vector<double>& values) {
  const double time_mean = MeanOf(times), value_mean = MeanOf(values);
  double products = 0, squares = 0;
  for (std::size_t i = 0; i < times.size(); ++i) {
    products += (times[i] - time_mean) * (values[i] - value_mean);
    squares += (times[i] - time_mean) * (times[i] - time_mean);
  }
  return products / squares;  // one sample has no slope: NaN
}

Interval Aggregated(Aggregate aggregate, const Samples& samples, std::pair<int, int> range) {
  if (aggregate == Aggregate::kFirst) return EndSample(samples, range.first, range.second, 1);
  if (aggregate == Aggregate::kLast) {
    return EndSample(samples, range.second - 1, range.first - 1, -1);
  }
  const Gathered gathered(samples, range);
  const std::vector<double>& values = gathered.values;
  if (aggregate == Aggregate::kCount) {
    return {static_cast<double>(gathered.present),
            static_cast<double>(gathered.present + gathered.future)};
  }
  if (aggregate == Aggregate::kMin || aggregate == Aggregate::kMax) {
    if (values.empty()) return kAll;
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    if (aggregate == Aggregate::kMin) return {gathered.complete ? *least : -kInfinity, *least};
    return {*most, gathered.complete ? *most : kInfinity};
  }
  if (!gathered.complete) return kAll;
  switch (aggregate) {
    case Aggregate::kMean:
      return Point(MeanOf(values));
    case Aggregate::kMedian:
      return Point(MedianOf(values));
    case Aggregate::kSum:
      return Point(std::accumulate(values.begin(), values.end(), 0.0));
    case Aggregate::kStd:
      return Point(DeviationOf(values));
    case Aggregate::kSlope:
      return Point(SlopeOf(gathered.steps, values));
    default:
      return kAll;
  }
}

Interval Overlap(const Samples& first, std::pair<int, int> first_range, const Samples& second,
                 std::pair<int, int> second_range) {
  const Gathered a(first, first_range), b(second, second_range);
  const std::unordered_set<double> known(b.values.begin(), b.values.end());
  int seen = 0;
  for (double value : a.values) seen += known.contains(value) ? 1 : 0;
  // Unknown samples of the first may be of the second; with unknown ones in the second, all may.
  auto unknown = [](const Gathered& slice, const Samples& samples, std::pair<int, int> range) {
    const int expected = samples.sparse ? slice.present + slice.future : range.second - range.first;
    return expected - static_cast<int>(slice.values.size());
  };
  const int unknown_first = unknown(a, first, first_range);
  const bool second_known = unknown(b, second, second_range) == 0;
  const int most = second_known ? seen : static_cast<int>(a.values.size());
  return {static_cast<double>(seen), static_cast<double>(most + unknown_first)};
}

}  // namespace trainwreck::formula
