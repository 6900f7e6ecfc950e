// Of overfit.h: what the signals of a run that does not learn point to.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "harness/checkup/overfit.h"
#include "harness/text/words.h"

namespace trainwreck {
namespace {

// A gradient far from 0 that moves parameters by less than this share of their size is not felt in
// a few hundred steps.
constexpr double kTinyUpdate = 1e-6;
constexpr double kDeadShare = 0.999;
constexpr double kSameLoss = 1e-4;  // another order of the samples rounds the loss otherwise
constexpr std::size_t kNamesShown = 4;

bool AllOf(const Series* series, const std::function<bool(double)>& holds) {
  bool any = false;
  for (std::size_t step = 0; series != nullptr && step < series->values.size(); ++step) {
    if (series->present[step] == 0) continue;
    if (!holds(series->values[step])) return false;
    any = true;
  }
  return any;
}

bool IsZero(const Series* series) {
  return AllOf(series, [](double value) { return value == 0; });
}

// Names in braces of a signal of rank 0, of which `holds` is true.
std::vector<std::string> NamesWhere(const RunTrace& trace, const std::string& signal,
                                    const std::function<bool(const Series&)>& holds) {
  std::vector<std::string> names;
  for (const auto& [key, series] : trace.series) {
    if (key.second != 0 || !key.first.starts_with(signal + "{")) continue;
    if (!holds(series)) continue;
    names.push_back(key.first.substr(signal.size() + 1, key.first.size() - signal.size() - 2));
  }
  return names;
}

std::string Some(std::vector<std::string> names) {
  const std::size_t all = names.size();
  if (all > kNamesShown) names.resize(kNamesShown);
  return Join(names) + (all > kNamesShown ? fmt::format(" and {} more", all - kNamesShown) : "");
}

std::optional<FitClue> NotFinite(const RunTrace& trace) {
  const Series* loss = trace.Find("loss", 0);
  for (int step = 0; loss != nullptr && step < static_cast<int>(loss->values.size()); ++step) {
    if (!loss->Has(step) || std::isfinite(loss->values[step])) continue;
    return FitClue{fmt::format("the loss is not finite from step {} on", step),
                   "the event first_nonfinite names the module; try a lower rate with lr-range"};
  }
  return std::nullopt;
}

std::optional<FitClue> NoGradient(const RunTrace& trace) {
  if (!IsZero(trace.Find("grad_norm", 0))) return std::nullopt;
  return FitClue{"the gradient is 0 in every step",
                 "the loss does not depend on what trains: a detached graph, a mask over all "
                 "targets, a factor of 0, or nothing that requires a gradient"};
}

std::optional<FitClue> Skipped(const RunTrace& trace, int steps) {
  const Series* overflow = trace.Find("overflow", 0);
  if (overflow == nullptr) return std::nullopt;
  const auto skipped = std::count(overflow->values.begin(), overflow->values.end(), 1.0);
  if (2 * skipped < steps) return std::nullopt;
  return FitClue{fmt::format("{} of {} updates are skipped", skipped, steps),
                 "the loss scaler sees overflows: a lower scale, or bf16"};
}

std::optional<FitClue> NoUpdate(const RunTrace& trace) {
  const Series* updated = trace.Find("updated", 0);
  if (!IsZero(updated != nullptr ? updated : trace.Find("update_norm", 0))) return std::nullopt;
  return FitClue{"no parameter changes in any step",
                 "the update is not made, the rate is 0, or it is lost in rounding"};
}

std::optional<FitClue> NeverUpdated(const RunTrace& trace) {
  std::vector<std::string> all = NamesWhere(trace, "updated", [](const Series&) { return true; });
  std::vector<std::string> still =
      NamesWhere(trace, "updated", [](const Series& series) { return IsZero(&series); });
  if (still.empty()) return std::nullopt;
  std::vector<std::string> unreached;
  for (const std::string& name : still) {
    const Series* gradient = trace.Find("grad_norm{" + name + "}", 0);
    if (gradient == nullptr || IsZero(gradient)) unreached.push_back(name);
  }
  return FitClue{
      fmt::format("{} of {} parameters never change: {}", still.size(), all.size(), Some(still)),
      unreached.size() == still.size()
          ? "no gradient reaches them: they are frozen, or cut off from the loss"
          : "they have a gradient: the optimizer does not have them, or its rate for them is 0"};
}

std::optional<FitClue> TinyUpdates(const RunTrace& trace) {
  const Series* update = trace.Find("update_norm", 0);
  const Series* size = trace.Find("param_norm", 0);
  if (update == nullptr || size == nullptr) return std::nullopt;
  double largest = 0;
  for (int step = 0; step < static_cast<int>(update->values.size()); ++step) {
    if (!update->Has(step) || !size->Has(step) || !(size->values[step] > 0)) continue;
    largest = std::max(largest, update->values[step] / size->values[step]);
  }
  if (largest == 0 || largest >= kTinyUpdate) return std::nullopt;
  return FitClue{fmt::format("updates are at most {:.1g} of the parameters' size", largest),
                 "the rate is far too low, or gradients are clipped or scaled away"};
}

std::optional<FitClue> Dead(const RunTrace& trace) {
  const std::vector<std::string> dead =
      NamesWhere(trace, "act_zero_share", [](const Series& series) {
        return AllOf(&series, [](double share) { return share >= kDeadShare; });
      });
  if (dead.empty()) return std::nullopt;
  return FitClue{"outputs are 0 throughout: " + Some(dead),
                 "dead units: a lower rate, another initialisation or activation"};
}

// With a rate of 0 nothing changes but the data.
std::optional<FitClue> ChangingData(const RunTrace* still) {
  const Series* loss = still == nullptr ? nullptr : still->Find("loss", 0);
  if (loss == nullptr || loss->values.empty()) return std::nullopt;
  const auto [lo, hi] = std::minmax_element(loss->values.begin(), loss->values.end());
  if (!std::isfinite(*lo) || !std::isfinite(*hi) || !(*hi - *lo > kSameLoss * std::abs(*hi))) {
    return std::nullopt;
  }
  return FitClue{
      fmt::format("with a rate of 0 the loss goes from {:.4g} to {:.4g} all the same", *lo, *hi),
      "the samples change from step to step: labels, augmentation, noise, or other samples"};
}

}  // namespace

std::vector<FitClue> CluesOf(const RunTrace& trace, int steps, const RunTrace* still) {
  std::vector<FitClue> clues;
  const auto add = [&](std::optional<FitClue> clue) {
    if (clue) clues.push_back(std::move(*clue));
    return clue.has_value();
  };
  add(NotFinite(trace));
  add(Skipped(trace, steps));
  // Without any gradient or update the rest follows.
  if (!add(NoGradient(trace)) && !add(NoUpdate(trace))) {
    add(NeverUpdated(trace));
    add(TinyUpdates(trace));
  }
  add(ChangingData(still));
  add(Dead(trace));
  return clues;
}

}  // namespace trainwreck
