#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include "injectors/testing.h"
#include "trainer/models/model.h"

namespace trainwreck {
namespace {

// What its loss is shows the mode that it was in.
class ModeModel : public Model {
 public:
  at::Tensor Loss(const Batch& batch) override { return at::ones({}) * (is_training() ? 1 : 2); }
};

struct Evaluated {
  explicit Evaluated(FaultBench& bench, Trigger trigger = {})
      : injector(bench.Make("recipe.eval_in_train_mode", {}, trigger)) {
    PartWrapper& wrapper = *injector;
    EXPECT_EQ(wrapper.Wrap(std::shared_ptr<Model>(model)), model);
    hook = wrapper.MakeHook();
  }
  // As the loop does it.
  double Evaluate(int step) {
    model->eval();
    hook->OnEvaluation(step);
    const double loss = model->Loss({}).item<double>();
    model->train();
    return loss;
  }
  std::shared_ptr<ModeModel> model = std::make_shared<ModeModel>();
  std::unique_ptr<Injector> injector;
  std::unique_ptr<LoopHook> hook;
};

TEST(EvalInTrainMode, PutsTheModelBackIntoTrainingMode) {
  FaultBench bench;
  Evaluated it(bench);
  EXPECT_TRUE(bench.fired().empty()) << "nothing was evaluated yet";
  EXPECT_EQ(it.Evaluate(0), 1);
  EXPECT_EQ(it.Evaluate(1), 1);
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_EQ(bench.fired()[0], Json({{"id", "it"},
                                    {"fault", "recipe.eval_in_train_mode"},
                                    {"before", "eval"},
                                    {"after", "train"}}));
}

TEST(EvalInTrainMode, ActsAtTheStepsOfItsTrigger) {
  FaultBench bench;
  Evaluated it(bench, {.from = 5});
  EXPECT_EQ(it.Evaluate(0), 2);
  EXPECT_TRUE(bench.fired().empty());
  bench.clock.step = 5;
  EXPECT_EQ(it.Evaluate(5), 1);
}

}  // namespace
}  // namespace trainwreck
