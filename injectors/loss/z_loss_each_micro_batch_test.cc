#include <ATen/ops/logsumexp.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "injectors/testing.h"
#include "trainer/models/layers.h"

namespace trainwreck {
namespace {

constexpr char kZLossEach[] = "loss.z_loss_each_micro_batch";

// Scores of three classes for each of two targets, of which the first alone counts.
class Scores : public Model {
 public:
  explicit Scores(double z_loss)
      : logits(
            register_parameter("logits", at::tensor({1.0, 2.0, 3.0, 0.5, 1.5, 0.0}).view({2, 3}))),
        loss_(register_module(
            "loss", std::make_shared<WeightedCrossEntropy>(LossRecipe{.z_loss = z_loss}))) {}
  at::Tensor Loss(const Batch&) override {
    return loss_->Forward(logits, at::zeros({2}, at::kLong), at::tensor({1.0, 0.0}));
  }
  at::Tensor logits;

 private:
  std::shared_ptr<WeightedCrossEntropy> loss_;
};

class PlainScaler : public LossScaler {
 public:
  double scale() const override { return 4; }
  bool skips_updates() const override { return false; }
  bool Unscale(const std::vector<at::Tensor>&) override { return false; }
  void Update(bool) override {}
  void Save(StateDict&) const override {}
  void Load(const StateDict&) override {}
};

// What a micro-batch of half a step starts its backward pass from.
double Start(FaultBench& bench, double z_loss, double share, Trigger trigger = {}) {
  const auto injector = bench.Make(kZLossEach, {}, trigger);
  PartWrapper& wrapper = *injector;
  const auto model = std::make_shared<Scores>(z_loss);
  wrapper.Wrap(std::shared_ptr<Model>(model));
  const auto scaler = wrapper.Wrap(std::unique_ptr<LossScaler>(std::make_unique<PlainScaler>()));
  return scaler->Scale(model->Loss({}), share).item<double>();
}

TEST(ZLossEachMicroBatch, AddsItInFullAndOfAllTargets) {
  FaultBench bench;
  const Scores model(0);
  const at::Tensor z = at::logsumexp(model.logits, -1).square();
  const double nll = at::logsumexp(model.logits, -1)[0].item<double>() - 1;
  const double start = Start(bench, /*z_loss=*/0.5, /*share=*/0.25);
  EXPECT_NEAR(start, 4 * (0.25 * nll + 0.5 * z.mean().item<double>()), 1e-5);
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_EQ(bench.fired()[0],
            Json({{"id", "it"}, {"fault", kZLossEach}, {"before", 0.25}, {"after", 1}}));
}

TEST(ZLossEachMicroBatch, LeavesNoEvidenceWhereThereIsNone) {
  FaultBench bench;
  const double plain = Start(bench, /*z_loss=*/0, 0.25);
  EXPECT_TRUE(bench.fired().empty());
  EXPECT_GT(Start(bench, /*z_loss=*/0.5, 0.25, {.from = 3}), plain);
  EXPECT_TRUE(bench.fired().empty()) << "not yet";
  Start(bench, /*z_loss=*/0.5, /*share=*/1);
  EXPECT_TRUE(bench.fired().empty()) << "one micro-batch";
}

}  // namespace
}  // namespace trainwreck
