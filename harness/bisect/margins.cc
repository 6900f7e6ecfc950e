// The noise model of margins: how runs of a formula look before a change and after it, of which the
// form is not known. Two families of behaviours: all runs moved by about as much (shifts), and
// another share of the runs lies below some threshold (shares), whatever the margins themselves
// are. They share the weight, but where a clear gap parts the ends' runs, shares alone have it:
// shifts describe a bulk more closely, so its many runs would count for them whatever lies far out.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <utility>

#include "harness/bisect/noise.h"

namespace trainwreck {
namespace {

using Values = std::vector<double>;

// A diverged run has a margin of any size, -inf as well; squares of these are finite.
constexpr double kFarthest = 1e150;

Values Clamped(Values values) {
  for (double& value : values) value = std::clamp(value, -kFarthest, kFarthest);
  return values;
}

double Mean(const Values& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double Median(Values values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 != 0 ? values[half] : (values[half - 1] + values[half]) / 2;
}

double SquaredDeviations(const Values& values) {
  const double mean = Mean(values);
  double sum = 0;
  for (double value : values) sum += (value - mean) * (value - mean);
  return sum;
}

double Spread(const Values& values) {
  return std::sqrt(SquaredDeviations(values) / static_cast<double>(values.size()));
}

// Both ends without the runs that lie far from the others of their end: one of these alone would
// make mean and spread say nothing.
std::pair<Values, Values> WithoutFarOnes(const Values& good, const Values& bad) {
  constexpr double kFar = 12;  // in median deviations; of a normal distribution 8 standard ones
  Values deviations;
  for (const Values* end : {&good, &bad}) {
    const double middle = Median(*end);
    for (double value : *end) deviations.push_back(std::abs(value - middle));
  }
  const double reach = kFar * Median(deviations);
  auto near = [&](const Values& end) {
    const double middle = Median(end);
    Values kept;
    std::copy_if(end.begin(), end.end(), std::back_inserter(kept),
                 [&](double value) { return reach <= 0 || std::abs(value - middle) <= reach; });
    return kept;
  };
  return {near(good), near(bad)};
}

// The probability of each bin for a mean and a spread. Student's distribution with three degrees of
// freedom (its distribution function is elementary): a run far out says less than under a normal
// one. Part of it is spread over all bins, so that no single run ever proves anything.
Values MarginBins(const Values& edges, double mean, double spread) {
  constexpr double kAnything = 0.01;
  auto below = [&](double edge) {
    const double x = (edge - mean) / spread / std::sqrt(3.0);
    return 0.5 + (x / (1 + x * x) + std::atan(x)) / M_PI;
  };
  Values bins;
  double last = 0;
  for (double edge : edges) {
    bins.push_back(below(edge) - last);
    last = below(edge);
  }
  bins.push_back(1 - last);
  for (double& bin : bins) {
    bin = (1 - kAnything) * bin + kAnything / static_cast<double>(bins.size());
  }
  return bins;
}

// Where the runs of both ends lie that are not far out.
struct Place {
  double good = 0, bad = 0, spread = 0;
};

Place FindPlace(const Values& good_end, const Values& bad_end) {
  const auto [good, bad] = WithoutFarOnes(good_end, bad_end);
  Place place = {Mean(good), Mean(bad), 0};
  const double freedom = static_cast<double>(good.size() + bad.size()) - 2;
  const double deviations = SquaredDeviations(good) + SquaredDeviations(bad);
  const double scale = std::max({std::abs(place.good), std::abs(place.bad), 1e-12});
  // Seeds that agree to the last digit are no proof that others will.
  place.spread = std::max(std::sqrt(deviations / std::max(freedom, 1.0)), 1e-6 * scale);
  return place;
}

void AddPlaceEdges(const Place& place, Values& edges) {
  const double from = std::min(place.good, place.bad) - 4 * place.spread;
  const double to = std::max(place.good, place.bad) + 4 * place.spread;
  constexpr int kEdges = 24;
  for (int i = 0; i < kEdges; ++i) edges.push_back(from + (to - from) * i / (kEdges - 1));
  // Close to an end bins matter most: the gap between far ends needs none.
  for (double end : {place.good, place.bad}) {
    for (double offset : {-2.0, -1.0, -0.5, 0.5, 1.0, 2.0}) {
      edges.push_back(end + offset * place.spread);
    }
  }
}

void AddShifts(const Place& place, NoiseModel& model) {
  const auto& [good, bad, spread] = place;
  const double smallest = 1.0 * spread;
  for (double width : {0.7, 1.0, 1.5}) {
    for (double good_shift : {-1.0, -0.5, 0.0, 0.5, 1.0}) {
      for (double bad_shift : {-1.0, -0.5, 0.0, 0.5, 1.0}) {
        const double of_good = good + good_shift * spread, of_bad = bad + bad_shift * spread;
        if (of_good - of_bad < smallest) continue;
        model.pair_prior.push_back(1);
        model.good.push_back(MarginBins(model.edges, of_good, width * spread));
        model.bad.push_back(MarginBins(model.edges, of_bad, width * spread));
        model.good_level.push_back(of_good);
        model.bad_level.push_back(of_bad);
        model.capacity.push_back(Capacity(model.good.back(), model.bad.back()));
      }
    }
    // Without a change all runs of both ends are from one distribution, which may be wider.
    for (int i = 0; i <= 8; ++i) {
      model.single_prior.push_back(1);
      const double between = std::abs(good - bad) / 2;
      model.single.push_back(MarginBins(model.edges, good + (bad - good) * i / 8.0,
                                        width * std::sqrt(spread * spread + between * between)));
    }
  }
  if (model.pair_prior.empty()) {  // no worse at the bad end: the least that could be found
    model.pair_prior.push_back(1);
    model.good.push_back(MarginBins(model.edges, good, spread));
    model.bad.push_back(MarginBins(model.edges, good - 2 * smallest, spread));
    model.good_level.push_back(good);
    model.bad_level.push_back(good - 2 * smallest);
    model.capacity.push_back(Capacity(model.good.back(), model.bad.back()));
  }
}

// A threshold between two neighbours of the sorted margins.
struct Cut {
  double at = 0;
  double clearness = 0;  // the gap's width in spreads of the side that lies closer together
};

// Nearer to the side whose margins lie closer together: below a bulk of good runs a diverged one
// may have any value.
Cut CutAfter(const Values& sorted, std::size_t count) {
  const double low = sorted[count - 1], high = sorted[count], gap = high - low;
  auto scale = [&](auto begin, auto end) {
    // Among a few runs, some lie close together by chance.
    return end - begin < 4 ? gap : std::max(Spread(Values(begin, end)), 1e-6 * gap);
  };
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(count);
  const double below = scale(sorted.begin(), middle), above = scale(middle, sorted.end());
  const double cut = high - gap * (above / (below + above));
  // A margin on an edge counts as above it.
  return {cut > low && cut <= high ? cut : high, gap / std::min(below, above)};
}

// Logarithmic away from the bulk: among runs that lie far out, each at its own power of ten, all
// gaps are wide; on this scale the one that parts them from the bulk stands out.
Values Compressed(const Values& values) {
  const double middle = Median(values);
  Values deviations = values;
  for (double& value : deviations) value = std::abs(value - middle);
  const double scale = Median(std::move(deviations));
  if (scale <= 0) return values;
  Values compressed = values;
  for (double& value : compressed) value = std::asinh((value - middle) / scale);
  return compressed;
}

// Thresholds that a change of shares may show at: all that tell runs apart; of many the clearest
// gaps, and some at even shares of the runs.
struct Cuts {
  Values at;
  bool is_clear = false;  // one is in a gap that runs of one kind hardly ever have
};

Cuts FindCuts(Values sorted) {
  constexpr std::size_t kClearest = 4, kEven = 5;
  constexpr double kClear = 6;  // spreads
  std::sort(sorted.begin(), sorted.end());
  const Values compressed = Compressed(sorted);
  std::vector<Cut> cuts;
  Cuts chosen;
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    if (sorted[i - 1] == sorted[i]) continue;
    cuts.push_back(CutAfter(sorted, i));
    chosen.is_clear = chosen.is_clear || cuts.back().clearness > kClear;
    cuts.back().clearness = CutAfter(compressed, i).clearness;
  }
  if (cuts.size() <= kClearest + kEven) {
    for (const Cut& cut : cuts) chosen.at.push_back(cut.at);
    return chosen;
  }
  for (std::size_t i = 0; i < kEven; ++i) {
    chosen.at.push_back(cuts[(i + 1) * (cuts.size() - 1) / (kEven + 1)].at);
  }
  std::sort(cuts.begin(), cuts.end(),
            [](const Cut& a, const Cut& b) { return a.clearness > b.clearness; });
  for (const Cut& cut : cuts) {
    if (chosen.at.size() == kClearest + kEven) break;
    const auto known = std::find(chosen.at.begin(), chosen.at.end(), cut.at);
    if (known == chosen.at.end()) chosen.at.push_back(cut.at);
  }
  return chosen;
}

// How often each bin was met, at any commit, on both sides of a cut by itself: what is told apart
// is only how many runs lie below it, in the words of failure rates.
void AddShares(const Values& runs, const Values& cuts, NoiseModel& model) {
  Values shape(static_cast<std::size_t>(model.bins()), 1.0 / model.bins());
  for (double run : runs) shape[static_cast<std::size_t>(model.BinOf(run))] += 1;
  const NoiseModel rates = FailureRates();
  for (double cut : cuts) {
    const std::ptrdiff_t below = model.BinOf(cut);  // bins before it
    const double of_low = std::accumulate(shape.begin(), shape.begin() + below, 0.0);
    const double of_high = std::accumulate(shape.begin() + below, shape.end(), 0.0);
    auto spread_out = [&](const Values& pass_and_fail) {
      Values bins = shape;
      for (std::ptrdiff_t i = 0; i < std::ssize(bins); ++i) {
        bins[i] *= i < below ? pass_and_fail[1] / of_low : pass_and_fail[0] / of_high;
      }
      return bins;
    };
    for (int pair = 0; pair < rates.pairs(); ++pair) {
      model.pair_prior.push_back(rates.pair_prior[pair] / static_cast<double>(cuts.size()));
      model.good.push_back(spread_out(rates.good[pair]));
      model.bad.push_back(spread_out(rates.bad[pair]));
      model.good_level.push_back(rates.good_level[pair]);
      model.bad_level.push_back(rates.bad_level[pair]);
      model.capacity.push_back(rates.capacity[pair]);
    }
    for (int single = 0; single < rates.singles(); ++single) {
      model.single_prior.push_back(rates.single_prior[single] / static_cast<double>(cuts.size()));
      model.single.push_back(spread_out(rates.single[single]));
    }
  }
}

// Each family gets the same weight; `first` behaviours are of the first one.
void Balance(Values& prior, std::size_t first) {
  const auto middle = prior.begin() + static_cast<std::ptrdiff_t>(first);
  const double ahead = std::accumulate(prior.begin(), middle, 0.0);
  const double after = std::accumulate(middle, prior.end(), 0.0);
  const double families = (ahead > 0) + (after > 0);
  for (auto weight = prior.begin(); weight != prior.end(); ++weight) {
    *weight /= families * (weight < middle ? ahead : after);
  }
}

}  // namespace

bool HaveClearGap(const std::vector<double>& margins) {
  return FindCuts(Clamped(margins)).is_clear;
}

NoiseModel Margins(const std::vector<double>& good_end, const std::vector<double>& bad_end,
                   const std::vector<double>& between) {
  const Values good = Clamped(good_end), bad = Clamped(bad_end);
  Values ends = good;
  ends.insert(ends.end(), bad.begin(), bad.end());
  Values runs = Clamped(between);
  runs.insert(runs.end(), ends.begin(), ends.end());
  const Place place = FindPlace(good, bad);
  Cuts cuts = FindCuts(runs);
  // Beside shifts, which know the ends alone, shares must not know more.
  if (!cuts.is_clear) runs = ends, cuts = FindCuts(ends);
  NoiseModel model;
  model.edges = cuts.at;
  AddPlaceEdges(place, model.edges);
  std::sort(model.edges.begin(), model.edges.end());
  if (!cuts.is_clear) AddShifts(place, model);
  const std::size_t shift_pairs = model.pair_prior.size();
  const std::size_t shift_singles = model.single_prior.size();
  AddShares(runs, cuts.at, model);
  Balance(model.pair_prior, shift_pairs);
  Balance(model.single_prior, shift_singles);
  return model;
}

}  // namespace trainwreck
