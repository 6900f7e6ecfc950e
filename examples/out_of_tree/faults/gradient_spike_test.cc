#include <gtest/gtest.h>

#include <memory>

#include "injectors/testing.h"
#include "trainer/models/model.h"

namespace {

using namespace trainwreck;

// One parameter w = 3 and the loss w * w.
class Square : public Model {
 public:
  Square() { w_ = register_parameter("w", at::full({}, 3.0)); }
  at::Tensor Loss(const Batch& batch) override { return w_ * w_; }
  const at::Tensor& w() const { return w_; }

 private:
  at::Tensor w_;
};

TEST(GradientSpike, ActsWhereTheTriggerSaysAndLeavesEvidence) {
  FaultBench bench;
  Trigger trigger;
  trigger.at = 1;
  auto injector = bench.Make("gradient.spike", {{"factor", 100.0}}, trigger);
  auto model = std::make_shared<Square>();
  static_cast<PartWrapper&>(*injector).Wrap(std::shared_ptr<Model>(model));
  const auto hook = injector->MakeHook();
  for (const double gradient : {6.0, 600.0, 6.0}) {
    model->zero_grad();
    model->Loss({}).backward();
    hook->OnBackwardDone(bench.clock.step);
    EXPECT_EQ(model->w().grad().item<double>(), gradient) << bench.clock.step;
    ++bench.clock.step;
  }
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_EQ(bench.fired()[0]["before"], 6.0);
  EXPECT_EQ(bench.fired()[0]["after"], 600.0);
}

}  // namespace
