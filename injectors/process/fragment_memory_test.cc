#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "injectors/testing.h"
#include "trainer/devices/cpu_memory.h"
#include "trainer/models/model.h"

namespace trainwreck {
namespace {

class OneParameter : public Model {
 public:
  OneParameter() { register_parameter("weight", at::zeros({3})); }
  at::Tensor Loss(const Batch& /*batch*/) override { return at::zeros({}); }
};

TEST(FragmentMemory, FreesGrowingWorkSpacesAndKeepsSmallTensors) {
  CountCpuMemory();
  FaultBench bench;
  const auto injector = bench.Make("process.fragment_memory",
                                   {{"bytes", 1000}, {"growth", 100}, {"kept", 10}}, {.from = 1});
  static_cast<PartWrapper&>(*injector).Wrap(
      std::shared_ptr<Model>(std::make_shared<OneParameter>()));
  const auto hook = injector->MakeHook();
  const std::int64_t start = CpuMemory().allocated_bytes;
  for (int step = 0; step < 4; ++step) {
    ResetCpuMemoryPeak();
    hook->OnStepBegin(step);
    EXPECT_EQ(CpuMemory().allocated_bytes - start, 10 * step);
    if (step == 3) {
      EXPECT_EQ(CpuMemory().peak_bytes - start, 1200 + 30);
    }
  }
  ASSERT_EQ(bench.fired().size(), 3U);
  EXPECT_EQ(bench.fired()[2]["before"], 20);
  EXPECT_EQ(bench.fired()[2]["after"], 30);
  EXPECT_EQ(bench.fired()[2]["work_space"], 1200);
}

}  // namespace
}  // namespace trainwreck
