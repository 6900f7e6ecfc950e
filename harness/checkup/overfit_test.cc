// What a run of few samples came to, and what its signals point to; without runs.
#include "harness/checkup/overfit.h"

#include <gtest/gtest.h>

#include <cmath>

#include "harness/protocol/recipe_view.h"

namespace trainwreck {
namespace overfit_test {

constexpr int kSteps = 50;

RunResult WithLoss(double (*loss)(int step)) {
  RunResult result;
  result.end = RunEnd::kCompleted;
  for (int step = 0; step < kSteps; ++step) result.trace.series[{"loss", 0}].Set(step, loss(step));
  return result;
}

Series Constant(double value) {
  Series series;
  for (int step = 0; step < kSteps; ++step) series.Set(step, value);
  return series;
}

// A run whose signals are all in order.
RunTrace Sound() {
  RunTrace trace;
  trace.series[{"loss", 0}] = Constant(2);
  trace.series[{"grad_norm", 0}] = Constant(0.5);
  trace.series[{"overflow", 0}] = Constant(0);
  trace.series[{"updated", 0}] = Constant(100);
  trace.series[{"update_norm", 0}] = Constant(0.01);
  trace.series[{"param_norm", 0}] = Constant(3);
  for (const char* name : {"fc.weight", "head.weight"}) {
    trace.series[{std::string("updated{") + name + "}", 0}] = Constant(50);
    trace.series[{std::string("grad_norm{") + name + "}", 0}] = Constant(0.3);
  }
  trace.series[{"act_zero_share{fc}", 0}] = Constant(0.5);
  return trace;
}

std::string Seen(const RunTrace& trace, const RunTrace* still = nullptr) {
  std::string text;
  for (const FitClue& clue : CluesOf(trace, kSteps, still)) text += clue.seen + "\n";
  return text;
}

TEST(Overfit, ARunLearnsWhenItsEndIsATenthOfItsBeginning) {
  const Fit learns = FitOf(WithLoss([](int step) { return 2 * std::exp(-0.25 * step); }), kSteps);
  EXPECT_TRUE(learns.learns());
  EXPECT_EQ(learns.learnt_at, 10);
  const Fit half = FitOf(WithLoss([](int step) { return step < 5 ? 2.0 : 1.0; }), kSteps);
  EXPECT_FALSE(half.learns());
  const Fit returns = FitOf(WithLoss([](int step) { return step == 20 ? 0.0 : 2.0; }), kSteps);
  EXPECT_FALSE(returns.learns()) << "low once is not learnt";
  const Fit nan = FitOf(WithLoss([](int step) { return step == 40 ? NAN : 0.001 * step; }), kSteps);
  EXPECT_FALSE(nan.learns());
  const Fit zero = FitOf(WithLoss([](int) { return 0.0; }), kSteps);
  EXPECT_FALSE(zero.learns()) << "there is no loss";
  RunResult died = WithLoss([](int step) { return std::exp(-step); });
  died.end = RunEnd::kFailed;
  EXPECT_FALSE(FitOf(died, kSteps).learns());
}

TEST(Overfit, SeedsThatDisagreeAreSaid) {
  const Fit good{2, 0.01, 7}, slow{2, 0.02, 11}, bad{2, 1.5, std::nullopt};
  EXPECT_EQ((Probe{"", "", {good, slow}}.verdict()), FitVerdict::kLearns);
  EXPECT_EQ((Probe{"", "", {good, slow}}.steps()), 9);
  EXPECT_EQ((Probe{"", "", {good, bad}}.verdict()), FitVerdict::kSomeSeeds);
  EXPECT_EQ((Probe{"", "", {bad}}.verdict()), FitVerdict::kDoesNotLearn);
  OverfitReport report;
  report.probes = {{"", "", {good}}, {"", "", {bad}}};
  EXPECT_EQ(report.verdict(), FitVerdict::kDoesNotLearn);
}

TEST(Overfit, ASoundRunHasNoClues) { EXPECT_EQ(Seen(Sound()), ""); }

TEST(Overfit, EachSignalPointsToItsCauseAlone) {
  RunTrace trace = Sound();
  trace.series[{"grad_norm", 0}] = Constant(0);
  trace.series[{"updated", 0}] = Constant(0);
  EXPECT_EQ(Seen(trace), "the gradient is 0 in every step\n");

  trace = Sound();
  trace.series[{"updated", 0}] = Constant(0);
  EXPECT_EQ(Seen(trace), "no parameter changes in any step\n");

  trace = Sound();
  trace.series[{"updated{head.weight}", 0}] = Constant(0);
  EXPECT_EQ(Seen(trace), "1 of 2 parameters never change: head.weight\n");
  EXPECT_NE(CluesOf(trace, kSteps, nullptr)[0].look.find("they have a gradient"),
            std::string::npos);
  trace.series.erase({"grad_norm{head.weight}", 0});
  EXPECT_NE(CluesOf(trace, kSteps, nullptr)[0].look.find("no gradient reaches them"),
            std::string::npos);

  trace = Sound();
  trace.series[{"update_norm", 0}] = Constant(1e-7);
  EXPECT_EQ(Seen(trace), "updates are at most 3e-08 of the parameters' size\n");

  trace = Sound();
  trace.series[{"overflow", 0}] = Constant(1);
  EXPECT_EQ(Seen(trace), "50 of 50 updates are skipped\n");

  trace = Sound();
  trace.series[{"act_zero_share{fc}", 0}] = Constant(1);
  EXPECT_EQ(Seen(trace), "outputs are 0 throughout: fc\n");

  trace = Sound();
  trace.series[{"loss", 0}].Set(30, INFINITY);
  EXPECT_EQ(Seen(trace), "the loss is not finite from step 30 on\n");
}

TEST(Overfit, ALossThatChangesWithoutUpdatesComesFromTheData) {
  RunTrace still;
  still.series[{"loss", 0}] = Constant(2);
  EXPECT_EQ(Seen(Sound(), &still), "");
  still.series[{"loss", 0}].Set(3, 2.00001);
  EXPECT_EQ(Seen(Sound(), &still), "") << "another order of the samples";
  still.series[{"loss", 0}].Set(3, 2.5);
  EXPECT_EQ(Seen(Sound(), &still), "with a rate of 0 the loss goes from 2 to 2.5 all the same\n");
}

TEST(Overfit, ChangesTheKeysThatHaveTheRoles) {
  TargetDescription target;
  const auto key = [&](const char* name, ValueType type, Json value, KeyRole role) {
    target.recipe.push_back(
        {.name = name, .type = type, .default_value = std::move(value), .role = ToString(role)});
  };
  EXPECT_THROW(TwoExamples({}, target), UsageError);
  key("n", ValueType::kInt, 1000, KeyRole::kSamples);
  key("b", ValueType::kInt, 8, KeyRole::kBatchSize);
  key("acc", ValueType::kInt, 3, KeyRole::kAccumulation);
  key("drop", ValueType::kNumber, 0.1, KeyRole::kRegularisation);
  key("flip", ValueType::kBool, true, KeyRole::kRegularisation);
  key("smooth", ValueType::kNumber, 0.0, KeyRole::kRegularisation);
  key("decay", ValueType::kNumber, 0.01, KeyRole::kWeightDecay);
  const Recipe recipe = {{kRanksKey, 2}};
  Recipe two = recipe, one = recipe, plain = recipe;
  Apply(TwoExamples(recipe, target), two);
  EXPECT_EQ(two, (Recipe{{kRanksKey, 2}, {"n", 4}, {"b", 2}, {"acc", 1}}));
  Apply(OneBatch(recipe, target), one);
  EXPECT_EQ(one, (Recipe{{kRanksKey, 2}, {"n", 48}}));
  Apply(WithoutRegularisation(recipe, target), plain);
  EXPECT_EQ(plain, (Recipe{{kRanksKey, 2}, {"drop", 0.0}, {"flip", false}, {"decay", 0.0}}));
}

}  // namespace overfit_test
}  // namespace trainwreck
