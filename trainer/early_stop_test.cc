#include "trainer/early_stop.h"

#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <cmath>

#include "trainer/test_run.h"

namespace trainwreck {
namespace {

TEST(EarlyStop, KeepsTheWeightsOfTheLowestLossAndCountsFromThere) {
  at::Tensor weight = at::full({2}, 1.0f);
  EarlyStop stop(/*patience=*/2, {{"w", weight}});
  EXPECT_FALSE(stop.RestoreBest()) << "nothing was evaluated";
  stop.Judge(4, 3.0);
  weight.fill_(2.0);
  stop.Judge(9, 2.0);
  weight.fill_(3.0);
  stop.Judge(14, 2.0);  // no better
  EXPECT_FALSE(stop.is_over());
  stop.Judge(19, std::nan(""));
  EXPECT_TRUE(stop.is_over());
  ASSERT_TRUE(stop.RestoreBest());
  EXPECT_EQ(weight[1].item<float>(), 2.0f);
  EXPECT_EQ(stop.best_step(), 9);
  EXPECT_EQ(stop.best_loss(), 2.0);
  stop.Judge(24, 1.5);
  EXPECT_FALSE(stop.is_over());
}

TEST(EarlyStop, GoesOnFromItsState) {
  at::Tensor weight = at::full({2}, 1.0f), other = at::full({2}, 7.0f);
  EarlyStop stop(/*patience=*/2, {{"w", weight}});
  StateDict state;
  stop.Save(state);
  EXPECT_TRUE(state.empty());
  stop.Judge(4, 3.0);
  stop.Judge(9, 4.0);
  stop.Save(state);
  EarlyStop resumed(/*patience=*/2, {{"w", other}});
  resumed.Load(state);
  resumed.Judge(14, 3.5);
  EXPECT_TRUE(resumed.is_over());
  EXPECT_EQ(resumed.best_step(), 4);
  ASSERT_TRUE(resumed.RestoreBest());
  EXPECT_EQ(other[0].item<float>(), 1.0f);
}

// Few samples and a high rate: the held-out loss turns early.
Recipe Overfits() {
  return With(Mlp(), {{"steps", 200},
                      {"data.samples", 32},
                      {"data.noise", 3},
                      {"optimizer.kind", "adamw"},
                      {"optimizer.lr", 0.01},
                      {"eval.every", 10},
                      {"eval.batches", 16},
                      {"eval.at_epoch_end", false}});
}

TEST(EarlyStop, EndsARunWithTheWeightsOfItsBestEvaluation) {
  const Outcome plain = RunOnce(Overfits(), {"param_digest"});
  const Outcome outcome = RunOnce(With(Overfits(), {{"early_stop.patience", 3}}), {"param_digest"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.trace.end_why.at(0), "stopped_early");
  const auto restored = outcome.EventsOf("best_restored");
  ASSERT_EQ(restored.size(), 1U);
  EXPECT_EQ(restored[0]["stopped"], true);
  const int best = restored[0]["best_step"].get<int>();
  const auto steps = static_cast<int>(outcome.Values("loss").size());
  EXPECT_EQ(steps, best + 1 + 3 * 10);
  EXPECT_LT(steps, 200);
  const auto evaluations = outcome.trace.Find("eval_loss", 0);
  EXPECT_EQ(evaluations->values[steps - 1], evaluations->values[best]);
  EXPECT_EQ(outcome.Values("loss")[steps - 1], plain.Values("loss")[steps - 1]);
  EXPECT_EQ(outcome.trace.planned_steps, steps) << "the run is whole";
}

TEST(EarlyStop, GoesBackToTheBestAtTheLastStepToo) {
  const Outcome outcome = RunOnce(With(Overfits(), {{"early_stop.patience", 100}}));
  EXPECT_EQ(outcome.trace.end_why.at(0), "completed");
  const auto restored = outcome.EventsOf("best_restored");
  ASSERT_EQ(restored.size(), 1U);
  EXPECT_EQ(restored[0]["stopped"], false);
  EXPECT_EQ(outcome.Last("eval_loss"),
            outcome.Values("eval_loss").at(restored[0]["best_step"].get<int>()));
  EXPECT_LT(outcome.Last("eval_loss"), 0.8 * RunOnce(Overfits()).Last("eval_loss"));
}

}  // namespace
}  // namespace trainwreck
