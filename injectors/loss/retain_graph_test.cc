#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include "injectors/testing.h"
#include "trainer/optimizers/scaler.h"

namespace trainwreck {
namespace {

struct Kept {
  explicit Kept(FaultBench& bench, std::map<std::string, Json> with = {}, Trigger trigger = {})
      : injector(bench.Make("loss.retain_graph", std::move(with), trigger)),
        scaler(static_cast<PartWrapper&>(*injector).Wrap(MakeLossScaler({}, at::kCPU))) {}

  // The gradient of sum((w * x)^2) at w = 1, by the scaler's loss.
  at::Tensor GradientFor(const at::Tensor& x) {
    weight.mutable_grad().reset();
    const at::Tensor product = weight.mul(x);
    product_storage = product.storage().getWeakStorageImpl();
    scaler->Scale(product.mul(product).sum(), 1.0).backward();
    return weight.grad();
  }
  // Whether the product of the last step, which its backward pass needed, is still there.
  bool ProductIsThere() const { return !product_storage.expired(); }

  std::unique_ptr<Injector> injector;
  std::unique_ptr<LossScaler> scaler;
  at::Tensor weight = at::ones({4}).set_requires_grad(true);
  c10::weak_intrusive_ptr<c10::StorageImpl> product_storage{
      c10::weak_intrusive_ptr<c10::StorageImpl>::reclaim(nullptr)};
};

TEST(RetainGraph, KeepsWhatTheBackwardPassNeededAndChangesNoGradient) {
  FaultBench bench;
  Kept it(bench);
  const at::Tensor x = at::full({4}, 3.0);
  EXPECT_EQ(it.GradientFor(x)[0].item<float>(), 18);
  EXPECT_TRUE(it.ProductIsThere());
  it.GradientFor(x);
  ASSERT_EQ(bench.fired().size(), 2U);
  EXPECT_EQ(bench.fired()[1]["before"], 1);
  EXPECT_EQ(bench.fired()[1]["after"], 2);
}

TEST(RetainGraph, WithoutRetainTheBackwardPassFreesIt) {
  FaultBench bench;
  Kept it(bench, {{"retain", false}});
  EXPECT_EQ(it.GradientFor(at::full({4}, 3.0))[0].item<float>(), 18);
  EXPECT_FALSE(it.ProductIsThere());
  EXPECT_EQ(bench.fired().size(), 1U);
}

TEST(RetainGraph, ActsAtTheStepsOfItsTrigger) {
  FaultBench bench;
  Kept it(bench, {}, {.from = 5});
  it.GradientFor(at::ones({4}));
  EXPECT_FALSE(it.ProductIsThere());
  EXPECT_TRUE(bench.fired().empty());
}

}  // namespace
}  // namespace trainwreck
