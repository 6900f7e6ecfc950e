#include "harness/checkup/lr_range.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <utility>

#include "harness/campaign/batches.h"
#include "harness/protocol/recipe_view.h"
#include "harness/statistics/trend.h"

namespace trainwreck {
namespace {

constexpr const char* kRangeSchema = "trainwreck/lr-range";
constexpr int kRangeVersion = 1;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Whether the range may go on beyond an end of the grid: upwards where the highest rate still
// learns or none does yet, downwards likewise.
bool IsOpenAbove(const std::vector<RatePoint>& points, const LrRange& range) {
  const int last = static_cast<int>(points.size()) - 1;
  return !points.back().diverged && (range.best < 0 || range.plateau_to == last);
}

bool IsOpenBelow(const std::vector<RatePoint>& points, const LrRange& range) {
  return range.best < 0 ? points.front().diverged : range.plateau_from == 0;
}

// As many steps of the grid as make a factor of 100, beyond its end.
std::vector<double> Beyond(const std::vector<RatePoint>& points, bool above) {
  const double step = points[1].rate / points[0].rate;
  const int count = std::max(1, static_cast<int>(std::ceil(std::log(100) / std::log(step))));
  std::vector<double> rates;
  for (int i = 1; i <= count; ++i) {
    rates.push_back(above ? points.back().rate * std::pow(step, i)
                          : points.front().rate / std::pow(step, i));
  }
  return rates;
}

// The mean of the losses in [begin, end); infinite where one is missing or not finite.
double MeanLoss(const RunTrace& trace, int begin, int end) {
  const Series* loss = trace.Find("loss", 0);
  double sum = 0;
  for (int step = begin; step < end; ++step) {
    if (loss == nullptr || !loss->Has(step) || !std::isfinite(loss->values[step])) return kInfinity;
    sum += loss->values[step];
  }
  return sum / (end - begin);
}

RatePoint PointOf(double rate, const std::map<int, RunResult>& by_seed, int steps) {
  RatePoint point;
  point.rate = rate;
  std::vector<double> starts, ends;
  for (const auto& [seed, result] : by_seed) {
    ends.push_back(MeanLoss(result.trace, steps - std::max(1, steps / 5), steps));
    // The very first loss is before any update, so that all rates begin alike.
    starts.push_back(MeanLoss(result.trace, 0, 1));
    point.diverged |= result.end != RunEnd::kCompleted || !std::isfinite(ends.back());
  }
  point.start = statistics::Median(std::move(starts));
  point.end = point.diverged ? kInfinity : statistics::Median(std::move(ends));
  return point;
}

const std::string& RateKeyOf(const TargetDescription& target) {
  const ParamInfo* key = KeyWithRole(target, KeyRole::kLearningRate);
  if (key != nullptr) return key->name;
  throw UsageError("no recipe key of target '" + target.name + "' has the role 'learning_rate': " +
                   "say so of its key, such as lr: {default: 0.1, role: learning_rate}");
}

Batch RunsAt(const Patient& patient, const std::string& key, const std::vector<double>& rates,
             int steps) {
  Batch runs;
  for (std::size_t i = 0; i < rates.size(); ++i) {
    for (Run run : patient.runs) {
      SetArm(run, "rate" + std::to_string(i));
      run.plan.recipe[key] = rates[i];
      run.plan.recipe[kStepsKey] = run.steps = steps;
      SetPhases(run, {});
      runs.push_back(std::move(run));
    }
  }
  return runs;
}

// The scenarios that show the same failure: that of the reference trainer, and one for any program.
std::vector<std::string> ScenariosOf(RateVerdict verdict) {
  switch (verdict) {
    case RateVerdict::kGood:
      return {};
    case RateVerdict::kTooLow:
      return {"not-learning/lr-too-low", "portable/lr-too-low"};
    case RateVerdict::kTooHigh:
      return {"not-learning/lr-oscillation", "portable/lr-too-high"};
    case RateVerdict::kDiverges:
      return {"nan/lr-too-high", "portable/lr-too-high"};
  }
  return {};
}

// From the first that the target can run.
RateAdvice AdviceFrom(const Session& session, const std::vector<std::string>& names) {
  RateAdvice advice;
  for (const std::string& name : names) {
    const std::string file = session.scenarios_root + "/" + name + ".yaml";
    if (!std::filesystem::is_regular_file(file)) continue;
    const Scenario scenario = LoadScenarios(session, {file}).front();
    if (!scenario.unserved.empty()) continue;
    advice.scenario = name;
    for (const Remedy& remedy : scenario.remedies) advice.next.push_back(remedy.name);
    for (const Decoy& decoy : scenario.decoys) advice.not_first.push_back(decoy.name);
    break;
  }
  return advice;
}

}  // namespace

std::vector<double> RatesOf(const RateGrid& grid) {
  const double from = grid.from.value_or(grid.own / 1000), to = grid.to.value_or(grid.own * 100);
  if (!(from > 0) || !(to > from)) {
    throw UsageError(
        fmt::format("rates from {:g} to {:g}: --from must be above 0 and below --to", from, to));
  }
  std::vector<double> rates;
  for (int i = 0; i < grid.rates; ++i) {
    rates.push_back(from * std::pow(to / from, static_cast<double>(i) / (grid.rates - 1)));
  }
  return rates;
}

MeasuredRates MeasureRange(
    const RateGrid& grid, const std::function<MeasuredRates(const std::vector<double>&)>& measure) {
  constexpr int kRounds = 3;
  MeasuredRates points = measure(RatesOf(grid));
  for (int round = 0; points && round < kRounds; ++round) {
    const LrRange range = FindRange(*points);
    std::vector<double> rates;
    if (!grid.to && IsOpenAbove(*points, range)) rates = Beyond(*points, /*above=*/true);
    if (!grid.from && IsOpenBelow(*points, range)) {
      for (double rate : Beyond(*points, /*above=*/false)) rates.push_back(rate);
    }
    if (rates.empty()) break;
    const MeasuredRates more = measure(rates);
    if (!more) return std::nullopt;
    points->insert(points->end(), more->begin(), more->end());
    std::sort(points->begin(), points->end(),
              [](const RatePoint& a, const RatePoint& b) { return a.rate < b.rate; });
  }
  return points;
}

MeasuredRates RunAtRates(const Patient& patient, const std::vector<double>& rates, int steps,
                         const Session& session, int cores) {
  std::vector<RatePoint> points;
  const std::vector<Batch> batches = {
      RunsAt(patient, RateKeyOf(session.description), rates, steps)};
  const bool is_done = RunAside(batches, session, cores, [&](std::size_t, BatchResults& results) {
    for (std::size_t i = 0; i < rates.size(); ++i) {
      points.push_back(PointOf(rates[i], results["rate" + std::to_string(i)], steps));
    }
  });
  if (!is_done) return std::nullopt;
  return points;
}

double OwnRateOf(const Patient& patient, const TargetDescription& target) {
  const std::string& key = RateKeyOf(target);
  const std::optional<double> own = RecipeView(patient.runs.front().plan.recipe).Number(key);
  if (!own) throw UsageError("'" + key + "', which is to be the learning rate, is no number");
  return *own;
}

LrRangeResult ConcludeRange(const std::string& recipe, double own_rate,
                            std::vector<RatePoint> points, const Session& session) {
  LrRangeResult result;
  result.recipe = recipe;
  result.key = RateKeyOf(session.description);
  result.own_rate = own_rate;
  result.points = std::move(points);
  result.range = FindRange(result.points);
  result.verdict = Judge(result.points, result.range, own_rate);
  if (result.verdict) result.advice = AdviceFrom(session, ScenariosOf(*result.verdict));
  return result;
}

const char* TextOf(RateVerdict verdict) {
  switch (verdict) {
    case RateVerdict::kGood:
      return "inside the range: look elsewhere first";
    case RateVerdict::kTooLow:
      return "too low: it learns less than the range allows";
    case RateVerdict::kTooHigh:
      return "too high: it stays finite and learns less";
    case RateVerdict::kDiverges:
      return "too high: it diverges";
  }
  return "";
}

Json ToJson(const LrRangeResult& result) {
  Json items = Json::array();
  for (const RatePoint& point : result.points) {
    items.push_back({{"rate", point.rate},
                     {"start", point.start},
                     {"end", point.diverged ? Json() : Json(point.end)}});
  }
  const LrRange& range = result.range;
  const auto rate = [&](int index) { return index < 0 ? Json() : Json(result.points[index].rate); };
  Json json = {{"schema", kRangeSchema},
               {"version", kRangeVersion},
               {"recipe", result.recipe},
               {"own_rate", result.own_rate},
               {"points", items},
               {"best", rate(range.best)},
               {"steepest", rate(range.steepest)},
               {"largest_stable", rate(range.largest_stable)},
               {"plateau", {rate(range.plateau_from), rate(range.plateau_to)}},
               {"suggested", range.best < 0 ? Json() : Json(range.suggested)}};
  if (!result.verdict) return json;
  const RateAdvice& advice = result.advice;
  json["own_rate_is"] = TextOf(*result.verdict);
  json["advice"] = advice.scenario.empty() ? Json()
                                           : Json({{"scenario", advice.scenario},
                                                   {"next", advice.next},
                                                   {"not_first", advice.not_first}});
  return json;
}

}  // namespace trainwreck
