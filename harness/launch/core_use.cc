#include "harness/launch/core_use.h"

#include <algorithm>

namespace trainwreck {
namespace {

constexpr double kEvery = 0.1;
constexpr double kEveryOfAProcess = 0.005;  // 1% of a core for 50 us each

}  // namespace

bool CoreUse::IsDue(double now_s, int processes) const {
  return now_s - sampled_s_ >= std::max(kEvery, kEveryOfAProcess * processes);
}

void CoreUse::Sample(double now_s, std::optional<double> demand_s) {
  const double passed_s = now_s - sampled_s_;
  const std::optional<double> before_s = demand_s_;
  sampled_s_ = now_s;
  demand_s_ = demand_s;
  if (!demand_s) {
    cores_.reset();
  } else if (before_s && *demand_s >= *before_s && passed_s > 0) {  // less: a process has ended
    cores_ = std::max((*demand_s - *before_s) / passed_s, cores_.value_or(0) / 2);
  }
}

double CoreUse::cores(double most) const { return std::min(cores_.value_or(most), most); }

}  // namespace trainwreck
