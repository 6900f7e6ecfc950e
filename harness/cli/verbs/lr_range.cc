// trainwreck lr-range: runs a recipe at many learning rates, each a real run of its own length and
// schedule, and says which of them learn. L. N. Smith (2017) ramps the rate within one run; whole
// runs cost more and see what comes late.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <limits>
#include <utility>

#include "harness/checkup/known.h"
#include "harness/checkup/lr_curve.h"
#include "harness/cli/table.h"
#include "harness/cli/verb.h"
#include "harness/protocol/recipe_view.h"
#include "harness/report/console.h"
#include "harness/report/text.h"
#include "harness/session/preflight.h"
#include "harness/session/selection.h"
#include "harness/session/storage.h"

namespace trainwreck {
namespace {

struct LrRangeOptions {
  CommonOptions common;
  std::string recipe;
  std::string arm = "control";
  std::optional<double> from, to;  // else the recipe's rate / 1000 and * 100
  int rates = 16;
  int seeds = 2;
  int steps = 0;  // 0: as the recipe says
  int cores = 0;
  std::vector<std::string> set;
  std::string report;
};

constexpr const char* kSchema = "trainwreck/lr-range";
constexpr int kSchemaVersion = 1;
const char* const kRate = KeyOf(KeyRole::kLearningRate);
constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<double> RatesOf(const LrRangeOptions& options, double own) {
  const double from = options.from.value_or(own / 1000), to = options.to.value_or(own * 100);
  if (!(from > 0) || !(to > from)) {
    throw UsageError(
        fmt::format("rates from {:g} to {:g}: --from must be above 0 and below --to", from, to));
  }
  std::vector<double> rates;
  for (int i = 0; i < options.rates; ++i) {
    rates.push_back(from * std::pow(to / from, static_cast<double>(i) / (options.rates - 1)));
  }
  return rates;
}

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

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
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
  point.start = Median(starts);
  point.end = point.diverged ? kInfinity : Median(ends);
  return point;
}

struct Advice {
  const char* text;
  const char* scenario;  // that shows the same failure
};

Advice AdviceFor(RateVerdict verdict) {
  switch (verdict) {
    case RateVerdict::kGood:
      return {"inside the range: look elsewhere first", ""};
    case RateVerdict::kTooLow:
      return {"too low: it learns less than the range allows", "not-learning/lr-too-low"};
    case RateVerdict::kTooHigh:
      return {"too high: it stays finite and learns less", "not-learning/lr-oscillation"};
    case RateVerdict::kDiverges:
      return {"too high: it diverges", "nan/lr-too-high"};
  }
  return {"", ""};
}

// Remedies and decoys of the scenario that shows the failure, where it is among the scenarios.
Json AdviceFrom(const Session& session, const std::string& name) {
  const std::string file = session.scenarios_root + "/" + name + ".yaml";
  if (name.empty() || !std::filesystem::is_regular_file(file)) return nullptr;
  const Scenario scenario = LoadScenarios(session, {file}).front();
  Json next = Json::array(), not_first = Json::array();
  for (const Remedy& remedy : scenario.remedies) next.push_back(remedy.name);
  for (const Decoy& decoy : scenario.decoys) not_first.push_back(decoy.name);
  return {{"scenario", name}, {"next", next}, {"not_first", not_first}};
}

std::string Join(const Json& names) {
  std::string text;
  for (const Json& name : names) text += (text.empty() ? "" : ", ") + name.get<std::string>();
  return text;
}

void PrintPoints(const std::vector<RatePoint>& points, const LrRange& range) {
  std::vector<std::vector<std::string>> rows = {{"rate", "end loss", ""}};
  for (int i = 0; i < static_cast<int>(points.size()); ++i) {
    std::string note;
    if (i >= range.plateau_from && i <= range.plateau_to && range.best >= 0) note = "plateau";
    for (const auto& [index, word] : {std::pair(range.best, "best"),
                                      {range.steepest, "steepest descent"},
                                      {range.largest_stable, "largest stable"}}) {
      if (i == index) note += (note.empty() ? "" : ", ") + std::string(word);
    }
    rows.push_back({FormatNumber(points[i].rate),
                    points[i].diverged ? "diverged" : FormatNumber(points[i].end), note});
  }
  PrintTable(std::cout, rows);
  std::vector<double> ends;
  for (const RatePoint& point : points) ends.push_back(point.end);
  std::cout << "# end loss by rate: "
            << Sparkline(ends, 80, ConsoleOptions::ForStream(1, ColorMode::kNever).unicode,
                         FitScale({&ends}))
            << "\n";
}

void PrintAdvice(RateVerdict verdict, const Json& from, double suggested,
                 const std::string& recipe) {
  if (verdict == RateVerdict::kGood) {
    std::cout << "next:      keep the rate, and go on with 'trainwreck checkup " << recipe << "'\n"
              << "not first: another rate\n";
    return;
  }
  std::cout << fmt::format("next:      optimizer.lr = {:.2g}, the middle of the plateau\n",
                           suggested);
  if (!from.is_object()) return;
  std::cout << "           or " << Join(from.at("next")) << "\n";
  if (!from.at("not_first").empty()) {
    std::cout << "not first: " << Join(from.at("not_first")) << "\n";
  }
  std::cout << "see:       trainwreck run " << from.at("scenario").get<std::string>() << "\n";
}

Batch RunsAt(const Patient& patient, const std::vector<double>& rates, int steps) {
  Batch runs;
  for (std::size_t i = 0; i < rates.size(); ++i) {
    for (Run run : patient.runs) {
      const std::size_t slash = run.id.rfind('/');
      run.arm = run.plan.arm = "rate" + std::to_string(i);
      run.id = run.id.substr(0, slash) + "/" + run.arm + run.id.substr(slash);
      run.plan.run = run.id;
      run.plan.recipe[kRate] = rates[i];
      run.plan.recipe[KeyOf(KeyRole::kSteps)] = run.steps = steps;
      runs.push_back(std::move(run));
    }
  }
  return runs;
}

// Null when interrupted.
std::optional<std::vector<RatePoint>> Measure(const Patient& patient,
                                              const std::vector<double>& rates, int steps,
                                              const Session& session, int cores) {
  LauncherOptions launcher;
  launcher.target = session.target;
  launcher.cores = cores;
  const Workspace workspace;
  launcher.output_dir = workspace.path();
  std::vector<RatePoint> points;
  const BatchesEnd end = RunBatches(
      {RunsAt(patient, rates, steps)}, launcher, /*keep=*/false,
      [&](std::size_t, BatchResults& results) {
        for (std::size_t i = 0; i < rates.size(); ++i) {
          points.push_back(PointOf(rates[i], results["rate" + std::to_string(i)], steps));
        }
      });
  if (!end.troubles.empty()) throw ConfigurationError("cannot run: " + end.troubles.front());
  if (end.interrupted) return std::nullopt;
  return points;
}

// Ends of the grid that were not given move on, a few times, where the range does not end in it.
std::optional<std::vector<RatePoint>> MeasureRange(const Patient& patient,
                                                   const LrRangeOptions& wanted, double own,
                                                   int steps, const Session& session) {
  constexpr int kRounds = 3;
  auto points = Measure(patient, RatesOf(wanted, own), steps, session, wanted.cores);
  for (int round = 0; points && round < kRounds; ++round) {
    const LrRange range = FindRange(*points);
    std::vector<double> rates;
    if (!wanted.to && IsOpenAbove(*points, range)) rates = Beyond(*points, /*above=*/true);
    if (!wanted.from && IsOpenBelow(*points, range)) {
      for (double rate : Beyond(*points, /*above=*/false)) rates.push_back(rate);
    }
    if (rates.empty()) break;
    const auto more = Measure(patient, rates, steps, session, wanted.cores);
    if (!more) return std::nullopt;
    points->insert(points->end(), more->begin(), more->end());
    std::sort(points->begin(), points->end(),
              [](const RatePoint& a, const RatePoint& b) { return a.rate < b.rate; });
  }
  return points;
}

Json ToJson(const std::vector<RatePoint>& points, const LrRange& range) {
  Json items = Json::array();
  for (const RatePoint& point : points) {
    items.push_back({{"rate", point.rate},
                     {"start", point.start},
                     {"end", point.diverged ? Json() : Json(point.end)}});
  }
  const auto rate = [&](int index) { return index < 0 ? Json() : Json(points[index].rate); };
  return {{"schema", kSchema},
          {"version", kSchemaVersion},
          {"points", items},
          {"best", rate(range.best)},
          {"steepest", rate(range.steepest)},
          {"largest_stable", rate(range.largest_stable)},
          {"plateau", {rate(range.plateau_from), rate(range.plateau_to)}},
          {"suggested", range.best < 0 ? Json() : Json(range.suggested)}};
}

int LrRangeVerb(const LrRangeOptions& options) {
  const LrRangeOptions& wanted = options;
  if (!wanted.report.empty()) CheckWritable(wanted.report, "--report");
  const Session session = OpenSession(options.common, /*builds=*/true);
  PlanOptions plan;
  plan.seeds = wanted.seeds;
  plan.overrides = ParseOverrides(wanted.set, session.description);
  const Chosen chosen = ChooseCases(session, {.paths = {wanted.recipe}}, plan, /*points=*/{});
  RequirePreflight(options.common, session, chosen.cases);
  const Patient patient = OnePatient(chosen, wanted.arm, 0, wanted.seeds);
  const Recipe& recipe = patient.runs.front().plan.recipe;
  const std::optional<double> own = RecipeView(recipe).Number(kRate);
  if (!own) throw UsageError(std::string("the target has no recipe key ") + kRate);
  const double own_rate = *own;
  const int steps = wanted.steps > 0 ? wanted.steps : patient.runs.front().steps;
  std::cout << fmt::format("# lr-range of {} ({}): seeds of each rate: {}, {} steps\n",
                           patient.one->name, wanted.arm, wanted.seeds, steps);
  const auto points = MeasureRange(patient, wanted, own_rate, steps, session);
  if (!points) return kExitInterrupted;
  const LrRange range = FindRange(*points);
  PrintPoints(*points, range);
  Json json = ToJson(*points, range);
  const auto verdict = Judge(*points, range, own_rate);
  json["recipe"] = patient.one->name;
  json["own_rate"] = own_rate;
  if (verdict) {
    const Advice advice = AdviceFor(*verdict);
    const Json from = AdviceFrom(session, advice.scenario);
    std::cout << fmt::format("# the recipe's rate, {:g}, is {}\n", own_rate, advice.text);
    PrintAdvice(*verdict, from, range.suggested, wanted.recipe);
    json["own_rate_is"] = advice.text;
    json["advice"] = from;
  } else {
    std::cout << "# no rate learns: the rate is not what is wrong; go on with 'trainwreck checkup "
              << wanted.recipe << "'\n";
  }
  if (!wanted.report.empty()) {
    WriteWholeFile(wanted.report, json.dump(1) + "\n");
    std::cout << "# report: " << wanted.report << "\n";
  }
  if (!verdict) return kExitInconclusive;
  return *verdict == RateVerdict::kGood ? kExitPassed : kExitFailed;
}

void Declare(VerbArguments& arguments, LrRangeOptions& options) {
  arguments
      .Positional("RECIPE", options.recipe, "A scenario's file or name, as nan/x or 'nan/x[sgd]'")
      .Required();
  arguments.PatientArm(options.arm);
  arguments.Option("--from", options.from, "The lowest rate [the recipe's / 1000]", "RATE")
      .Positive();
  arguments.Option("--to", options.to, "The highest rate [the recipe's x 100]", "RATE").Positive();
  arguments.Option("--rates", options.rates, "How many rates, ends included [16]", "N")
      .Between(3, 1000);
  arguments.Option("--seeds", options.seeds, "Seeds per rate [2]", "N").Between(1, 1000);
  arguments.Option("--steps", options.steps, "Steps of each run [as the recipe says]", "N")
      .Between(5, 100000);
  arguments.Set(options.set);
  arguments.Cores(options.cores);
  arguments.Option("--report", options.report, "Write a report as JSON", "FILE");
  arguments.Preflight(options.common);
  arguments.Common(options.common);
}

const VerbRegistration registration(
    "lr-range", "Learning-rate range test: run a recipe at many rates and suggest one",
    kSearching + 4, Declare, LrRangeVerb);

}  // namespace
}  // namespace trainwreck
