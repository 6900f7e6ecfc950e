#include <gtest/gtest.h>

#include "injectors/optimizer/testing_optimizer.h"

namespace trainwreck {
namespace {

constexpr char kClearAtEvaluation[] = "optimizer.clear_at_evaluation";

struct Evaluated : Broken {
  explicit Evaluated(FaultBench& bench, Trigger trigger = {})
      : Broken(bench, kClearAtEvaluation, {}, trigger),
        hook(static_cast<PartWrapper&>(*injector).MakeHook()) {}
  std::unique_ptr<LoopHook> hook;
};

TEST(ClearAtEvaluation, TakesAwayWhatAStepHasGathered) {
  FaultBench bench;
  Evaluated it(bench);
  it.hook->OnStepBegin(0);
  it.model->Loss({}).backward();
  it.hook->OnEvaluation(0);
  it.model->Loss({}).backward();
  EXPECT_EQ(it.Gradient(it.model->body), 1) << "of one micro-batch, where two were meant";
  it.hook->OnBackwardDone(0);
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_EQ(bench.fired()[0],
            Json({{"id", "it"}, {"fault", kClearAtEvaluation}, {"before", 2}, {"after", 0}}));
}

TEST(ClearAtEvaluation, LeavesNoEvidenceBetweenSteps) {
  FaultBench bench;
  Evaluated it(bench);
  it.hook->OnStepBegin(0);
  it.hook->OnEvaluation(0);
  it.model->Loss({}).backward();
  it.hook->OnBackwardDone(0);
  it.hook->OnEvaluation(0);
  EXPECT_TRUE(bench.fired().empty());
}

TEST(ClearAtEvaluation, ActsAtTheStepsOfItsTrigger) {
  FaultBench bench;
  Evaluated it(bench, {.from = 5});
  it.hook->OnStepBegin(0);
  it.model->Loss({}).backward();
  it.hook->OnEvaluation(0);
  EXPECT_TRUE(it.model->body.grad().defined());
  EXPECT_TRUE(bench.fired().empty());
}

}  // namespace
}  // namespace trainwreck
