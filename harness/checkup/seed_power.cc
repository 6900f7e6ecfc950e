#include "harness/checkup/seed_power.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "harness/campaign/batches.h"

namespace trainwreck {
namespace {

constexpr const char* kSeedsSchema = "trainwreck/seeds";
constexpr int kSeedsVersion = 1;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kShares[] = {0.005, 0.01, 0.02, 0.05, 0.1, 0.2};  // of the mean

// Of a run that stopped early, over its own last steps.
double FinalLoss(const RunResult& result, int steps, int last) {
  if (result.trace.planned_steps > 0) steps = std::min(steps, result.trace.planned_steps);
  const Series* loss = result.trace.Find("loss", 0);
  if (loss == nullptr || result.end != RunEnd::kCompleted) return kInfinity;
  double sum = 0;
  last = std::min(last, steps);
  for (int step = steps - last; step < steps; ++step) {
    if (!loss->Has(step) || !std::isfinite(loss->values[step])) return kInfinity;
    sum += loss->values[step];
  }
  return sum / last;
}

Batch RunsOf(const std::vector<std::pair<std::string, Patient>>& recipes) {
  Batch runs;
  for (const auto& [name, patient] : recipes) {
    for (Run run : patient.runs) {
      SetArm(run, name);
      runs.push_back(std::move(run));
    }
  }
  return runs;
}

Json EstimateJson(const std::optional<statistics::Estimate>& estimate) {
  if (!estimate) return nullptr;
  return {{"value", estimate->value}, {"interval", {estimate->lo, estimate->hi}}};
}

template <typename T>
Json OrNull(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

}  // namespace

int SeedLosses::diverged() const {
  return static_cast<int>(
      std::count_if(losses.begin(), losses.end(), [](double x) { return !std::isfinite(x); }));
}

SeedLosses Summarise(std::string name, std::vector<double> losses, double confidence) {
  SeedLosses summary{std::move(name), std::move(losses), std::nullopt, std::nullopt};
  summary.mean = statistics::Mean(summary.losses, confidence);
  summary.spread = statistics::Spread(summary.losses, confidence);
  return summary;
}

bool SeedPowerReport::is_told() const {
  if (recipes.size() == 1) return recipes.front().spread.has_value();
  return difference && difference->p < 1 - options.confidence;
}

SeedPowerReport ConcludeSeeds(std::vector<SeedLosses> recipes, const SeedPowerOptions& options) {
  SeedPowerReport report;
  report.options = options;
  report.recipes = std::move(recipes);
  report.seeds = static_cast<int>(report.recipes.front().losses.size());
  const SeedLosses &first = report.recipes.front(), &second = report.recipes.back();
  if (!first.spread || !second.spread) return report;
  const statistics::TestAims aims{.error = 1 - options.confidence, .power = options.power};
  const statistics::Noise noise{first.spread->value, second.spread->value};
  const statistics::Noise most{first.spread->hi, second.spread->hi};
  const auto add = [&](double difference) {
    report.needed.push_back({difference, statistics::SeedsToTell(difference, noise, aims),
                             statistics::SeedsToTell(difference, most, aims)});
  };
  report.least = statistics::LeastDifference(report.seeds, noise, aims);
  if (report.recipes.size() == 1) {
    for (const double share : kShares) add(share * std::abs(first.mean->value));
    return report;
  }
  report.difference = statistics::WelchTest(first.losses, second.losses, options.confidence);
  add(std::abs(report.difference->value));
  return report;
}

std::optional<SeedPowerReport> MeasureSeeds(
    const std::vector<std::pair<std::string, Patient>>& recipes, const SeedPowerOptions& options,
    const Session& session, int cores) {
  const int steps = recipes.front().second.runs.front().steps;
  int last = 0;
  std::vector<SeedLosses> measured;
  const bool is_done =
      RunAside({RunsOf(recipes)}, session, cores, [&](std::size_t, BatchResults& results) {
        for (const auto& [name, patient] : recipes) {
          const int length = patient.runs.front().steps;
          last = std::min(length, options.last > 0 ? options.last : std::max(1, length / 10));
          std::vector<double> losses;
          for (const auto& [seed, result] : results[name]) {
            losses.push_back(FinalLoss(result, length, last));
          }
          measured.push_back(Summarise(name, std::move(losses), options.confidence));
        }
      });
  if (!is_done) return std::nullopt;
  SeedPowerReport report = ConcludeSeeds(std::move(measured), options);
  report.recipe = recipes.front().second.name;
  report.steps = steps;
  report.options.last = last;
  return report;
}

Json ToJson(const SeedPowerReport& report) {
  Json json = {{"schema", kSeedsSchema},
               {"version", kSeedsVersion},
               {"recipe", report.recipe},
               {"seeds", report.seeds},
               {"steps", report.steps},
               {"last_steps", report.options.last},
               {"power", report.options.power},
               {"confidence", report.options.confidence},
               {"recipes", Json::array()},
               {"needed", Json::array()},
               {"least_difference", OrNull(report.least)}};
  for (const SeedLosses& one : report.recipes) {
    Json losses = Json::array();
    for (const double loss : one.losses) losses.push_back(EncodeNumber(loss));
    json["recipes"].push_back({{"name", one.name},
                               {"losses", losses},
                               {"diverged", one.diverged()},
                               {"mean", EstimateJson(one.mean)},
                               {"spread", EstimateJson(one.spread)}});
  }
  for (const SeedsNeeded& needed : report.needed) {
    json["needed"].push_back({{"difference", needed.difference},
                              {"seeds", OrNull(needed.seeds)},
                              {"cautious", OrNull(needed.cautious)}});
  }
  if (report.difference) {
    json["difference"] = {{"value", report.difference->value},
                          {"interval", {report.difference->lo, report.difference->hi}},
                          {"p", report.difference->p}};
  }
  return json;
}

}  // namespace trainwreck
