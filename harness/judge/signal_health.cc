#include "harness/judge/signal_health.h"

#include <cmath>

#include "harness/judge/arm_judge.h"
#include "harness/launch/trace_bits.h"

namespace trainwreck {
namespace {

using formula::Reading;
using formula::Truth;

struct Health {
  int samples = 0;
  int bad_step = -1;
  std::string what;
};

void Look(const Series& series, const SignalInfo& signal, Health& health) {
  const bool may_be_zero = IsTimeOrMemory(signal.name);  // a run alone waits 0 s for others
  for (int step = 0; step < static_cast<int>(series.values.size()); ++step) {
    if (!series.Has(step)) continue;
    ++health.samples;
    const double value = series.values[step];
    const bool is_too_low = may_be_zero ? value < 0 : value <= 0;
    const bool is_bad = !std::isfinite(value) || (signal.scale == Scale::kLog && is_too_low);
    if (!is_bad || (health.bad_step >= 0 && health.bad_step <= step)) continue;
    health.bad_step = step;
    health.what = signal.name + " is " + ShortNumber(value);
    if (std::isfinite(value)) health.what += ", though its scale is positive";
  }
}

Health HealthOf(const RunTrace& trace, const SignalInfo& signal) {
  Health health;
  for (const auto& [key, series] : trace.series) {
    const bool is_it = key.first == signal.name || key.first.rfind(signal.name + "{", 0) == 0;
    if (is_it) Look(series, signal, health);
  }
  return health;
}

}  // namespace

Reading ReadSignalHealth(const RunTrace& trace, const TargetDescription& target) {
  Reading reading;
  reading.truth = Truth::kTrue;
  std::string read, unread, bad;
  for (const SignalInfo& signal : target.signals) {
    if (signal.name == "time") continue;  // the harness's own
    const Health health = HealthOf(trace, signal);
    if (health.samples == 0) {
      // A target of level 2 records what formulas mention, and no more.
      if (!signal.optional && target.level < 2)
        unread += (unread.empty() ? "" : ", ") + signal.name;
      continue;
    }
    read += (read.empty() ? "" : ", ") + signal.name + " (" + std::to_string(health.samples) + ")";
    if (health.bad_step < 0 || !bad.empty()) continue;
    bad = health.what;
    reading.step = health.bad_step;
  }
  reading.seen = read.empty() ? "no signal was read" : "read: " + read;
  if (!unread.empty()) {
    reading.truth = Truth::kUnknown;
    reading.seen = "not read: " + unread + "; " + reading.seen;
  }
  if (!bad.empty()) {
    reading.truth = Truth::kFalse;
    reading.seen = bad + "; " + reading.seen;
  }
  return reading;
}

}  // namespace trainwreck
