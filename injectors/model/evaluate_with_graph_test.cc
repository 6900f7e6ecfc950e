#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include "injectors/testing.h"

namespace trainwreck {
namespace {

// As the loop evaluates: whether graphs are built while it does.
bool GraphsInEvaluation(LoopHook& hook) {
  at::NoGradGuard no_grad;
  hook.OnEvaluation(/*step=*/0);
  return at::GradMode::is_enabled();
}

TEST(EvaluateWithGraph, EnablesGradientsForTheEvaluationAlone) {
  FaultBench bench;
  const auto injector = bench.Make("model.evaluate_with_graph");
  const auto hook = injector->MakeHook();
  EXPECT_TRUE(GraphsInEvaluation(*hook));
  at::NoGradGuard outside;
  GraphsInEvaluation(*hook);
  EXPECT_FALSE(at::GradMode::is_enabled()) << "the evaluation is over";
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_EQ(bench.fired()[0]["before"], "no graph");
  EXPECT_EQ(bench.fired()[0]["after"], "graph");
}

TEST(EvaluateWithGraph, ActsAtTheStepsOfItsTrigger) {
  FaultBench bench;
  const auto injector = bench.Make("model.evaluate_with_graph", {}, {.from = 3});
  const auto hook = injector->MakeHook();
  EXPECT_FALSE(GraphsInEvaluation(*hook));
  bench.clock.step = 3;
  EXPECT_TRUE(GraphsInEvaluation(*hook));
}

}  // namespace
}  // namespace trainwreck
