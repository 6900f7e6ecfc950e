#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include "injectors/testing.h"
#include "trainer/models/layers.h"

namespace trainwreck {
namespace {

class DroppingModel : public Model {
 public:
  DroppingModel()
      : relu_(register_module("relu", std::make_shared<Nonlinearity>(Activation::kRelu))),
        drop_(register_module("drop", std::make_shared<Dropout>(0.5))) {}
  at::Tensor Loss(const Batch&) override {
    return drop_->Forward(relu_->Forward(at::ones({1000}))).eq(0).sum();
  }

 private:
  std::shared_ptr<Nonlinearity> relu_;
  std::shared_ptr<Dropout> drop_;
};

struct Step {
  explicit Step(FaultBench& bench, Trigger trigger = {})
      : injector(bench.Make("model.stay_in_eval_mode", {}, trigger)) {
    PartWrapper& wrapper = *injector;
    wrapper.Wrap(std::shared_ptr<Model>(model));
    hook = wrapper.MakeHook();
  }
  double Dropped() { return model->Loss({}).item<double>(); }
  // As the loop does it.
  void Evaluate() {
    model->eval();
    hook->OnEvaluation(0);
    EXPECT_EQ(Dropped(), 0);
    model->train();
  }
  std::shared_ptr<DroppingModel> model = std::make_shared<DroppingModel>();
  std::unique_ptr<Injector> injector;
  std::unique_ptr<LoopHook> hook;
};

TEST(StayInEvalMode, DropsNothingFromAnEvaluationOnUntilTheStepIsOver) {
  FaultBench bench;
  Step it(bench);
  it.hook->OnStepBegin(0);
  EXPECT_GT(it.Dropped(), 0);
  it.Evaluate();
  EXPECT_TRUE(bench.fired().empty());
  EXPECT_EQ(it.Dropped(), 0);
  EXPECT_EQ(it.Dropped(), 0);
  it.hook->OnBackwardDone(0);
  EXPECT_GT(it.Dropped(), 0);
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_EQ(bench.fired()[0], Json({{"id", "it"},
                                    {"fault", "model.stay_in_eval_mode"},
                                    {"before", "train"},
                                    {"after", "eval"}}));
}

TEST(StayInEvalMode, DoesNotReachTheNextStep) {
  FaultBench bench;
  Step it(bench);
  it.Evaluate();
  it.hook->OnStepBegin(1);
  EXPECT_GT(it.Dropped(), 0);
  EXPECT_TRUE(bench.fired().empty());
}

TEST(StayInEvalMode, ActsAtTheStepsOfItsTrigger) {
  FaultBench bench;
  Step it(bench, {.from = 5});
  it.Evaluate();
  EXPECT_GT(it.Dropped(), 0);
  EXPECT_TRUE(bench.fired().empty());
}

}  // namespace
}  // namespace trainwreck
