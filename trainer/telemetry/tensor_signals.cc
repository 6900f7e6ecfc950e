#include "trainer/telemetry/tensor_signals.h"

#include <algorithm>
#include <string_view>

#include "harness/protocol/plan.h"
#include "harness/text/glob.h"

namespace trainwreck {
namespace {

double Share(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
}

void AddTo(TensorReading& sum, const TensorReading& more) {
  kernels::TensorStats& stats = sum.stats;
  stats.count += more.stats.count;
  stats.nonfinite += more.stats.nonfinite;
  stats.nan += more.stats.nan;
  stats.zeros += more.stats.zeros;
  stats.max_abs = std::max(stats.max_abs, more.stats.max_abs);
  stats.sum += more.stats.sum;
  stats.sum_squares += more.stats.sum_squares;
  sum.saturated += more.saturated;
  sum.softmax_entropy += more.softmax_entropy;
  sum.rows += more.rows;
  sum.unit_spread = std::max(sum.unit_spread, more.unit_spread);
}

std::vector<const Statistic*> StatisticsOf(const std::string& family) {
  std::vector<const Statistic*> all;
  for (const Statistic& statistic : Statistics()) all.push_back(&statistic);
  if (family == "act") {
    all.push_back(&SaturatedShare());
    all.push_back(&UnitSpread());
    all.push_back(&SoftmaxEntropy());
  }
  return all;
}

// The gradients' norm is recorded in every step, whether asked for or not; those of parameters and
// updates, of all and of single ones, come from one comparison of the parameters.
bool IsMadeElsewhere(const std::string& family, const Statistic& statistic, bool total) {
  if (std::string_view(statistic.name) != "norm") return false;
  if (family == "act" || family == "initial") return false;
  return total || family == "param" || family == "update";
}

}  // namespace

const std::vector<Statistic>& Statistics() {
  using R = TensorReading;
  static const std::vector<Statistic> all = {
      {"norm", "", false, Scale::kLog, "2-norm of", [](const R& r) { return r.stats.ieee_norm(); }},
      {"mean", "", false, Scale::kLinear, "Mean of the finite elements of",
       [](const R& r) { return r.stats.mean(); }},
      {"std", "", false, Scale::kLog, "Standard deviation of the finite elements of",
       [](const R& r) { return r.stats.stddev(); }},
      {"max", "", false, Scale::kLog, "Largest magnitude of a finite element of",
       [](const R& r) { return r.stats.max_abs; }},
      {"nonfinite", "elements", true, Scale::kLinear, "NaN or infinite elements of",
       [](const R& r) { return static_cast<double>(r.stats.nonfinite); }},
      {"zero_share", "", false, Scale::kLinear, "Share of elements that are 0, of",
       [](const R& r) { return Share(r.stats.zeros, r.stats.count); }},
  };
  return all;
}

const Statistic& SaturatedShare() {
  static const Statistic statistic = {
      "saturated_share",
      "",
      false,
      Scale::kLinear,
      "Share of elements of magnitude 0.99 or more (where a tanh no longer reacts; it says nothing "
      "of outputs that are not bound by 1), of",
      [](const TensorReading& r) { return Share(r.saturated, r.stats.count); }};
  return statistic;
}

const Statistic& UnitSpread() {
  static const Statistic statistic = {
      "unit_spread",
      "",
      false,
      Scale::kLog,
      "Largest difference between two units (of the last dimension) for one input (0 where all "
      "compute the same), of",
      [](const TensorReading& r) { return r.unit_spread; }};
  return statistic;
}

const Statistic& SoftmaxEntropy() {
  static const Statistic statistic = {
      "softmax_entropy",
      "nats",
      false,
      Scale::kLog,
      "Mean over inputs of the entropy of a softmax over the last dimension (of logits: how "
      "undecided the prediction is; 0 where it is certain), of",
      [](const TensorReading& r) {
        return r.rows == 0 ? 0.0 : r.softmax_entropy / static_cast<double>(r.rows);
      }};
  return statistic;
}

std::vector<SignalInfo> FamilySignals(const std::string& family, const std::string& of_what,
                                      bool with_norm) {
  std::vector<SignalInfo> signals;
  for (const Statistic* statistic : StatisticsOf(family)) {
    if (!with_norm && std::string_view(statistic->name) == "norm") continue;
    signals.push_back({.name = family + "_" + statistic->name,
                       .unit = statistic->unit,
                       .scale = statistic->scale,
                       .exact = statistic->exact,
                       .per_module = true,
                       .doc = std::string(statistic->doc) + " " + of_what});
  }
  return signals;
}

AskedSignals::AskedSignals(const std::vector<std::string>& record) {
  for (const std::string& signal : record) {
    const std::size_t brace = signal.find('{');
    if (brace == std::string::npos) {
      totals_.push_back(signal);
    } else {
      globs_.emplace_back(signal.substr(0, brace),
                          signal.substr(brace + 1, signal.find('}', brace) - brace - 1));
    }
  }
}

bool AskedSignals::Asks(const std::string& signal, const std::string& name) const {
  return std::any_of(globs_.begin(), globs_.end(), [&](const auto& asked) {
    return asked.first == signal && GlobMatches(asked.second, name);
  });
}

bool AskedSignals::AsksTotal(const std::string& signal) const {
  return std::find(totals_.begin(), totals_.end(), signal) != totals_.end();
}

bool AskedSignals::AsksSome(const std::string& signal) const {
  return std::any_of(globs_.begin(), globs_.end(),
                     [&](const auto& asked) { return asked.first == signal; });
}

FamilyRecorder::FamilyRecorder(std::string family, const AskedSignals& asked)
    : family_(std::move(family)), asked_(asked), active_(false) {
  for (const Statistic* statistic : StatisticsOf(family_)) {
    const std::string signal = family_ + "_" + statistic->name;
    if (asked_.AsksTotal(signal) && !IsMadeElsewhere(family_, *statistic, /*total=*/true)) {
      total_.emplace_back(signal, statistic);
    }
    active_ = active_ ||
              (asked_.AsksSome(signal) && !IsMadeElsewhere(family_, *statistic, /*total=*/false));
  }
  active_ = active_ || !total_.empty();
}

FamilyRecorder::Entry& FamilyRecorder::EntryOf(const std::string& name) {
  const auto [found, fresh] = entries_.try_emplace(name);
  if (fresh) {
    for (const Statistic* statistic : StatisticsOf(family_)) {
      const std::string signal = family_ + "_" + statistic->name;
      if (!asked_.Asks(signal, name)) continue;
      if (IsMadeElsewhere(family_, *statistic, /*total=*/false)) continue;
      found->second.asked.emplace_back(signal + "{" + name + "}", statistic);
    }
  }
  return found->second;
}

bool FamilyRecorder::Wants(const std::string& name, const Statistic& statistic) const {
  const std::string signal = family_ + "_" + statistic.name;
  return asked_.AsksTotal(signal) || asked_.Asks(signal, name);
}

void FamilyRecorder::Add(const std::string& name, const TensorReading& reading) {
  Entry& entry = EntryOf(name);
  if (!entry.asked.empty()) {
    AddTo(entry.reading, reading);
    entry.seen = true;
  }
  if (!total_.empty()) {
    AddTo(total_reading_, reading);
    total_seen_ = true;
  }
}

}  // namespace trainwreck
