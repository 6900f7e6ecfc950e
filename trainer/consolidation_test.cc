#include "trainer/consolidation.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include "trainer/build.h"
#include "trainer/data/data.h"
#include "trainer/data/loader.h"
#include "trainer/devices/device.h"
#include "trainer/models/model.h"
#include "trainer/test_run.h"

namespace trainwreck {
namespace {

TEST(Consolidation, PullsEachWeightBackByItsFisherInformation) {
  const TrainingRecipe recipe = ParseRecipe(With(Mlp(), {{"data.samples", 3}}));
  const auto data = BuildDataset(recipe, /*held_out=*/false, /*seed=*/1);
  const auto model = BuildModel(recipe, *data, /*seed=*/1);
  const auto device = OpenDevice(DeviceChoice::kCpu, {});
  const NamedTensors parameters = ParametersOf(*model);
  const at::Tensor& weight = parameters.at(0).second;
  at::Tensor fisher = at::zeros_like(weight.detach());
  for (std::int64_t id = 0; id < 3; ++id) {
    weight.mutable_grad().reset();
    model->Loss(Collate({data->Get(id)})).backward();
    fisher += weight.grad().square() / 3;
  }
  constexpr double kStrength = 5;
  const Consolidation springs(*model, *device, parameters, *data, kStrength);
  EXPECT_EQ(springs.samples(), 3);
  EXPECT_GT(springs.fisher_mean(), 0);
  springs.AddGradients();
  EXPECT_FALSE(weight.grad().defined()) << "what has no gradient stays so";
  {
    at::NoGradGuard no_grad;
    at::Tensor moved = weight;
    moved.add_(0.5);
  }
  weight.mutable_grad() = at::ones_like(weight.detach());
  springs.AddGradients();
  const at::Tensor expected = 1 + kStrength * fisher * 0.5;
  EXPECT_TRUE(weight.grad().allclose(expected, 1e-4, 1e-6));
}

}  // namespace
}  // namespace trainwreck
