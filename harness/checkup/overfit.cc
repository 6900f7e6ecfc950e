#include "harness/checkup/overfit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "harness/protocol/recipe_view.h"
#include "harness/statistics/trend.h"

namespace trainwreck {
namespace {

constexpr const char* kOverfitSchema = "trainwreck/overfit";
constexpr int kOverfitVersion = 1;
constexpr double kNoLoss = std::numeric_limits<double>::infinity();
constexpr int kLeastSteps = 200;
constexpr int kStillSteps = 8;

constexpr char kTwoExamples[] = "two_examples";
constexpr char kOneBatch[] = "one_batch";
constexpr char kStill[] = "still";

// What the clues are read from, as far as the target has it.
const std::vector<std::string>& ClueSignals() {
  static const std::vector<std::string> all = {"grad_norm",  "grad_norm{*}",     "updated",
                                               "updated{*}", "update_norm",      "param_norm",
                                               "overflow",   "act_zero_share{*}"};
  return all;
}

std::string KeyOf(const TargetDescription& target, KeyRole role) {
  const ParamInfo* key = KeyWithRole(target, role);
  return key == nullptr ? "" : key->name;
}

int RanksOf(const Recipe& recipe) { return RecipeView(recipe).Int(kRanksKey).value_or(1); }

void Require(const TargetDescription& target, KeyRole role) {
  if (KeyWithRole(target, role) != nullptr) return;
  throw UsageError("no recipe key of target '" + target.name + "' has the role '" + ToString(role) +
                   "': say so of the key that limits the samples of an epoch");
}

// A training of few samples, from a run as it was planned.
struct FewSamples {
  std::string name, what;
  Changes changes;
  int steps = 0;
};

Run RunOf(const Run& given, const FewSamples& variant, const TargetDescription& target) {
  Run run = given;
  SetArm(run, variant.name);
  Apply(variant.changes, run.plan.recipe);
  run.plan.recipe[kStepsKey] = run.steps = variant.steps;
  run.later_changes = {};
  SetPhases(run, {});
  for (const std::string& signal : ClueSignals()) {
    if (target.FindSignal(signal.substr(0, signal.find('{'))) != nullptr) {
      run.plan.record.push_back(signal);
    }
  }
  return run;
}

Probe ProbeOf(const FewSamples& variant, const std::map<int, RunResult>& by_seed) {
  Probe probe{variant.name, variant.what, {}};
  for (const auto& [seed, result] : by_seed) probe.seeds.push_back(FitOf(result, variant.steps));
  return probe;
}

// Makes the variants of all seeds, in order. False: interrupted.
class Laboratory {
 public:
  Laboratory(const Patient& patient, const Session& session, int cores)
      : patient_(patient), session_(session), cores_(cores) {}

  std::optional<std::vector<Probe>> Try(const std::vector<FewSamples>& variants) {
    Batch batch;
    for (const FewSamples& variant : variants) {
      for (const Run& run : patient_.runs) {
        batch.push_back(RunOf(run, variant, session_.description));
      }
    }
    std::vector<Probe> probes;
    const bool is_done =
        RunAside({batch}, session_, cores_, [&](std::size_t, BatchResults& results) {
          for (const FewSamples& variant : variants) {
            probes.push_back(ProbeOf(variant, results[variant.name]));
            for (auto& [seed, result] : results[variant.name]) {
              traces_[variant.name].push_back(std::move(result.trace));
            }
          }
        });
    if (!is_done) return std::nullopt;
    return probes;
  }

  const std::vector<RunTrace>& traces(const std::string& variant) { return traces_[variant]; }

 private:
  const Patient& patient_;
  const Session& session_;
  const int cores_;
  std::map<std::string, std::vector<RunTrace>> traces_;  // by variant, by seed
};

Changes Merged(Changes first, const Changes& second) {
  first.set.insert(first.set.end(), second.set.begin(), second.set.end());
  return first;
}

// The failing probe's samples with other rates, if the target has a key for the rate.
std::vector<FewSamples> AtOtherRates(const FewSamples& failing, const TargetDescription& target) {
  const std::string rate = KeyOf(target, KeyRole::kLearningRate);
  if (rate.empty()) return {};
  const auto at = [&](const char* name, const std::string& what, double factor) {
    FewSamples variant = failing;
    variant.name = name;
    variant.what = failing.what + what;
    variant.changes.scale.emplace_back(rate, factor);
    return variant;
  };
  std::vector<FewSamples> variants = {
      at("lower_rate", ", a tenth of the rate", 0.1), at("higher_rate", ", ten times the rate", 10),
      at("highest_rate", ", a hundred times the rate", 100), at(kStill, ", a rate of 0", 0)};
  variants.back().steps = std::min(failing.steps, kStillSteps);
  return variants;
}

// The rates nearest to the recipe's come first, and one is enough.
void AddClueOfRates(const std::vector<Probe>& more, std::vector<FitClue>& clues) {
  for (const Probe& probe : more) {
    if (probe.name == kStill || probe.verdict() != FitVerdict::kLearns) continue;
    const std::string which = probe.name == "lower_rate" ? "high" : "low";
    clues.push_back(
        {probe.what + ": it learns", "the rate is too " + which + "; lr-range finds one"});
    return;
  }
}

// What is tried next, and what the signals say, where a probe fails in some seed.
bool TryMore(const FewSamples& failing, const Probe& probe, const TargetDescription& target,
             Laboratory& laboratory, OverfitReport& report) {
  std::vector<FewSamples> variants = AtOtherRates(failing, target);
  if (!variants.empty()) {
    auto more = laboratory.Try(variants);
    if (!more) return false;
    report.more = std::move(*more);
  }
  std::size_t seed = 0;
  while (probe.seeds[seed].learns()) ++seed;
  const RunTrace& trace = laboratory.traces(failing.name)[seed];
  const auto& still = laboratory.traces(kStill);
  report.clues = CluesOf(trace, failing.steps, still.empty() ? nullptr : &still[seed]);
  AddClueOfRates(report.more, report.clues);
  std::erase_if(report.more, [](const Probe& one) { return one.name == kStill; });
  return true;
}

}  // namespace

Fit FitOf(const RunResult& result, int steps) {
  Fit fit{kNoLoss, kNoLoss, std::nullopt};
  const Series* loss = result.trace.Find("loss", 0);
  if (loss == nullptr || result.end != RunEnd::kCompleted) return fit;
  std::vector<double> last;
  for (int step = 0; step < static_cast<int>(loss->values.size()); ++step) {
    if (!loss->Has(step)) continue;
    const double value = loss->values[step];
    if (!std::isfinite(value)) return fit;
    if (std::isinf(fit.start)) fit.start = value;
    if (!fit.learnt_at && value <= kLearntShare * fit.start) fit.learnt_at = step;
    if (step >= steps - std::max(1, steps / 5)) last.push_back(value);
  }
  if (!last.empty()) fit.end = statistics::Median(std::move(last));
  return fit;
}

int Probe::learnt() const {
  return static_cast<int>(
      std::count_if(seeds.begin(), seeds.end(), [](const Fit& fit) { return fit.learns(); }));
}

FitVerdict Probe::verdict() const {
  if (learnt() == 0) return FitVerdict::kDoesNotLearn;
  return learnt() == static_cast<int>(seeds.size()) ? FitVerdict::kLearns : FitVerdict::kSomeSeeds;
}

std::optional<int> Probe::steps() const {
  std::vector<double> at;
  for (const Fit& fit : seeds) {
    if (fit.learns() && fit.learnt_at) at.push_back(*fit.learnt_at);
  }
  if (at.empty()) return std::nullopt;
  return static_cast<int>(std::lround(statistics::Median(std::move(at))));
}

FitVerdict OverfitReport::verdict() const {
  FitVerdict worst = FitVerdict::kLearns;
  for (const Probe& probe : probes) worst = std::max(worst, probe.verdict());
  return worst;
}

Changes TwoExamples(const Recipe& recipe, const TargetDescription& target) {
  Require(target, KeyRole::kSamples);
  Require(target, KeyRole::kBatchSize);
  Changes changes;
  changes.set.emplace_back(KeyOf(target, KeyRole::kSamples), 2 * RanksOf(recipe));
  changes.set.emplace_back(KeyOf(target, KeyRole::kBatchSize), 2);
  const std::string accumulation = KeyOf(target, KeyRole::kAccumulation);
  if (!accumulation.empty()) changes.set.emplace_back(accumulation, 1);
  return changes;
}

Changes OneBatch(const Recipe& recipe, const TargetDescription& target) {
  Require(target, KeyRole::kSamples);
  const RecipeView view(recipe, &target);
  Changes changes;
  const int in_step = RanksOf(recipe) * view.Int(KeyRole::kAccumulation).value_or(1) *
                      view.Int(KeyRole::kBatchSize).value_or(1);
  changes.set.emplace_back(KeyOf(target, KeyRole::kSamples), in_step);
  return changes;
}

Changes WithoutRegularisation(const Recipe& recipe, const TargetDescription& target) {
  Changes changes;
  for (const ParamInfo& key : target.recipe) {
    if (key.role != ToString(KeyRole::kWeightDecay) &&
        key.role != ToString(KeyRole::kRegularisation)) {
      continue;
    }
    const Json none = key.type == ValueType::kBool  ? Json(false)
                      : key.type == ValueType::kInt ? Json(static_cast<int>(key.min.value_or(0)))
                                                    : Json(key.min.value_or(0));
    const auto value = recipe.find(key.name);
    if ((value == recipe.end() ? key.default_value : value->second) != none) {
      changes.set.emplace_back(key.name, none);
    }
  }
  return changes;
}

std::optional<OverfitReport> Overfit(const Patient& patient, int steps, const Session& session,
                                     int cores) {
  const Recipe& recipe = patient.runs.front().plan.recipe;
  const TargetDescription& target = session.description;
  OverfitReport report;
  report.recipe = patient.name;
  report.steps = steps > 0 ? steps : std::max(patient.runs.front().steps, kLeastSteps);
  const Changes plain = WithoutRegularisation(recipe, target);
  for (const auto& [key, value] : plain.set) report.off.push_back(key);
  const std::vector<FewSamples> variants = {
      {kTwoExamples, "two examples", Merged(TwoExamples(recipe, target), plain), report.steps},
      {kOneBatch, "one batch", Merged(OneBatch(recipe, target), plain), report.steps}};
  Laboratory laboratory(patient, session, cores);
  auto probes = laboratory.Try(variants);
  if (!probes) return std::nullopt;
  report.probes = std::move(*probes);
  for (std::size_t i = 0; i < variants.size(); ++i) {
    if (report.probes[i].verdict() == FitVerdict::kLearns) continue;
    if (!TryMore(variants[i], report.probes[i], target, laboratory, report)) return std::nullopt;
    return report;
  }
  // Also where all is learnt: a layer that does not train may not be needed for so few samples.
  report.clues = CluesOf(laboratory.traces(kOneBatch).front(), report.steps, nullptr);
  return report;
}

const char* TextOf(FitVerdict verdict) {
  switch (verdict) {
    case FitVerdict::kLearns:
      return "learns";
    case FitVerdict::kSomeSeeds:
      return "learns in some seeds";
    case FitVerdict::kDoesNotLearn:
      return "does not learn";
  }
  return "";
}

Json ToJson(const OverfitReport& report) {
  const auto probes_json = [](const std::vector<Probe>& probes) {
    Json json = Json::array();
    for (const Probe& probe : probes) {
      Json seeds = Json::array();
      for (const Fit& fit : probe.seeds) {
        seeds.push_back(
            {{"start", EncodeNumber(fit.start)},
             {"end", EncodeNumber(fit.end)},
             {"learnt_at", fit.learns() && fit.learnt_at ? Json(*fit.learnt_at) : Json()}});
      }
      json.push_back({{"name", probe.name},
                      {"what", probe.what},
                      {"verdict", TextOf(probe.verdict())},
                      {"seeds", seeds}});
    }
    return json;
  };
  Json clues = Json::array();
  for (const FitClue& clue : report.clues) {
    clues.push_back({{"seen", clue.seen}, {"look", clue.look}});
  }
  return {{"schema", kOverfitSchema},
          {"version", kOverfitVersion},
          {"recipe", report.recipe},
          {"steps", report.steps},
          {"switched_off", report.off},
          {"verdict", TextOf(report.verdict())},
          {"probes", probes_json(report.probes)},
          {"other_rates", probes_json(report.more)},
          {"clues", clues}};
}

}  // namespace trainwreck
