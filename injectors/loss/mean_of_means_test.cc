#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include "injectors/testing.h"

namespace trainwreck {
namespace {

class FourTimes : public LossScaler {
 public:
  double scale() const override { return 4; }
  bool skips_updates() const override { return true; }
  bool Unscale(const std::vector<at::Tensor>& /*gradients*/) override { return true; }
  void Update(bool overflowed) override { overflows += overflowed ? 1 : 0; }
  void Save(StateDict& state) const override { state["scaler.scale"] = at::full({}, 4.0); }
  void Load(const StateDict& state) override { loaded = state.size(); }
  int overflows = 0;
  std::size_t loaded = 0;
};

TEST(MeanOfMeans, CountsAlikeWhatHasAnything) {
  FaultBench bench;
  const auto injector = bench.Make("loss.mean_of_means");
  auto inside = std::make_unique<FourTimes>();
  FourTimes& inner = *inside;
  const auto scaler =
      static_cast<PartWrapper&>(*injector).Wrap(std::unique_ptr<LossScaler>(std::move(inside)));
  EXPECT_EQ(inner.Weigh(37), 37);
  EXPECT_EQ(scaler->Weigh(37), 1);
  EXPECT_EQ(scaler->Weigh(0), 0);
  EXPECT_EQ(scaler->Scale(at::full({}, 3.0), 0.5).item<double>(), 6) << "all else is passed on";
  EXPECT_TRUE(scaler->skips_updates());
  EXPECT_TRUE(scaler->Unscale({}));
  scaler->Update(true);
  EXPECT_EQ(inner.overflows, 1);
  StateDict state;
  scaler->Save(state);
  scaler->Load(state);
  EXPECT_EQ(inner.loaded, 1U);
  EXPECT_EQ(bench.fired().at(0)["after"], "alike");
}

}  // namespace
}  // namespace trainwreck
