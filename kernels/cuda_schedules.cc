// Linked into a test whose kernels run on the CPU: each repetition of a test (--gtest_repeat) has
// another order of threads and blocks, that of the next seed. Where a test fails, the seed is
// named; TRAINWRECK_CUDA_SEED begins with it.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "kernels/cuda_on_cpu.h"

namespace trainwreck::kernels::cuda {
namespace {

std::uint64_t FirstSeed() {
  const char* seed = std::getenv("TRAINWRECK_CUDA_SEED");
  return seed == nullptr ? 1 : std::strtoull(seed, nullptr, 10);
}

class Schedules : public testing::EmptyTestEventListener {
  void OnTestIterationStart(const testing::UnitTest&, int iteration) override {
    seed_ = FirstSeed() + static_cast<std::uint64_t>(iteration);
  }

  void OnTestStart(const testing::TestInfo&) override { SetSchedule(seed_); }

  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.failed()) return;
    std::printf("threads and blocks ran in the order of TRAINWRECK_CUDA_SEED=%llu\n",
                static_cast<unsigned long long>(seed_));
  }

  std::uint64_t seed_ = 1;
};

[[maybe_unused]] const bool kIsThere = [] {
  testing::UnitTest::GetInstance()->listeners().Append(new Schedules);
  return true;
}();

}  // namespace
}  // namespace trainwreck::kernels::cuda
