#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include "injectors/testing.h"

namespace trainwreck {
namespace {

// An optimizer with one moment, as a copy that it gives and takes.
class WithMoment : public Optimizer {
 public:
  explicit WithMoment(at::Tensor& moment) : moment_(moment) {}
  void ZeroGrad() override {}
  void Step(double) override {}
  void Save(StateDict& state) const override {
    state["optimizer.exp_avg.weight"] = moment_.clone();
  }
  void Load(const StateDict& state) override { moment_ = state.at("optimizer.exp_avg.weight"); }

 private:
  at::Tensor& moment_;
};

TEST(FlipStateBit, FlipsOneBitOnceAlsoWhereTheStepIsRunAgain) {
  FaultBench bench(1, 2);
  const auto flip = bench.Make("optimizer.flip_state_bit",
                               {{"entry", "optimizer.exp_avg.*"}, {"bit", 31}}, {.at = 3});
  PartWrapper& wrapper = *flip;
  at::Tensor moment = at::full({4}, 2.0);
  const auto optimizer =
      wrapper.Wrap(std::unique_ptr<Optimizer>(std::make_unique<WithMoment>(moment)));
  for (const int step : {2, 3, 2, 3, 4}) {
    bench.clock.step = step;
    optimizer->Step(0.1);
  }
  EXPECT_EQ(moment.lt(0).sum().item<int>(), 1);
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_EQ(bench.fired()[0]["before"], 2.0);
  EXPECT_EQ(bench.fired()[0]["after"], -2.0);
}

TEST(FlipStateBit, NamesAnEntryThatIsNotThere) {
  FaultBench bench(1, 2);
  const auto flip = bench.Make("optimizer.flip_state_bit", {{"entry", "optimizer.nothing"}});
  at::Tensor moment = at::full({4}, 2.0);
  const auto optimizer = static_cast<PartWrapper&>(*flip).Wrap(
      std::unique_ptr<Optimizer>(std::make_unique<WithMoment>(moment)));
  EXPECT_THROW(optimizer->Step(0.1), std::runtime_error);
}

}  // namespace
}  // namespace trainwreck
