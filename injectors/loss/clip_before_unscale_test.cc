#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <cmath>

#include "injectors/testing.h"

namespace trainwreck {
namespace {

class Halving : public LossScaler {
 public:
  double scale() const override { return 2; }
  bool skips_updates() const override { return false; }
  bool Unscale(const std::vector<at::Tensor>& gradients) override {
    for (const at::Tensor& gradient : gradients) gradient.div_(2);
    return false;
  }
  void Update(bool /*overflowed*/) override {}
  void Save(StateDict& /*state*/) const override {}
  void Load(const StateDict& /*state*/) override {}
};

std::vector<at::Tensor> After(FaultBench& bench, double norm, double each) {
  const auto injector = bench.Make("loss.clip_before_unscale", {{"norm", norm}});
  const auto scaler = static_cast<PartWrapper&>(*injector).Wrap(
      std::unique_ptr<LossScaler>(std::make_unique<Halving>()));
  const std::vector<at::Tensor> gradients = {at::full({3}, each), at::full({1}, each)};
  scaler->Unscale(gradients);
  return gradients;
}

TEST(ClipBeforeUnscale, ClipsWhatIsStillScaled) {
  FaultBench bench;
  const auto gradients = After(bench, /*norm=*/1, /*each=*/4);  // together of norm 8
  EXPECT_NEAR(gradients[0][0].item<double>(), 4.0 / 8 / 2, 1e-6);
  EXPECT_NEAR(gradients[1][0].item<double>(), 4.0 / 8 / 2, 1e-6);
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_NEAR(bench.fired()[0]["before"].get<double>(), 8, 1e-6);
  EXPECT_EQ(bench.fired()[0]["after"], 1.0);
}

TEST(ClipBeforeUnscale, LeavesWhatIsBelow) {
  FaultBench bench;
  EXPECT_EQ(After(bench, /*norm=*/9, /*each=*/4)[0][0].item<double>(), 2);
  EXPECT_TRUE(bench.fired().empty());
}

}  // namespace
}  // namespace trainwreck
