// For checks that need GPUs.
#pragma once

#include <string>

#include "trainer/devices/device.h"
#include "trainer/ranks/forked_ranks.h"

namespace trainwreck {

// Asked in a fork: this process makes no CUDA call, since its forks could make none then.
inline int CountGpus() {
  static const int count = [] {
    const auto ends = RunForked(1, [](int) { return std::to_string(ListDevices().size() - 1); });
    return ends[0].exit_code == 0 ? std::stoi(ends[0].output) : 0;
  }();
  return count;
}

}  // namespace trainwreck
