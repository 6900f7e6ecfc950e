#include <gtest/gtest.h>

#include "injectors/optimizer/testing_optimizer.h"

namespace trainwreck {
namespace {

// The model's weights are 1, the gradients 1 (body) and 2 (head), the rate 0.5.
double Body(const Broken& it) { return it.model->body[0].item<double>(); }
double Head(const Broken& it) { return it.model->head[0].item<double>(); }

TEST(StepTwice, MakesEachUpdateTwoTimes) {
  FaultBench bench;
  Broken it(bench, "optimizer.step_twice");
  it.Step();
  EXPECT_EQ(Body(it), 0);
  EXPECT_EQ(Head(it), -1);
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_EQ(bench.fired()[0]["after"], 2);
}

TEST(StepTwice, ActsAtTheStepsOfItsTrigger) {
  FaultBench bench;
  Broken it(bench, "optimizer.step_twice", {}, {.from = 2});
  it.Step();
  EXPECT_EQ(Body(it), 0.5);
  EXPECT_TRUE(bench.fired().empty());
}

}  // namespace
}  // namespace trainwreck
