// Whole runs of one rank: determinism, accumulation, guards, the audit, and what the trace says of
// them. resume_test.cc has those with checkpoints and with more ranks.
#include "trainer/loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "trainer/models/model.h"
#include "trainer/test_run.h"

namespace trainwreck {
namespace {

constexpr int kBadSampleId = 5;

TEST(LoopTest, TheSamePlanGivesTheSameBits) {
  for (const Recipe& recipe :
       {Mlp(), Gpt(), With(Gpt(), {{"precision", "bf16"}}), With(Gpt(), {{"data.kind", "text"}})}) {
    const Outcome first = RunOnce(recipe, {"param_digest"});
    const Outcome second = RunOnce(recipe, {"param_digest"});
    EXPECT_EQ(first.code, 0);
    EXPECT_EQ(first.trace.end_why.at(0), "completed");
    EXPECT_EQ(BitsOf(first), BitsOf(second));
    EXPECT_EQ(first.Values("param_digest").size(), recipe.at("steps").get<std::size_t>());
  }
}

TEST(LoopTest, PrecisionAndNormAreHeeded) {
  const double base = RunOnce(Gpt()).Last("param_digest");
  EXPECT_NE(RunOnce(With(Gpt(), {{"precision", "bf16"}})).Last("param_digest"), base);
  EXPECT_NE(RunOnce(With(Gpt(), {{"model.norm", "post"}})).Last("param_digest"), base);
  EXPECT_NE(RunOnce(With(Gpt(), {{"model.init_scale", 2}})).Last("param_digest"), base);
}

TEST(LoopTest, ParametersMayHave16Bits) {
  const Recipe recipe = With(Gpt(), {{"model.dtype", "bf16"}});
  for (const char* attention : {"fused", "explicit", "explicit_fp32"}) {
    const Outcome outcome = RunOnce(With(recipe, {{"model.attention", attention}}),
                                    {"param_digest", "off_master", "updated", "update_norm"});
    ASSERT_EQ(outcome.code, 0) << attention;
    EXPECT_THAT(outcome.Values("off_master"), testing::Each(0));
    EXPECT_GT(outcome.Last("updated"), 0);
    EXPECT_GT(outcome.Last("update_norm"), 0);
  }
  const Outcome without =
      RunOnce(With(recipe, {{"optimizer.master_weights", "none"}}), {"off_master"});
  EXPECT_EQ(without.code, 0);
  EXPECT_EQ(without.trace.Find("off_master", 0), nullptr);
  EXPECT_NE(without.Last("param_digest"), RunOnce(recipe).Last("param_digest"));
}

TEST(LoopTest, AnUpdateInTheBackwardPassIsTheSameUpdate) {
  const std::vector<std::string> record = {"param_digest", "update_norm", "grad_norm{*}",
                                           "applied_grad_norm"};
  const Recipe recipe = With(Gpt(), {{"optimizer.clip_norm", 0.0}, {"diagnose.nonfinite", false}});
  const Outcome after = RunOnce(recipe, record);
  const Outcome within = RunOnce(With(recipe, {{"optimizer.in_backward", true}}), record);
  EXPECT_EQ(within.code, 0);
  auto bits = BitsOf(within), expected = BitsOf(after);
  EXPECT_LT(bits["memory_allocated_bytes"].back(), expected["memory_allocated_bytes"].back());
  for (auto* some : {&bits, &expected}) {
    std::erase_if(*some, [](const auto& signal) { return signal.first.starts_with("memory_"); });
  }
  EXPECT_EQ(bits, expected);
}

TEST(LoopTest, LearnsAndStaysAboveTheFloor) {
  const Outcome outcome = RunOnce(With(Gpt(), {{"steps", 150}, {"optimizer.lr", 0.01}}));
  EXPECT_LT(outcome.Last("eval_loss"), 0.5 * outcome.Values("loss").front());
  EXPECT_GT(outcome.Last("eval_loss"), outcome.Last("entropy_floor"));
}

// Training data whose first four samples are held-out ones.
class FourLeaked : public PartWrapper {
 public:
  using PartWrapper::Wrap;
  std::unique_ptr<Dataset> Wrap(std::unique_ptr<Dataset> part, const Dataset& held_out) override {
    return std::make_unique<Leaky>(std::move(part), held_out);
  }

 private:
  class Leaky : public DatasetAround {
   public:
    Leaky(std::unique_ptr<Dataset> inner, const Dataset& held_out)
        : DatasetAround(std::move(inner)), held_out_(held_out) {}
    Sample Get(std::int64_t id) const override {
      return id < 4 ? held_out_.Get(id) : inner().Get(id);
    }

   private:
    const Dataset& held_out_;
  };
};

TEST(LoopTest, HeldOutRowsInTrainingAreCountedDroppedOrRefused) {
  const auto run = [](const Recipe& changes) {
    return RunOnce(With(Mlp(), changes), {"epoch_samples"},
                   [] { return std::make_unique<FourLeaked>(); });
  };
  EXPECT_TRUE(run({}).EventsOf("overlap").empty());
  const Outcome counted = run({{"audit.overlap", "report"}});
  ASSERT_EQ(counted.EventsOf("overlap").size(), 1U);
  const Json overlap = counted.EventsOf("overlap")[0];
  EXPECT_EQ(overlap["equal"], 4);
  EXPECT_EQ(overlap["near"], 0);
  EXPECT_EQ(overlap["held_out_seen"], 4);
  EXPECT_EQ(overlap["training"], 64);
  EXPECT_EQ(overlap["dropped"], 0);
  EXPECT_EQ(run({{"audit.overlap", "stop"}}).code, 3);
  const Outcome dropped = run({{"audit.overlap", "stop"}, {"data.duplicates", "drop_exact"}});
  EXPECT_EQ(dropped.code, 0) << "nothing is left to stop for";
  EXPECT_EQ(dropped.EventsOf("overlap").at(0)["dropped"], 4);
}

TEST(LoopTest, APhaseMayFineTuneOnAnotherSource) {
  const Recipe recipe = With(Mlp(), {{"finetune.phase", "train"}, {"finetune.source", 1}});
  const Outcome plain = RunOnce(Mlp()), tuned = RunOnce(recipe);
  EXPECT_NE(tuned.Values("loss").front(), plain.Values("loss").front());
  EXPECT_GT(tuned.Last("eval_loss"), 1.2 * plain.Last("eval_loss")) << "of the source before";
  EXPECT_EQ(RunOnce(With(recipe, {{"finetune.phase", "later"}})).Values("loss"),
            plain.Values("loss"));
  const Outcome held = RunOnce(With(recipe, {{"finetune.consolidation", 5.0}}));
  ASSERT_EQ(held.EventsOf("consolidated").size(), 1U);
  EXPECT_EQ(held.EventsOf("consolidated")[0]["samples"], 64);
  EXPECT_GT(held.Last("loss"), tuned.Last("loss")) << "the springs hold the weights back";
}

TEST(LoopTest, AccumulationEqualsALargeBatch) {
  const Recipe large = With(Mlp(), {{"data.batch_size", 8}});
  // Micro-batches of 3, 3 and then 2 at the end of an epoch of 8: their sizes differ, their mean
  // must not.
  const Recipe small =
      With(Mlp(), {{"data.batch_size", 3}, {"accumulation", 3}, {"data.samples", 8}});
  const Outcome one = RunOnce(With(large, {{"data.samples", 8}}));
  const Outcome three = RunOnce(small);
  ASSERT_EQ(one.Values("sample_digest"), three.Values("sample_digest"));
  const auto expected = one.Values("loss");
  const auto actual = three.Values("loss");
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-5) << i;
  EXPECT_NEAR(three.Last("grad_norm"), one.Last("grad_norm"), 1e-4);
}

TEST(LoopTest, EvaluatesOnTheDataThatTheRecipeSays) {
  const Recipe recipe = With(Mlp(), {{"model.batch_norm", true}});
  const double plain = RunOnce(recipe).Last("eval_loss");
  const Outcome on_training = RunOnce(With(recipe, {{"eval.data", "training"}}));
  EXPECT_NE(on_training.Last("eval_loss"), plain);
  EXPECT_EQ(on_training.EventsOf("evaluated").at(0)["data"], "training");
  EXPECT_EQ(RunOnce(recipe).EventsOf("evaluated").at(0)["data"], "held_out");
  EXPECT_NE(RunOnce(With(recipe, {{"eval.batch_size", 2}})).Last("eval_loss"), plain);
  EXPECT_EQ(RunOnce(With(recipe, {{"eval.every", 1}})).Last("loss"), RunOnce(recipe).Last("loss"))
      << "an evaluation leaves training as it is";
}

// Between two micro-batches of a step, and it changes nothing but what it reports.
TEST(LoopTest, EvaluatesWithinAnAccumulation) {
  const Recipe recipe = With(Gpt(), {{"accumulation", 3},
                                     {"model.dropout", 0.2},
                                     {"eval.at_epoch_end", false},
                                     {"precision", "bf16"}});
  const Outcome without = RunOnce(recipe, {"param_digest", "grad_norm{*}"});
  const Outcome within =
      RunOnce(With(recipe, {{"eval.every_micro_batches", 4}}), {"param_digest", "grad_norm{*}"});
  EXPECT_EQ(within.EventsOf("evaluated").size(), 12u * 3 / 4 + 1);
  auto expected = BitsOf(without), actual = BitsOf(within);
  expected.erase("eval_loss");
  actual.erase("eval_loss");
  EXPECT_EQ(actual, expected);
}

TEST(LoopTest, CountsTheTargetsThatAreInTheLoss) {
  const Outcome outcome = RunOnce(With(Gpt(), {{"data.prompt_tokens", 3}}));
  const double masked = outcome.Last("tokens") - outcome.Last("loss_tokens");
  const double samples = outcome.Last("tokens") / 32;
  EXPECT_EQ(masked, 3 * samples);
}

TEST(LoopTest, EpochsGoThroughAllSamplesAndEvaluate) {
  const Outcome outcome = RunOnce(With(Mlp(), {{"steps", 24}, {"eval.every", 0}}));
  EXPECT_EQ(outcome.Values("epoch").front(), 0);
  EXPECT_EQ(outcome.Values("epoch")[7], 0);
  EXPECT_EQ(outcome.Values("epoch")[8], 1);
  EXPECT_EQ(outcome.Last("epoch"), 2);
  EXPECT_EQ(outcome.EventsOf("evaluated").size(), 3u);  // two ends of an epoch, one of the run
  const Series* eval_loss = outcome.trace.Find("eval_loss", 0);
  EXPECT_TRUE(eval_loss->Has(8));
  EXPECT_FALSE(eval_loss->Has(9));
  EXPECT_TRUE(eval_loss->Has(23));
  const Outcome often =
      RunOnce(With(Mlp(), {{"steps", 24}, {"eval.every", 6}, {"eval.at_epoch_end", false}}));
  EXPECT_EQ(often.EventsOf("evaluated").size(), 4u);
}

TEST(LoopTest, ClippingBoundsTheUpdate) {
  const Outcome outcome = RunOnce(
      With(Mlp(), {{"optimizer.clip_norm", 0.5}, {"optimizer.momentum", 0}}), {"update_norm"});
  ASSERT_EQ(outcome.Values("update_norm").size(), 20u);
  EXPECT_GT(outcome.Values("grad_norm").front(), 0.5) << "the signal is before clipping";
  EXPECT_EQ(outcome.Values("clipped").front(), 1);
  for (double norm : outcome.Values("update_norm")) EXPECT_LE(norm, 0.5 * 0.02 * 1.0001);
}

TEST(TelemetryTest, FrozenParametersDoNotMove) {
  const Outcome outcome = RunOnce(With(Gpt(), {{"model.trainable", "blocks.*, embed.*"}}),
                                  {"updated{head.*}", "update_norm{head.*}", "grad_norm{head.*}",
                                   "updated{blocks.0.attn.proj.weight}"});
  for (const char* signal :
       {"updated{head.weight}", "update_norm{head.weight}", "grad_norm{head.weight}"}) {
    ASSERT_EQ(outcome.Values(signal).size(), 12u) << signal;
    for (double value : outcome.Values(signal)) EXPECT_EQ(value, 0) << signal;
  }
  EXPECT_GT(outcome.Values("updated{blocks.0.attn.proj.weight}").front(), 0.9 * 32 * 32);
  for (const char* signal : {"updated{embed.weight}", "updated", "update_norm", "param_norm"}) {
    EXPECT_TRUE(outcome.Values(signal).empty()) << signal << " is not asked for";
  }
}

TEST(TelemetryTest, PerTensorNormsAddUpToTheGlobalOnes) {
  const Outcome outcome = RunOnce(Mlp(), {"update_norm{*}", "grad_norm{*}", "param_norm{*}",
                                          "update_norm", "grad_norm", "param_norm"});
  for (const std::string signal : {"update_norm", "grad_norm", "param_norm"}) {
    double squares = 0;
    int tensors = 0;
    for (const auto& [key, series] : outcome.trace.series) {
      if (!key.first.starts_with(signal + "{")) continue;
      squares += series.values[4] * series.values[4];
      ++tensors;
    }
    EXPECT_EQ(tensors, 6) << signal;
    EXPECT_NEAR(std::sqrt(squares), outcome.Values(signal)[4], 1e-12) << signal;
  }
  const double momentum_free =
      RunOnce(With(Mlp(), {{"optimizer.momentum", 0}}), {"update_norm"}).Values("update_norm")[0];
  EXPECT_NEAR(momentum_free, 0.02 * outcome.Values("grad_norm")[0], 1e-6);
}

TEST(LoopTest, ARunWithEverythingFrozenRuns) {
  const Outcome outcome =
      RunOnce(With(Mlp(), {{"model.trainable", ""}}), {"update_norm", "updated"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.Last("updated"), 0);
  EXPECT_EQ(outcome.Last("update_norm"), 0);
  EXPECT_EQ(outcome.Last("grad_norm"), 0);
}

// Damages one sample.
class BadData : public Dataset {
 public:
  BadData(std::unique_ptr<Dataset> inner, std::function<void(Sample&)> damage)
      : inner_(std::move(inner)), damage_(std::move(damage)) {}
  std::int64_t size() const override { return inner_->size(); }
  std::int64_t input_limit() const override { return inner_->input_limit(); }
  std::int64_t target_limit() const override { return inner_->target_limit(); }
  Sample Get(std::int64_t id) const override {
    Sample sample = inner_->Get(id);
    if (id == kBadSampleId) damage_(sample);
    return sample;
  }

 private:
  std::unique_ptr<Dataset> inner_;
  std::function<void(Sample&)> damage_;
};

class Damage : public PartWrapper {
 public:
  explicit Damage(std::function<void(Sample&)> damage) : damage_(std::move(damage)) {}
  using PartWrapper::Wrap;
  std::unique_ptr<Dataset> Wrap(std::unique_ptr<Dataset> data) override {
    return std::make_unique<BadData>(std::move(data), damage_);
  }

 private:
  std::function<void(Sample&)> damage_;
};

std::function<std::unique_ptr<PartWrapper>()> DamageOf(std::function<void(Sample&)> damage) {
  return [damage] { return std::make_unique<Damage>(damage); };
}

void SpoilInput(Sample& sample) {
  sample.input = sample.input.clone();
  sample.input[2].fill_(std::numeric_limits<float>::quiet_NaN());
}

void SpoilTarget(Sample& sample) { sample.target = sample.target + 1000; }
void MaskAll(Sample& sample) { sample.weight = sample.weight * 0; }

// The step whose batch has the bad sample, found in a run without it.
int StepOfBadSample(const Recipe& recipe) {
  const Outcome outcome = RunOnce(With(recipe, {{"data.batch_size", 1}, {"steps", 64}}));
  const auto ids = outcome.Values("sample_id_min");
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] == kBadSampleId)
      return static_cast<int>(i) / recipe.at("data.batch_size").get<int>();
  }
  return -1;
}

TEST(LoaderTest, WithoutAGuardTheLossIsLostAndTheSampleNamed) {
  const int step = StepOfBadSample(Mlp());
  const Outcome outcome = RunOnce(Mlp(), {}, DamageOf(SpoilInput));
  EXPECT_EQ(outcome.code, 0);
  const auto losses = outcome.Values("loss");
  for (int i = 0; i < 20; ++i) EXPECT_EQ(std::isfinite(losses[i]), i < step) << i;
  ASSERT_EQ(outcome.EventsOf("nonfinite_batch").size(), 1u) << "the first is enough";
  const Json event = outcome.EventsOf("nonfinite_batch")[0];
  EXPECT_EQ(event["batch_step"], step);
  EXPECT_EQ(event["samples"], Json({kBadSampleId}));
  EXPECT_EQ(event["field"], "input");
  EXPECT_GT(outcome.Values("nonfinite_grads")[step], 0);
  EXPECT_EQ(outcome.Values("nonfinite_grads")[step - 1], 0);
}

TEST(LoaderTest, AGuardKeepsTheSampleOut) {
  const Outcome batch =
      RunOnce(With(Mlp(), {{"loader.guard", "skip_batch"}}), {}, DamageOf(SpoilInput));
  ASSERT_GE(batch.EventsOf("sample_rejected").size(), 1u);
  EXPECT_EQ(batch.EventsOf("sample_rejected")[0]["sample"], kBadSampleId);
  EXPECT_EQ(batch.EventsOf("sample_rejected")[0]["position"], 2);
  ASSERT_GE(batch.EventsOf("batch_skipped").size(), 1u);
  EXPECT_EQ(batch.EventsOf("batch_skipped")[0]["samples"].size(), 8u);
  EXPECT_EQ(static_cast<int>(batch.Last("skipped")) % 8, 0);
  EXPECT_TRUE(std::isfinite(batch.Last("loss")));

  const Outcome sample =
      RunOnce(With(Mlp(), {{"loader.guard", "drop_sample"}}), {}, DamageOf(SpoilInput));
  const auto tokens = sample.Values("tokens");
  EXPECT_EQ(tokens[StepOfBadSample(Mlp())], 7);
  EXPECT_TRUE(sample.EventsOf("batch_skipped").empty());
  EXPECT_TRUE(std::isfinite(sample.Last("loss")));
}

TEST(LoaderTest, AGuardKeepsASampleWithoutTargetsOut) {
  const Outcome outcome =
      RunOnce(With(Mlp(), {{"loader.guard", "drop_sample"}}), {}, DamageOf(MaskAll));
  ASSERT_GE(outcome.EventsOf("sample_rejected").size(), 1u);
  EXPECT_EQ(outcome.EventsOf("sample_rejected")[0]["sample"], kBadSampleId);
  EXPECT_EQ(outcome.EventsOf("sample_rejected")[0]["field"], "weight");
  EXPECT_EQ(outcome.EventsOf("sample_rejected")[0]["why"], "all 0");
}

TEST(LoaderTest, LongSequencesAreCutOff) {
  const double whole = RunOnce(Gpt()).Values("tokens")[0];
  EXPECT_EQ(RunOnce(With(Gpt(), {{"loader.max_len", 2}})).Values("tokens")[0],
            2 * whole / ParseRecipe(Gpt()).data.seq_len);
  EXPECT_EQ(RunOnce(With(Gpt(), {{"loader.max_len", 9999}})).Values("tokens")[0], whole);
}

TEST(LoaderTest, AGuardCanStopTheRun) {
  const Outcome outcome =
      RunOnce(With(Mlp(), {{"loader.guard", "stop"}}), {}, DamageOf(SpoilInput));
  EXPECT_EQ(outcome.code, 3);
  EXPECT_EQ(outcome.trace.end_why.at(0), "guard");
  EXPECT_EQ(outcome.EventsOf("sample_rejected")[0]["sample"], kBadSampleId);
}

TEST(LoaderTest, GuardsChangeNothingOnHealthyData) {
  const double digest = RunOnce(Gpt()).Last("param_digest");
  for (const char* guard : {"skip_batch", "drop_sample", "stop"}) {
    EXPECT_EQ(RunOnce(With(Gpt(), {{"loader.guard", guard}})).Last("param_digest"), digest);
  }
}

TEST(LoaderTest, ALabelOutOfRangeIsAnExceptionThatNamesTheBatch) {
  const Outcome outcome = RunOnce(Mlp(), {}, DamageOf(SpoilTarget));
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.trace.end_why.at(0), "exception");
  ASSERT_EQ(outcome.EventsOf("exception").size(), 1u);
  const Json event = outcome.EventsOf("exception")[0];
  EXPECT_EQ(event["step"], StepOfBadSample(Mlp()));
  EXPECT_THAT(event["samples"].get<std::vector<int>>(), testing::Contains(kBadSampleId));
  EXPECT_THAT(event["what"].get<std::string>(), testing::HasSubstr("out of bounds"));
  const Outcome guarded =
      RunOnce(With(Mlp(), {{"loader.guard", "drop_sample"}}), {}, DamageOf(SpoilTarget));
  EXPECT_EQ(guarded.code, 0);
  EXPECT_EQ(guarded.EventsOf("sample_rejected")[0]["field"], "target");
}

TEST(LoaderTest, DataWithoutAUsableSampleIsAnErrorNotAnEndlessLoop) {
  const Outcome outcome = RunOnce(
      With(Mlp(),
           {{"loader.guard", "skip_batch"}, {"data.batch_size", 64}, {"eval.at_epoch_end", false}}),
      {}, DamageOf(SpoilInput));
  EXPECT_EQ(outcome.code, 1);
  EXPECT_TRUE(outcome.Values("loss").empty());
}

// What was trained, without the signals that say by what means.
std::map<std::string, std::vector<double>> TrainedBitsOf(const Outcome& outcome) {
  auto bits = BitsOf(outcome);
  std::erase_if(bits, [](const auto& signal) {
    return signal.first == "loss_scale" || signal.first.starts_with("memory_");
  });
  return bits;
}

TEST(PrecisionTest, AScaleThatIsAPowerOfTwoChangesNoBit) {
  // Clipped: so the norm that is compared and clipped by is that of the gradients without scale.
  const Recipe plain = With(Gpt(), {{"optimizer.clip_norm", 0.5}, {"accumulation", 2}});
  const Outcome unscaled = RunOnce(plain, {"param_digest"});
  const Recipe fixed = {{"scaler.kind", "static"}, {"scaler.init_scale", 4096}};
  const Outcome scaled = RunOnce(With(plain, fixed), {"param_digest"});
  EXPECT_EQ(TrainedBitsOf(unscaled), TrainedBitsOf(scaled));
  EXPECT_EQ(unscaled.Last("loss_scale"), 1);
  EXPECT_EQ(scaled.Last("loss_scale"), 4096);
  EXPECT_EQ(scaled.Last("clipped"), 1);
}

TEST(PrecisionTest, AnOverflowSkipsTheUpdateAndNothingElse) {
  const Outcome outcome = RunOnce(With(Mlp(), {{"precision", "fp16"},
                                               {"scaler.kind", "static"},
                                               {"scaler.init_scale", 1e10},
                                               {"optimizer.clip_norm", 1.0},
                                               {"schedule.kind", "warmup_linear"},
                                               {"schedule.warmup_steps", 5}}),
                                  {"param_digest", "update_norm"});
  EXPECT_EQ(outcome.code, 0);
  for (int step = 0; step < 20; ++step) {
    EXPECT_EQ(outcome.Values("overflow")[step], 1);
    EXPECT_EQ(outcome.Values("skipped_updates")[step], step + 1);
    EXPECT_EQ(outcome.Values("update_norm")[step], 0);
    EXPECT_EQ(outcome.Values("clipped")[step], 0) << "there was nothing to clip";
    EXPECT_GT(outcome.Values("nonfinite_grads")[step], 0);
    EXPECT_TRUE(std::isfinite(outcome.Values("loss")[step]));
    EXPECT_EQ(outcome.Values("param_digest")[step], outcome.Values("param_digest")[0]);
    EXPECT_EQ(outcome.Values("lr")[step], outcome.Values("lr")[0]) << "it counts updates";
  }
}

TEST(PrecisionTest, ADynamicScaleComesDownAndTrains) {
  const Outcome outcome = RunOnce(With(
      Mlp(), {{"precision", "fp16"}, {"scaler.kind", "dynamic"}, {"scaler.init_scale", 1 << 24}}));
  EXPECT_EQ(outcome.Values("overflow").front(), 1);
  EXPECT_EQ(outcome.Last("overflow"), 0);
  const double skipped = outcome.Last("skipped_updates");
  EXPECT_GT(skipped, 1);
  EXPECT_EQ(outcome.Last("loss_scale"), (1 << 24) * std::pow(0.5, skipped));
  EXPECT_LT(outcome.Last("loss"), outcome.Values("loss").front());
}

TEST(PrecisionTest, RecomputedActivationsChangeNoBit) {
  for (const char* precision : {"fp32", "bf16"}) {
    const Recipe plain = With(Gpt(), {{"precision", precision}});
    const Outcome kept = RunOnce(plain, {"param_digest"});
    const Outcome recomputed =
        RunOnce(With(plain, {{"model.activation_checkpointing", true}}), {"param_digest"});
    EXPECT_EQ(TrainedBitsOf(kept), TrainedBitsOf(recomputed));
    EXPECT_LT(recomputed.Last("memory_peak_bytes"), kept.Last("memory_peak_bytes"));
  }
}

TEST(LoopTest, ABadPlanIsRefusedWithItsOwnCode) {
  const Outcome outcome = RunOnce(With(Mlp(), {{"optimizer.lrr", 1}}));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.trace.end_why.at(0), "bad_plan");
  EXPECT_EQ(RunOnce(With(Mlp(), {{"parallel.ranks", 2}})).code, 2) << "a world of one";
}

}  // namespace
}  // namespace trainwreck
