// Where two runs come apart first, and which parts of a training stack that points to.
#include "harness/judge/place.h"

#include <gtest/gtest.h>

#include <limits>

#include "harness/judge/test_support.h"

namespace trainwreck::testing {
namespace place_test {

TargetDescription Target() {
  TargetDescription target = TestTarget();
  for (const char* name : {"param_norm", "eval_loss"}) {
    SignalInfo info;
    info.name = name;
    info.scale = Scale::kLog;
    target.signals.push_back(info);
  }
  SignalInfo digest;
  digest.name = "sample_digest";
  digest.exact = true;
  target.signals.push_back(digest);
  return target;
}

// Every signal is 1 at all steps.
RunTrace Even() {
  RunTrace run;
  run.planned_steps = 6;
  run.finished = true;
  for (const char* name :
       {"loss", "grad_norm", "grad_norm{head}", "param_norm", "sample_digest", "step_s"}) {
    for (int step = 0; step < 6; ++step) run.series[{name, 0}].Set(step, 1);
  }
  return run;
}

// What changes from `step` on.
RunTrace Changed(const std::string& signal, int step, double value = 2, RunTrace run = Even()) {
  for (; step < 6; ++step) run.series[{signal, 0}].Set(step, value);
  return run;
}

std::string PlaceOf(const RunTrace& twin, const std::vector<const RunTrace*>& draws = {}) {
  const std::optional<Place> place = FirstApart(twin, Even(), draws, Target());
  return place ? ToString(*place) : "";
}

TEST(Place, IsNowhereInEqualRuns) {
  EXPECT_EQ(PlaceOf(Even()), "");
  EXPECT_EQ(PlaceOf(Changed("step_s", 0)), "") << "time is nobody's defect";
}

TEST(Place, IsTheFirstStepAndInItTheFirstStage) {
  EXPECT_EQ(PlaceOf(Changed("param_norm", 2, 2, Changed("grad_norm{head}", 2))),
            "apart first at step 2: grad_norm{head} (backward pass); equal until there: loss, "
            "sample_digest");
  EXPECT_EQ(PlaceOf(Changed("param_norm", 2, 2, Changed("loss", 3))),
            "apart first at step 2: param_norm (update); equal until there: grad_norm, loss, "
            "sample_digest");
  EXPECT_EQ(PlaceOf(Changed("loss", 0)),
            "apart first at step 0: loss (forward pass); equal until there: sample_digest");
}

// One rank of several has its own samples, and that is right.
TEST(Place, OfSamplesThatAreOthersByTheFormOfTheTwinIsNone) {
  const RunTrace ranks = Changed("sample_digest", 0);
  EXPECT_EQ(PlaceOf(ranks), "");
  EXPECT_EQ(PlaceOf(Changed("grad_norm", 3, 2, ranks)),
            "apart first at step 3: grad_norm (backward pass); equal until there: loss");
  EXPECT_EQ(PlaceOf(Changed("loss", 0, 2, ranks)), "apart first at step 0: sample_digest (data)");
  EXPECT_EQ(PlaceOf(Changed("sample_digest", 2)), "apart first at step 2: sample_digest (data)");
}

TEST(Place, IsBeyondWhatRoundingReached) {
  const RunTrace draw = Changed("loss", 2, 1 + 0x1p-10);
  EXPECT_EQ(PlaceOf(Changed("loss", 2, 1 + 0x1p-8), {&draw}), "") << "4 times the envelope";
  EXPECT_NE(PlaceOf(Changed("loss", 2, 1 + 0x1p-6), {&draw}), "");
  EXPECT_NE(PlaceOf(Changed("loss", 1, 1 + 0x1p-8), {&draw}), "") << "before the draws part";
  EXPECT_EQ(PlaceOf(Changed("loss", 0, 1 + 0x1p-22), {&draw}), "") << "what 32 bits resolve";
}

TEST(Place, IsWhereOneIsNoNumber) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const RunTrace draw = Even();
  EXPECT_NE(PlaceOf(Changed("loss", 4, nan), {&draw}).find("step 4"), std::string::npos);
}

TEST(Suspects, BeginWithWhatTheTwinIsAbout) {
  Twin twin;
  twin.changes.set = {{"accumulation", 4}, {"data.batch_size", 2}};
  EXPECT_EQ(SuspectsOf({0, "grad_norm", StepStage::kBackward, {}}, twin),
            (std::vector<std::string>{"accumulation", "gradients", "model"}));
  twin.changes.set = {{"data.batch_size", 2}};
  EXPECT_EQ(SuspectsOf({0, "loss", StepStage::kForward, {}}, twin),
            (std::vector<std::string>{"data", "loss", "model"}));
  twin.changes.set.clear();
  twin.phases = {{"train", 3}, {"resume", std::nullopt}};
  EXPECT_EQ(SuspectsOf({3, "param_norm", StepStage::kUpdate, {}}, twin),
            (std::vector<std::string>{"checkpoint", "optimizer"}));
}

TEST(Stage, IsReadFromTheName) {
  EXPECT_EQ(StageOf("loss_tokens"), StepStage::kData);
  EXPECT_EQ(StageOf("loss_scale"), StepStage::kScaling);
  EXPECT_EQ(StageOf("loss"), StepStage::kForward);
  EXPECT_EQ(StageOf("grad_norm{blocks.0.attn.qkv.weight}"), StepStage::kBackward);
  EXPECT_EQ(StageOf("applied_grad_norm"), StepStage::kClipping);
  EXPECT_EQ(StageOf("eval_loss"), StepStage::kEvaluation);
  EXPECT_EQ(StageOf("bananas"), StepStage::kOther);
}

RunTrace Saving(std::vector<std::pair<int, Json>> checkpoints) {
  RunTrace run = Even();
  for (auto& [steps, digests] : checkpoints) {
    run.events.push_back({.name = "checkpoint_saved",
                          .step = steps - 1,
                          .rank = 0,
                          .fields = {{"steps_done", steps}, {"entry_digests", digests}}});
  }
  return run;
}

TEST(StateApart, TheFirstCheckpointThatDiffersIsNamedWithItsEntries) {
  const RunTrace other = Saving({{2, {{"a", 1}, {"b", 2}}}, {4, {{"a", 3}, {"b", 4}}}});
  EXPECT_FALSE(FirstStateApart(other, other));
  EXPECT_FALSE(FirstStateApart(Even(), other));                     // no digests
  EXPECT_FALSE(FirstStateApart(Saving({{3, {{"a", 9}}}}), other));  // none in common
  const auto apart = FirstStateApart(Saving({{2, {{"a", 1}, {"b", 2}}}, {4, {{"a", 3}}}}), other);
  ASSERT_TRUE(apart);
  EXPECT_EQ(ToString(*apart), "first checkpoint apart, after 4 steps: b");
  const auto many =
      FirstStateApart(Saving({{4, {{"a", 0}, {"b", 0}, {"c", 0}, {"d", 0}, {"e", 0}}}}), other);
  ASSERT_TRUE(many);
  EXPECT_EQ(ToString(*many), "first checkpoint apart, after 4 steps: a, b, c and 2 more");
}

TEST(StateApart, TheLastOfTwoSavesOfOneStepCounts) {
  const RunTrace other = Saving({{2, {{"a", 1}}}});
  EXPECT_FALSE(FirstStateApart(Saving({{2, {{"a", 7}}}, {2, {{"a", 1}}}}), other));
}

}  // namespace place_test
}  // namespace trainwreck::testing
