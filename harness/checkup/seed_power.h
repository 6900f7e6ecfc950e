// How much a recipe's final loss differs from seed to seed, and how many seeds tell two recipes
// apart: a pilot of a few seeds, and the power of Welch's t test at its spread.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/checkup/known.h"
#include "harness/protocol/json.h"
#include "harness/session/session.h"
#include "harness/statistics/power.h"
#include "harness/statistics/spread.h"

namespace trainwreck {

struct SeedPowerOptions {
  int last = 0;  // steps whose mean loss is the final loss; 0: a tenth of the run, one at least
  double confidence = 0.95;
  double power = 0.8;
};

// The final losses of a recipe, by seed.
struct SeedLosses {
  std::string name;
  std::vector<double> losses;  // infinite where the run did not complete, or one is not finite
  std::optional<statistics::Estimate> mean, spread;  // empty: a loss is infinite, or there is one

  int diverged() const;
};

SeedLosses Summarise(std::string name, std::vector<double> losses, double confidence);

// How many seeds of each recipe find a difference. `cautious` takes the upper end of the spread's
// interval: a pilot of few seeds knows its own spread badly.
struct SeedsNeeded {
  double difference = 0;
  std::optional<int> seeds, cautious;  // empty: more than 100,000
};

struct SeedPowerReport {
  std::string recipe;
  int seeds = 0, steps = 0;
  SeedPowerOptions options;
  std::vector<SeedLosses> recipes;  // one or two
  // Of one recipe: differences of 0.5 to 20% of its mean. Of two: that of their means.
  std::vector<SeedsNeeded> needed;
  std::optional<statistics::Difference> difference;  // of two, where both have spreads
  std::optional<double> least;  // difference that the pilot's number of seeds finds

  // Whether the question has an answer: every run is finite and, of two recipes, they differ.
  bool is_told() const;
};

// Makes the runs of one or two recipes, given as patients with the same seeds. Empty: interrupted.
// Throws ConfigurationError when runs could not be made.
std::optional<SeedPowerReport> MeasureSeeds(
    const std::vector<std::pair<std::string, Patient>>& recipes, const SeedPowerOptions& options,
    const Session& session, int cores);

// The same from losses that are known.
SeedPowerReport ConcludeSeeds(std::vector<SeedLosses> recipes, const SeedPowerOptions& options);

Json ToJson(const SeedPowerReport& report);

}  // namespace trainwreck
