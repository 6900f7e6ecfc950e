#include <gtest/gtest.h>

#include "injectors/testing.h"

namespace trainwreck {
namespace {

// Halves its scale where it hears of an overflow.
class Lowering : public LossScaler {
 public:
  double scale() const override { return scale_; }
  bool skips_updates() const override { return true; }
  bool Unscale(const std::vector<at::Tensor>& /*gradients*/) override { return false; }
  void Update(bool overflowed) override { scale_ *= overflowed ? 0.5 : 1; }
  void Save(StateDict& /*state*/) const override {}
  void Load(const StateDict& /*state*/) override {}

 private:
  double scale_ = 8;
};

double ScaleAfter(FaultBench& bench, bool overflowed, Trigger trigger = {}) {
  const auto injector = bench.Make("loss.keep_scale", {}, trigger);
  const auto scaler = static_cast<PartWrapper&>(*injector).Wrap(
      std::unique_ptr<LossScaler>(std::make_unique<Lowering>()));
  scaler->Update(overflowed);
  return scaler->scale();
}

TEST(KeepScale, KeepsItAfterAnOverflow) {
  FaultBench bench;
  EXPECT_EQ(ScaleAfter(bench, true), 8);
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_EQ(ScaleAfter(bench, false), 8);
  EXPECT_EQ(bench.fired().size(), 1U) << "where there is none, nothing is changed";
  EXPECT_EQ(ScaleAfter(bench, true, {.from = 2}), 4);
}

}  // namespace
}  // namespace trainwreck
