#include "harness/judge/summary.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace trainwreck {
namespace {

constexpr std::size_t kMaxPoints = 200;
constexpr std::size_t kMaxSignals = 200;  // bounds for what a target may make us keep
constexpr std::size_t kMaxKeys = 40;
constexpr std::size_t kMaxTextBytes = 200;

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

ArmStatus StatusOf(const std::string& arm, const std::vector<CheckResult>& checks) {
  ArmStatus worst = ArmStatus::kOk;
  for (const CheckResult& check : checks) {
    if (check.arm != arm || check.failure_class.empty()) continue;
    const bool is_undecided = check.failure_class == FailureClass::kUndecided;
    worst = std::max(worst, check.check == kEndCheck ? ArmStatus::kError
                            : is_undecided           ? ArmStatus::kUndecided
                                                     : ArmStatus::kFail);
  }
  return worst;
}

std::string LastLine(const std::string& text) {
  const std::size_t end = text.find_last_not_of(" \t\r\n");
  if (end == std::string::npos) return "";
  const std::size_t newline = text.find_last_of("\r\n", end);
  const std::size_t begin = newline == std::string::npos ? 0 : newline + 1;
  return text.substr(begin, std::min(end + 1 - begin, kMaxTextBytes));
}

// "seed 2: failed, code 1: ModuleNotFoundError: ..." of the first run that did not end well.
std::string BadEnd(const std::map<int, RunResult>& by_seed) {
  for (const auto& [seed, run] : by_seed) {
    if (run.end == RunEnd::kCompleted || run.end == RunEnd::kDecided) continue;
    std::string text = "seed " + std::to_string(seed) + ": " + ToString(run.end);
    // The harness itself ended the others, for a reason that they do not know.
    const bool has_failed = run.end == RunEnd::kFailed || run.detail.empty();
    for (const RankExit& exit : run.exits) {
      if (!has_failed) break;
      if (exit.code == 0 && exit.signal == 0) continue;
      text += ", rank " + std::to_string(exit.rank) +
              (exit.signal != 0 ? " signal " + std::to_string(exit.signal)
                                : " code " + std::to_string(exit.code));
      const std::string words = LastLine(exit.last_words);
      return words.empty() ? text : text + ": " + words;
    }
    return run.detail.empty() ? text : text + ", " + run.detail.substr(0, kMaxTextBytes);
  }
  return "";
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
    if (arm.kind == ArmKind::kTwin) summary.note = arm.twin->note;
    summary.status = arm.is_undo ? ArmStatus::kUndo : StatusOf(arm.name, checks);
    summary.final_loss = std::numeric_limits<double>::quiet_NaN();
    std::vector<Ending> endings;
    auto runs = results.runs.find(arm.name);
    if (runs != results.runs.end()) {
      summary.ended = BadEnd(runs->second);
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

// A step's time is from one record to the next, so it needs no signal of its own; the median passes
// over steps with an evaluation or a checkpoint, and over the gap of a restart.
double MedianStepSeconds(const RunTrace& trace) {
  auto found = trace.time_s.find(0);
  if (found == trace.time_s.end()) return 0;
  const Series& time = found->second;
  std::vector<double> seconds;
  for (int step = 1; step < static_cast<int>(time.values.size()); ++step) {
    if (!time.Has(step) || !time.Has(step - 1)) continue;
    const double gap = time.values[step] - time.values[step - 1];
    if (gap > 0) seconds.push_back(gap);
  }
  if (seconds.empty()) return 0;
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  return *middle;
}

void SummarizeTrace(const RunTrace& trace, RunResult& result) {
  for (const auto& [key, series] : trace.series) {
    const auto& [signal, rank] = key;
    if (rank != 0 || series.values.empty() || signal.find('{') != std::string::npos) continue;
    if (result.final_signals.size() >= kMaxSignals) break;
    result.final_signals[signal] = series.values.back();  // a series ends with a sample
  }
  result.step_seconds = MedianStepSeconds(trace);
  result.bits = BitsOf(trace, result.end == RunEnd::kCompleted);
}

void AddTo(std::map<std::string, std::string>& environment, const std::string& key,
           const std::string& value) {
  if (value.empty() || environment.size() >= kMaxKeys) return;
  std::string& text = environment[key.substr(0, kMaxTextBytes)];
  const std::string part = value.substr(0, kMaxTextBytes);
  if (("; " + text + "; ").find("; " + part + "; ") != std::string::npos) return;
  if (text.size() < kMaxTextBytes) text += (text.empty() ? "" : "; ") + part;
}

void AddEnvironment(const RunTrace& trace, std::map<std::string, std::string>& environment) {
  for (const auto& [rank, start] : trace.starts) {
    auto said = start.find("environment");
    if (said == start.end() || !said->is_object()) continue;
    for (const auto& [key, value] : said->items()) {
      AddTo(environment, key, value.is_string() ? value.get<std::string>() : value.dump());
    }
  }
}

}  // namespace trainwreck
