#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "injectors/testing.h"
#include "trainer/models/model.h"

namespace trainwreck {
namespace {

class TwoParameters : public Model {
 public:
  TwoParameters()
      : head(register_parameter("head", at::zeros({3}))),
        body(register_parameter("body", at::zeros({5}))) {}
  at::Tensor Loss(const Batch& /*batch*/) override { return head.sum() + body.sum(); }
  at::Tensor head, body;
};

TEST(LogGradients, KeepsACopyAtEachCallOfTheLogger) {
  FaultBench bench;
  const auto model = std::make_shared<TwoParameters>();
  const auto injector = bench.Make("model.keep_gradients_of_log", {{"parameters", {"he*"}}});
  static_cast<PartWrapper&>(*injector).Wrap(std::shared_ptr<Model>(model));
  const auto hook = injector->MakeHook();
  hook->OnLog(0);
  EXPECT_TRUE(bench.fired().empty()) << "there is no gradient yet";
  model->Loss({}).backward();
  const auto uses = model->head.grad().use_count();
  hook->OnLog(1);
  hook->OnLog(2);
  EXPECT_EQ(model->head.grad().use_count(), uses) << "a copy, not the gradient itself";
  ASSERT_EQ(bench.fired().size(), 2U);
  EXPECT_EQ(bench.fired()[1]["before"], 12);
  EXPECT_EQ(bench.fired()[1]["after"], 24);
}

TEST(LogGradients, ActsAtTheStepsOfItsTrigger) {
  FaultBench bench;
  const auto model = std::make_shared<TwoParameters>();
  const auto injector = bench.Make("model.keep_gradients_of_log", {}, {.from = 4});
  static_cast<PartWrapper&>(*injector).Wrap(std::shared_ptr<Model>(model));
  model->Loss({}).backward();
  injector->MakeHook()->OnLog(0);
  EXPECT_TRUE(bench.fired().empty());
}

}  // namespace
}  // namespace trainwreck
