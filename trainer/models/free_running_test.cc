#include "trainer/models/free_running.h"

#include <ATen/ops/one_hot.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "trainer/models/model.h"
#include "trainer/test_run.h"

namespace trainwreck {
namespace {

// Is certain that each token is followed by the next number, of eight; but 5 by 0.
class Counts : public Model {
 public:
  at::Tensor Loss(const Batch& batch) override { return at::zeros({}); }
  at::Tensor Logits(const at::Tensor& tokens) override {
    longest = std::max(longest, tokens.size(1));
    return at::one_hot((tokens + 1).remainder(8).masked_fill(tokens.eq(5), 0), 8);
  }
  std::int64_t longest = 0;
};

Batch TwoSequences() {
  Batch batch;
  batch.ids = {0, 1};
  batch.inputs = at::tensor({1, 2, 3, 4, 3, 4, 5, 6}, at::kLong).view({2, 4});
  batch.targets = at::tensor({2, 3, 4, 5, 4, 5, 6, 7}, at::kLong).view({2, 4});
  batch.weights = at::ones({2, 4});
  return batch;
}

TEST(FreeRunning, AnErrorIsWhatTheRestIsMadeOf) {
  Counts counts;
  const Batch batch = TwoSequences();
  const at::Tensor inputs = WithOwnInputs(counts, batch, BehindTargets(batch));
  EXPECT_TRUE(inputs.equal(at::tensor({1, 2, 3, 4, 3, 4, 5, 0}, at::kLong).view({2, 4})));
  // For the second sequence's targets 4, 5, 6, 7 it predicts 4, 5, 0, 1.
  EXPECT_DOUBLE_EQ(FreeRunningAccuracy(counts, batch), 6.0 / 8);
  EXPECT_EQ(counts.longest, 4);
  EXPECT_TRUE(batch.inputs.equal(TwoSequences().inputs)) << "the batch stays as it is";
}

TEST(FreeRunning, APromptIsGivenAndDoesNotCount) {
  Counts counts;
  Batch batch = TwoSequences();
  batch.weights.narrow(1, 0, 3).zero_();
  EXPECT_FALSE(BehindTargets(batch).any().item<bool>());
  EXPECT_DOUBLE_EQ(FreeRunningAccuracy(counts, batch), 2.0 / 2) << "6 is in its prompt";
}

TEST(FreeRunning, OnlyTheInputsAskedForAreItsOwn) {
  Counts counts;
  Batch batch = TwoSequences();
  batch.inputs.fill_(1);
  at::Tensor own = at::zeros({2, 4}, at::kBool);
  own[0][2].fill_(true);
  own[1][1].fill_(true);
  EXPECT_TRUE(WithOwnInputs(counts, batch, own)
                  .equal(at::tensor({1, 1, 2, 1, 1, 2, 1, 1}, at::kLong).view({2, 4})));
}

TEST(FreeRunning, AModelWithoutLogitsSaysSo) {
  class Silent : public Model {
    at::Tensor Loss(const Batch& batch) override { return at::zeros({}); }
  } silent;
  EXPECT_THROW(FreeRunningAccuracy(silent, TwoSequences()), std::runtime_error);
}

Recipe CertainText() {
  return With(Gpt(), {{"data.certainty", 1.0},
                      {"eval.free_running", true},
                      {"optimizer.lr", 0.01},
                      {"steps", 60}});
}

TEST(FreeRunning, IsMeasuredWhereTheRecipeSaysSo) {
  const Outcome outcome = RunOnce(CertainText());
  EXPECT_GT(outcome.Last("free_running_accuracy"), 0.9);
  EXPECT_LT(outcome.Values("free_running_accuracy").front(), 0.5);
  EXPECT_EQ(RunOnce(Gpt()).trace.Find("free_running_accuracy", 0), nullptr);
  for (const char* kind : {"rnn", "gpt"}) {
    const Recipe brief = With(CertainText(), {{"model.kind", kind}, {"steps", 1}});
    EXPECT_LT(RunOnce(brief).Last("free_running_accuracy"), 0.5) << kind;
  }
}

TEST(FreeRunning, ScheduledSamplingTrainsOnOwnInputs) {
  const Recipe sampled = With(CertainText(), {{"scheduled_sampling.share", 1.0}});
  const Outcome at_once = RunOnce(sampled);
  EXPECT_NE(at_once.Values("loss")[0], RunOnce(CertainText()).Values("loss")[0]);
  EXPECT_EQ(BitsOf(at_once), BitsOf(RunOnce(sampled)));
  const Outcome half = RunOnce(With(sampled, {{"scheduled_sampling.share", 0.5}}));
  EXPECT_NE(half.Values("loss")[0], at_once.Values("loss")[0]);
  EXPECT_NE(half.Values("loss")[0], RunOnce(CertainText()).Values("loss")[0]);
  const Outcome ramped = RunOnce(With(sampled, {{"scheduled_sampling.ramp_steps", 60}}));
  EXPECT_EQ(ramped.Values("loss")[0], RunOnce(CertainText()).Values("loss")[0]);
  EXPECT_LT(ramped.Last("loss"), at_once.Last("loss")) << "text that is all wrong teaches little";
}

}  // namespace
}  // namespace trainwreck
