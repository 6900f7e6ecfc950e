#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include "injectors/testing.h"

namespace trainwreck {
namespace {

// A scaler with scale 8 that records what it was asked.
class EightTimes : public LossScaler {
 public:
  double scale() const override { return 8; }
  bool skips_updates() const override { return true; }
  bool Unscale(const std::vector<at::Tensor>& gradients) override { return gradients.size() == 2; }
  void Update(bool overflowed) override { overflows += overflowed ? 1 : 0; }
  void Save(StateDict& state) const override { state["scaler.scale"] = at::full({}, 8.0); }
  void Load(const StateDict& state) override { loaded = state.size(); }
  int overflows = 0;
  std::size_t loaded = 0;
};

struct Summed {
  explicit Summed(FaultBench& bench) : injector(bench.Make("recipe.summed_micro_batches")) {
    auto inside = std::make_unique<EightTimes>();
    inner = inside.get();
    scaler =
        static_cast<PartWrapper&>(*injector).Wrap(std::unique_ptr<LossScaler>(std::move(inside)));
  }
  EightTimes* inner = nullptr;
  std::unique_ptr<Injector> injector;
  std::unique_ptr<LossScaler> scaler;
};

TEST(SummedMicroBatches, ForgetsTheShareAndKeepsTheScale) {
  FaultBench bench;
  Summed it(bench);
  const at::Tensor loss = at::full({}, 3.0);
  EXPECT_EQ(it.inner->Scale(loss, 0.25).item<double>(), 6);
  EXPECT_EQ(it.scaler->Scale(loss, 0.25).item<double>(), 24);
  EXPECT_EQ(it.scaler->Scale(loss, 1).item<double>(), 24);
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_EQ(bench.fired()[0], Json({{"id", "it"},
                                    {"fault", "recipe.summed_micro_batches"},
                                    {"before", "mean"},
                                    {"after", "sum"}}));
}

TEST(SummedMicroBatches, PassesAllElseOn) {
  FaultBench bench;
  Summed it(bench);
  EXPECT_EQ(it.scaler->scale(), 8);
  EXPECT_TRUE(it.scaler->skips_updates());
  EXPECT_FALSE(it.scaler->Unscale({}));
  EXPECT_TRUE(it.scaler->Unscale({at::Tensor(), at::Tensor()}));
  it.scaler->Update(true);
  EXPECT_EQ(it.inner->overflows, 1);
  StateDict state;
  it.scaler->Save(state);
  it.scaler->Load(state);
  EXPECT_EQ(it.inner->loaded, 1U);
}

}  // namespace
}  // namespace trainwreck
