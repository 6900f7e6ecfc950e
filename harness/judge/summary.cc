#include "harness/judge/summary.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace trainwreck {
namespace {

constexpr std::size_t kMaxPoints = 200;

struct Ending {
  int seed;
  double loss;  // of the last step that has one
};

// The run in the middle, by final loss; what is not finite counts as worst.
Ending MedianOf(std::vector<Ending> endings) {
  auto rank = [](const Ending& ending) {
    return std::isnan(ending.loss) ? std::numeric_limits<double>::infinity() : ending.loss;
  };
  std::stable_sort(endings.begin(), endings.end(),
                   [&](const Ending& a, const Ending& b) { return rank(a) < rank(b); });
  return endings[(endings.size() - 1) / 2];
}

void Downsample(const Series& series, ArmSummary& summary) {
  std::vector<int> steps;
  for (int step = 0; step < static_cast<int>(series.values.size()); ++step) {
    if (series.Has(step)) steps.push_back(step);
  }
  const std::size_t points = std::min(kMaxPoints, steps.size());
  for (std::size_t i = 0; i < points; ++i) {
    const std::size_t index = points == 1 ? 0 : i * (steps.size() - 1) / (points - 1);
    summary.steps.push_back(steps[index]);
    summary.loss.push_back(series.values[steps[index]]);
  }
}

std::string StatusOf(const std::string& arm, const std::vector<CheckResult>& checks) {
  int worst = 0;
  for (const CheckResult& check : checks) {
    if (check.arm != arm || check.failure_class.empty()) continue;
    if (check.check == "end") {
      worst = 3;
    } else {
      worst = std::max(worst, check.failure_class == "undecided" ? 1 : 2);
    }
  }
  constexpr const char* kNames[] = {"ok", "undecided", "fail", "error"};
  return kNames[worst];
}

}  // namespace

std::vector<ArmSummary> SummarizeArms(const CaseResults& results,
                                      const std::vector<CheckResult>& checks) {
  std::vector<ArmSummary> summaries;
  for (const ArmPlan& arm : results.plan->arms) {
    ArmSummary summary;
    summary.arm = arm.name;
    summary.kind = arm.kind;
    summary.is_undo = arm.is_undo;
    if (arm.remedy != nullptr) summary.note = arm.remedy->note;
    if (arm.decoy != nullptr) summary.note = arm.decoy->note;
    summary.status = arm.is_undo ? "undo" : StatusOf(arm.name, checks);
    summary.final_loss = std::numeric_limits<double>::quiet_NaN();
    std::vector<Ending> endings;
    auto runs = results.runs.find(arm.name);
    if (runs != results.runs.end()) {
      for (const auto& [seed, run] : runs->second) {
        const Series* loss = run.trace.Find("loss", 0);
        if (loss == nullptr || loss->values.empty()) continue;
        endings.push_back({seed, loss->values.back()});  // a series ends with a sample
      }
    }
    if (!endings.empty()) {
      const Ending median = MedianOf(std::move(endings));
      summary.median_seed = median.seed;
      summary.final_loss = median.loss;
      Downsample(*runs->second.at(median.seed).trace.Find("loss", 0), summary);
    }
    summaries.push_back(std::move(summary));
  }
  return summaries;
}

}  // namespace trainwreck
