#include <gtest/gtest.h>

#include "injectors/testing.h"

namespace trainwreck {
namespace {

// Says what a test tells it to.
class Overflowing : public LossScaler {
 public:
  explicit Overflowing(bool overflows) : overflows_(overflows) {}
  double scale() const override { return 1; }
  bool skips_updates() const override { return true; }
  bool Unscale(const std::vector<at::Tensor>& /*gradients*/) override { return overflows_; }
  void Update(bool /*overflowed*/) override {}
  void Save(StateDict& /*state*/) const override {}
  void Load(const StateDict& /*state*/) override {}

 private:
  bool overflows_;
};

bool SaysOverflow(FaultBench& bench, bool overflows, Trigger trigger = {}) {
  const auto injector = bench.Make("loss.overlook_overflow", {}, trigger);
  const auto scaler = static_cast<PartWrapper&>(*injector).Wrap(
      std::unique_ptr<LossScaler>(std::make_unique<Overflowing>(overflows)));
  return scaler->Unscale({});
}

TEST(OverlookOverflow, SaysThatThereWasNone) {
  FaultBench bench;
  EXPECT_FALSE(SaysOverflow(bench, true));
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_FALSE(SaysOverflow(bench, false));
  EXPECT_EQ(bench.fired().size(), 1U) << "where there is none, nothing is changed";
  EXPECT_TRUE(SaysOverflow(bench, true, {.from = 2}));
}

}  // namespace
}  // namespace trainwreck
