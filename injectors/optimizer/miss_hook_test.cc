#include <gtest/gtest.h>

#include "injectors/optimizer/testing_optimizer.h"
#include "trainer/optimizers/in_backward.h"

namespace trainwreck {
namespace {

TEST(MissHook, FreesTheGradientAndUpdatesNothing) {
  FaultBench bench;
  Broken it(bench, "optimizer.miss_hook", {{"parameters", {"head"}}});
  const NamedTensors parameters = ParametersOf(*it.model);
  GradientHooks hooks(parameters, [&](std::size_t i) {
    it.optimizer->Step(0.5);
    at::Tensor parameter = parameters[i].second;
    parameter.mutable_grad().reset();
  });
  const auto hook = static_cast<PartWrapper&>(*it.injector).MakeHook();
  hook->OnStart();
  it.model->Loss({}).backward();
  EXPECT_EQ(it.model->body[0].item<double>(), 0.5);
  EXPECT_EQ(it.model->head[0].item<double>(), 1);
  EXPECT_FALSE(it.model->head.grad().defined());
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_EQ(bench.fired()[0]["parameters"], Json({"head"}));
  EXPECT_EQ(bench.fired()[0]["before"], 1);
}

TEST(MissHook, LeavesNoEvidenceWhereParametersHaveNoHooks) {
  FaultBench bench;
  Broken it(bench, "optimizer.miss_hook", {{"parameters", {"*"}}});
  static_cast<PartWrapper&>(*it.injector).MakeHook()->OnStart();
  it.Step();
  EXPECT_EQ(it.model->head[0].item<double>(), 0);
  EXPECT_TRUE(bench.fired().empty());
}

}  // namespace
}  // namespace trainwreck
