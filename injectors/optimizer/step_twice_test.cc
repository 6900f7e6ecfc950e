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

TEST(ScaleAfterClipping, ChangesWhatTheOptimizerIsGiven) {
  FaultBench bench;
  Broken it(bench, "optimizer.scale_after_clipping", {{"factor", 3.0}});
  it.Step();
  EXPECT_EQ(Body(it), -0.5);
  EXPECT_EQ(it.Gradient(it.model->body), 3);
  EXPECT_EQ(bench.fired().at(0)["after"], 3.0);
}

TEST(AddDeadWeights, AddsOneParameter) {
  FaultBench bench;
  Broken it(bench, "model.add_dead_weights", {{"elements", 7}});
  ASSERT_EQ(it.model->parameters().size(), 3U);
  EXPECT_EQ(it.model->named_parameters()["dead"].numel(), 7);
  EXPECT_EQ(bench.fired().at(0)["before"], 2);
  EXPECT_EQ(bench.fired().at(0)["after"], 3);
}

}  // namespace
}  // namespace trainwreck
