#include "trainer/recipe/recipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "trainer/telemetry/vocabulary.h"

namespace trainwreck {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string ErrorOf(const Recipe& recipe) {
  try {
    ParseRecipe(recipe);
  } catch (const RecipeError& error) {
    return error.what();
  }
  return "";
}

TEST(RecipeTest, DefaultsOfTheTableAreValidAndThoseOfTheType) {
  Recipe complete;
  for (const ParamInfo& key : RecipeKeys()) {
    EXPECT_EQ(CheckValue(key, key.default_value), "") << key.name;
    EXPECT_NE(key.doc, "") << key.name;
    EXPECT_TRUE(complete.emplace(key.name, key.default_value).second)
        << key.name << " is there twice";
  }
  const TrainingRecipe parsed = ParseRecipe(complete);
  const TrainingRecipe fresh;
  EXPECT_EQ(parsed.model.kind, fresh.model.kind);
  EXPECT_EQ(parsed.optimizer.lr, fresh.optimizer.lr);
  EXPECT_EQ(parsed.data.noise, fresh.data.noise);
  EXPECT_EQ(parsed.eval_at_epoch_end, fresh.eval_at_epoch_end);
}

// A key whose field is that of another key would pass every test of that other key.
TEST(RecipeTest, EveryKeySetsAFieldOfItsOwn) {
  const TrainingRecipe recipe = ParseRecipe({{"model.kind", "gpt"},
                                             {"model.layers", 3},
                                             {"model.width", 48},
                                             {"model.heads", 6},
                                             {"model.norm", "post"},
                                             {"model.init_scale", 1.5},
                                             {"model.trainable", "head.*"},
                                             {"data.kind", "text"},
                                             {"data.path", "/tmp"},
                                             {"data.seq_len", 7},
                                             {"data.vocab", 9},
                                             {"data.samples", 11},
                                             {"data.batch_size", 13},
                                             {"data.features", 15},
                                             {"data.classes", 17},
                                             {"data.noise", 0.19},
                                             {"loader.guard", "drop_sample"},
                                             {"sampler.uneven", "pad"},
                                             {"sampler.shuffle", false},
                                             {"optimizer.kind", "adamw"},
                                             {"optimizer.lr", 0.21},
                                             {"optimizer.momentum", 0.23},
                                             {"optimizer.weight_decay", 0.25},
                                             {"optimizer.beta1", 0.27},
                                             {"optimizer.beta2", 0.29},
                                             {"optimizer.eps", 0.31},
                                             {"optimizer.clip_norm", 0.33},
                                             {"schedule.kind", "warmup_linear"},
                                             {"schedule.warmup_steps", 35},
                                             {"schedule.final_ratio", 0.37},
                                             {"steps", 39},
                                             {"accumulation", 41},
                                             {"precision", "bf16"},
                                             {"eval.every", 43},
                                             {"eval.at_epoch_end", false},
                                             {"eval.batches", 45},
                                             {"checkpoint.every", 47},
                                             {"checkpoint.keep", 49},
                                             {"checkpoint.require_complete", true},
                                             {"resume.rewarm_steps", 51},
                                             {"parallel.ranks", 53},
                                             {"parallel.timeout_s", 0.55},
                                             {"parallel.bucket_mb", 0.57},
                                             {"model.activation_checkpointing", true},
                                             {"scaler.kind", "dynamic"},
                                             {"scaler.init_scale", 59},
                                             {"scaler.growth_factor", 61},
                                             {"scaler.backoff_factor", 0.63},
                                             {"scaler.growth_interval", 65},
                                             {"memory.limit_bytes", 67},
                                             {"diagnose.nonfinite", false},
                                             {"device", "cuda"},
                                             {"deterministic", true},
                                             {"threads", 75},
                                             {"diagnose.evidence_mb", 0.69},
                                             {"parallel.average_every", 71},
                                             {"parallel.check_every", 73},
                                             {"parallel.on_desync", "rollback"}});
  EXPECT_EQ(RecipeKeys().size(), 153u) << "a new key belongs here, below or into sources_test.cc";
  EXPECT_EQ(recipe.model.kind, "gpt");
  EXPECT_EQ(recipe.model.layers, 3);
  EXPECT_EQ(recipe.model.width, 48);
  EXPECT_EQ(recipe.model.heads, 6);
  EXPECT_EQ(recipe.model.norm, NormPlace::kPost);
  EXPECT_EQ(recipe.model.init_scale, 1.5);
  EXPECT_EQ(recipe.model.trainable, "head.*");
  EXPECT_EQ(recipe.data.kind, DataKind::kText);
  EXPECT_EQ(recipe.data.path, "/tmp");
  EXPECT_EQ(recipe.data.seq_len, 7);
  EXPECT_EQ(recipe.data.vocab, 9);
  EXPECT_EQ(recipe.data.samples, 11);
  EXPECT_EQ(recipe.data.batch_size, 13);
  EXPECT_EQ(recipe.data.features, 15);
  EXPECT_EQ(recipe.data.classes, 17);
  EXPECT_EQ(recipe.data.noise, 0.19);
  EXPECT_EQ(recipe.loader_guard, LoaderGuard::kDropSample);
  EXPECT_EQ(recipe.sampler_uneven, UnevenMode::kPad);
  EXPECT_FALSE(recipe.sampler_shuffle);
  EXPECT_EQ(recipe.optimizer.kind, OptimizerKind::kAdamW);
  EXPECT_EQ(recipe.optimizer.lr, 0.21);
  EXPECT_EQ(recipe.optimizer.momentum, 0.23);
  EXPECT_EQ(recipe.optimizer.weight_decay, 0.25);
  EXPECT_EQ(recipe.optimizer.beta1, 0.27);
  EXPECT_EQ(recipe.optimizer.beta2, 0.29);
  EXPECT_EQ(recipe.optimizer.eps, 0.31);
  EXPECT_EQ(recipe.optimizer.clip_norm, 0.33);
  EXPECT_EQ(recipe.schedule.kind, ScheduleKind::kWarmupLinear);
  EXPECT_EQ(recipe.schedule.warmup_steps, 35);
  EXPECT_EQ(recipe.schedule.final_ratio, 0.37);
  EXPECT_EQ(recipe.steps, 39);
  EXPECT_EQ(recipe.accumulation, 41);
  EXPECT_EQ(recipe.precision, Precision::kBf16);
  EXPECT_EQ(recipe.eval_every, 43);
  EXPECT_FALSE(recipe.eval_at_epoch_end);
  EXPECT_EQ(recipe.eval_batches, 45);
  EXPECT_EQ(recipe.checkpoint_every, 47);
  EXPECT_EQ(recipe.checkpoint_keep, 49);
  EXPECT_TRUE(recipe.checkpoint_require_complete);
  EXPECT_EQ(recipe.resume_rewarm_steps, 51);
  EXPECT_EQ(recipe.parallel_ranks, 53);
  EXPECT_EQ(recipe.parallel_timeout_s, 0.55);
  EXPECT_EQ(recipe.parallel_bucket_mb, 0.57);
  EXPECT_EQ(recipe.device, DeviceChoice::kCuda);
  EXPECT_TRUE(recipe.deterministic);
  EXPECT_EQ(recipe.threads, 75);
  EXPECT_EQ(recipe.diagnose_evidence_mb, 0.69);
  EXPECT_EQ(recipe.parallel_average_every, 71);
  EXPECT_EQ(recipe.parallel_check_every, 73);
  EXPECT_EQ(recipe.parallel_on_desync, OnDesync::kRollback);
  EXPECT_TRUE(recipe.model.activation_checkpointing);
  EXPECT_EQ(recipe.scaler.kind, ScalerKind::kDynamic);
  EXPECT_EQ(recipe.scaler.init_scale, 59);
  EXPECT_EQ(recipe.scaler.growth_factor, 61);
  EXPECT_EQ(recipe.scaler.backoff_factor, 0.63);
  EXPECT_EQ(recipe.scaler.growth_interval, 65);
  EXPECT_EQ(recipe.memory_limit_bytes, 67);
  EXPECT_FALSE(recipe.diagnose_nonfinite);
}

TEST(ParseRecipe, ReadsTheKeysOfRanksAndSaves) {
  const TrainingRecipe recipe = ParseRecipe({{"parallel.rendezvous", "tcp"},
                                             {"parallel.check_collectives", true},
                                             {"parallel.keep_digests", true},
                                             {"checkpoint.digests", true},
                                             {"parallel.init_sync", true},
                                             {"log.every", 77},
                                             {"log.over_ranks", true},
                                             {"log.rank_zero_only", true},
                                             {"checkpoint.on_failure", "go_on"}});
  EXPECT_EQ(recipe.parallel_rendezvous, RendezvousKind::kTcp);
  EXPECT_TRUE(recipe.parallel_check_collectives);
  EXPECT_TRUE(recipe.parallel_keep_digests);
  EXPECT_TRUE(recipe.checkpoint_digests);
  EXPECT_TRUE(recipe.parallel_init_sync);
  EXPECT_EQ(recipe.log_every, 77);
  for (const int stage : {0, 1, 2, 3}) {
    EXPECT_EQ(ParseRecipe({{"parallel.zero_stage", stage}, {"diagnose.nonfinite", false}})
                  .parallel_zero_stage,
              stage);
  }
  EXPECT_TRUE(recipe.log_over_ranks);
  EXPECT_TRUE(recipe.log_rank_zero_only);
  EXPECT_EQ(recipe.checkpoint_on_failure, OnFailedSave::kGoOn);
}

TEST(RecipeTest, SoDoTheKeysOfTheMlpAndItsData) {
  const TrainingRecipe recipe = ParseRecipe({{"model.activation", "tanh"},
                                             {"model.init", "constant"},
                                             {"model.init_std", 0.75},
                                             {"model.layer_norm", true},
                                             {"model.residual", false},
                                             {"loss.label_smoothing", 0.77},
                                             {"data.standardise", false}});
  EXPECT_EQ(recipe.model.activation, Activation::kTanh);
  EXPECT_EQ(recipe.model.init, InitKind::kConstant);
  EXPECT_EQ(recipe.model.init_std, 0.75);
  EXPECT_TRUE(recipe.model.layer_norm);
  EXPECT_FALSE(recipe.model.residual);
  EXPECT_FALSE(recipe.data.standardise);
  EXPECT_EQ(recipe.model.loss.label_smoothing, 0.77);
  EXPECT_TRUE(ParseRecipe({{"model.residual", true}}).model.residual);
  EXPECT_TRUE(ParseRecipe({{"data.standardise", true}}).data.standardise);
}

TEST(RecipeTest, SoDoTheKeysOfFragileForms) {
  const TrainingRecipe recipe = ParseRecipe({{"model.attention", "explicit_fp32"},
                                             {"model.qk_norm", true},
                                             {"model.similarity", "distance"},
                                             {"model.logit_scale", 3.5},
                                             {"model.normalise", "eps_outside"},
                                             {"model.input_norm", "one_pass"},
                                             {"loss.form", "plain_log_sum_exp"},
                                             {"loss.eps", 0.125},
                                             {"loss.weight", 0.375},
                                             {"loss.guard_denominator", true},
                                             {"loader.max_len", 17},
                                             {"optimizer.state_dtype", "bf16"},
                                             {"optimizer.offload", "disk"},
                                             {"optimizer.form", "plain"},
                                             {"schedule.kind", "warmup_linear"},
                                             {"schedule.restart_step", 19},
                                             {"schedule.restart_ratio", 2.5}});
  EXPECT_EQ(recipe.model.attention, AttentionForm::kExplicitFp32);
  EXPECT_TRUE(recipe.model.qk_norm);
  EXPECT_EQ(recipe.model.similarity, SimilarityKind::kDistance);
  EXPECT_EQ(recipe.model.logit_scale, 3.5);
  EXPECT_EQ(recipe.model.normalise, NormaliseForm::kEpsOutside);
  EXPECT_EQ(recipe.model.input_norm, InputNorm::kOnePass);
  EXPECT_EQ(recipe.model.loss.form, LossForm::kPlainLogSumExp);
  EXPECT_EQ(recipe.model.loss.eps, 0.125);
  EXPECT_EQ(recipe.model.loss.weight, 0.375);
  EXPECT_TRUE(recipe.model.loss.guard_denominator);
  EXPECT_EQ(recipe.loader_max_len, 17);
  EXPECT_EQ(recipe.optimizer.state_dtype, StateDtype::kBf16);
  EXPECT_EQ(recipe.optimizer.offload, Offload::kDisk);
  EXPECT_EQ(recipe.optimizer.form, UpdateForm::kPlain);
  EXPECT_EQ(recipe.schedule.restart_step, 19);
  EXPECT_EQ(recipe.schedule.restart_ratio, 2.5);
}

TEST(RecipeTest, SoDoTheKeysOfTargetsAndAudits) {
  const TrainingRecipe recipe = ParseRecipe({{"model.lora_rank", 3},
                                             {"model.batch_norm", true},
                                             {"model.positions", "rotary"},
                                             {"model.rotary_scale", 0.79},
                                             {"data.lag", 7},
                                             {"data.prompt_tokens", 0},
                                             {"data.balance", "resample"},
                                             {"loader.workers", 3},
                                             {"loader.prefetch", 5},
                                             {"loader.cache", true},
                                             {"eval.batch_size", 13},
                                             {"eval.data", "training"},
                                             {"audit.coverage", "stop"}});
  const TrainingRecipe text = ParseRecipe({{"model.kind", "gpt"},
                                           {"data.kind", "markov"},
                                           {"model.dropout", 0.81},
                                           {"model.tied_embeddings", true},
                                           {"data.document_tokens", 13},
                                           {"loader.trim_padding", true},
                                           {"sampler.bucket_batches", 29},
                                           {"eval.every_micro_batches", 91},
                                           {"loss.z_loss", 0.89},
                                           {"model.norm_kind", "rms"},
                                           {"optimizer.no_decay", "*.bias"},
                                           {"data.certainty", 0.83},
                                           {"scheduled_sampling.share", 0.85},
                                           {"scheduled_sampling.ramp_steps", 87},
                                           {"model.dtype", "bf16"},
                                           {"optimizer.master_weights", "none"},
                                           {"eval.free_running", true}});
  EXPECT_EQ(text.model.dropout, 0.81);
  EXPECT_EQ(text.model.dtype, ModelDtype::kBf16);
  EXPECT_EQ(text.optimizer.master_weights, Masters::kNone);
  EXPECT_TRUE(text.model.tied_embeddings);
  EXPECT_EQ(text.data.document_tokens, 13);
  EXPECT_TRUE(text.loader_trim_padding);
  EXPECT_EQ(text.sampler_bucket_batches, 29);
  EXPECT_FALSE(text.data.packing);
  EXPECT_TRUE(ParseRecipe({{"model.kind", "gpt"},
                           {"data.kind", "markov"},
                           {"data.document_tokens", 13},
                           {"data.packing", true}})
                  .data.packing);
  EXPECT_EQ(text.eval_every_micro_batches, 91);
  EXPECT_EQ(text.model.loss.z_loss, 0.89);
  EXPECT_EQ(text.model.norm_kind, NormKind::kRms);
  EXPECT_EQ(text.optimizer.no_decay, "*.bias");
  EXPECT_EQ(text.data.certainty, 0.83);
  EXPECT_EQ(text.scheduled_sampling.share, 0.85);
  EXPECT_EQ(text.scheduled_sampling.ramp_steps, 87);
  EXPECT_TRUE(text.eval_free_running);
  EXPECT_TRUE(ParseRecipe({{"parallel.overlap", true}}).parallel_overlap);
  EXPECT_EQ(ParseRecipe({{"parallel.reduce_dtype", "bf16"}}).parallel_sent, SentDtype::kBf16);
  EXPECT_EQ(recipe.loader_workers, 3);
  EXPECT_EQ(recipe.loader_prefetch, 5);
  EXPECT_TRUE(recipe.loader_cache);
  EXPECT_EQ(recipe.model.lora_rank, 3);
  EXPECT_TRUE(recipe.model.batch_norm);
  EXPECT_EQ(recipe.model.positions, Positions::kRotary);
  EXPECT_EQ(recipe.model.rotary_scale, 0.79);
  EXPECT_EQ(recipe.data.lag, 7);
  EXPECT_EQ(recipe.data.balance, ClassBalance::kResample);
  EXPECT_EQ(recipe.eval_batch_size, 13);
  EXPECT_EQ(recipe.eval_data, EvalData::kTraining);
  EXPECT_EQ(recipe.audit_coverage, OnGaps::kStop);
  EXPECT_EQ(ParseRecipe({{"model.kind", "gpt"}, {"data.kind", "markov"}, {"data.prompt_tokens", 9}})
                .data.prompt_tokens,
            9);
  EXPECT_EQ(ParseRecipe({{"model.kind", "gpt"}, {"data.kind", "markov"}, {"data.prompt_spread", 5}})
                .data.prompt_spread,
            5);
}

TEST(RecipeTest, NamesEveryBadKeyAtOnce) {
  EXPECT_THAT(ErrorOf({{"optimizer.lrr", 1.0}, {"data.seq_len", -1}, {"optimizer.kind", "lion"}}),
              AllOf(HasSubstr("optimizer.lrr"), HasSubstr("data.seq_len"),
                    HasSubstr("optimizer.kind"), Not(HasSubstr("model.kind"))));
}

TEST(RecipeTest, RefusesPartsThatDoNotFitTogether) {
  EXPECT_THAT(ErrorOf({{"model.kind", "gpt"}}), HasSubstr("gpt needs data.kind markov or text"));
  EXPECT_THAT(ErrorOf({{"data.kind", "markov"}}), HasSubstr("mlp needs data.kind features"));
  EXPECT_THAT(ErrorOf({{"model.kind", "resnet"}}), HasSubstr("model.kind"));
  for (const auto& [key, value] : Recipe{{"parallel.init_sync", true},
                                         {"parallel.on_desync", "broadcast"},
                                         {"optimizer.master_weights", "fp32"}}) {
    EXPECT_THAT(ErrorOf({{"parallel.zero_stage", 1}, {key, value}}),
                HasSubstr("parallel.zero_stage"))
        << key;
  }
  for (const auto& [key, value] : Recipe{{"parallel.overlap", true},
                                         {"parallel.average_every", 2},
                                         {"parallel.check_every", 2},
                                         {"early_stop.patience", 2},
                                         {"diagnose.nonfinite", true},
                                         {"sampler.uneven", "join"}}) {
    Recipe divided = {{"parallel.zero_stage", 2}, {"diagnose.nonfinite", false}};
    divided[key] = value;
    ParseRecipe(divided);
    divided["parallel.zero_stage"] = 3;
    EXPECT_THAT(ErrorOf(divided), AllOf(HasSubstr("parallel.zero_stage"), HasSubstr(key)));
  }
  for (const auto& [key, value] :
       Recipe{{"finetune.consolidation", 0.5}, {"audit.repeat_every", 2}, {"cuda_graphs", true}}) {
    EXPECT_EQ(ParseRecipe({{"parallel.zero_stage", 1}, {key, value}}).parallel_zero_stage, 1);
    EXPECT_THAT(ErrorOf({{"parallel.zero_stage", 2}, {key, value}}),
                AllOf(HasSubstr("parallel.zero_stage"), HasSubstr(key)));
  }
  EXPECT_THAT(ErrorOf({{"loss.per_sequence", true}}), HasSubstr("loss.per_sequence"));
  EXPECT_THAT(ErrorOf({{"loss.form", "log_of_softmax"}, {"loss.label_smoothing", 0.1}}),
              HasSubstr("loss.label_smoothing"));
  EXPECT_THAT(ErrorOf({{"eval.free_running", true}}), HasSubstr("eval.free_running"));
  EXPECT_THAT(ErrorOf({{"scheduled_sampling.share", 0.5}}), HasSubstr("scheduled_sampling.share"));
  EXPECT_THAT(ErrorOf({{"data.document_tokens", 9}}), HasSubstr("data.document_tokens"));
  EXPECT_THAT(ErrorOf({{"model.kind", "gpt"},
                       {"data.kind", "markov"},
                       {"data.prompt_tokens", 5},
                       {"data.document_tokens", 9}}),
              HasSubstr("data.document_tokens"));
  EXPECT_THAT(ErrorOf({{"model.kind", "gpt"}, {"data.kind", "markov"}, {"data.packing", true}}),
              HasSubstr("data.packing"));
  EXPECT_THAT(ErrorOf({{"model.kind", "rnn"},
                       {"data.kind", "markov"},
                       {"data.document_tokens", 9},
                       {"data.packing", true}}),
              HasSubstr("data.packing"));
  EXPECT_THAT(ErrorOf({{"loader.trim_padding", true}}), HasSubstr("loader.trim_padding"));
  EXPECT_THAT(ErrorOf({{"sampler.bucket_batches", 4}, {"sampler.shuffle", false}}),
              HasSubstr("sampler.bucket_batches"));
  EXPECT_THAT(ErrorOf({{"schedule.restart_step", 5}}), HasSubstr("schedule.restart_step"));
  EXPECT_THAT(ErrorOf({{"model.kind", "gpt"}, {"data.kind", "text"}, {"data.standardise", true}}),
              HasSubstr("data.standardise"));
  EXPECT_THAT(ErrorOf({{"model.kind", "gpt"}, {"data.kind", "text"}, {"model.heads", 5}}),
              HasSubstr("model.heads"));
}

TEST(RecipeTest, MastersAreKeptOf16BitsOrWhereAskedFor) {
  const auto keeps = [](const char* dtype, const char* masters) {
    return KeepsMasters(ParseRecipe({{"model.kind", "gpt"},
                                     {"data.kind", "markov"},
                                     {"model.dtype", dtype},
                                     {"optimizer.master_weights", masters}}));
  };
  EXPECT_TRUE(keeps("bf16", "auto"));
  EXPECT_FALSE(keeps("fp32", "auto"));
  EXPECT_TRUE(keeps("fp32", "fp32"));
  EXPECT_FALSE(keeps("bf16", "none"));
  EXPECT_THAT(ErrorOf({{"model.dtype", "bf16"}}), HasSubstr("model.dtype"));
  EXPECT_THAT(ErrorOf({{"optimizer.master_weights", "fp32"}, {"parallel.average_every", 2}}),
              HasSubstr("parallel.average_every"));
}

TEST(RecipeTest, AnUpdateInTheBackwardPassRefusesWhatNeedsAllGradients) {
  const Recipe plain = {{"optimizer.in_backward", true}, {"diagnose.nonfinite", false}};
  EXPECT_TRUE(ParseRecipe(plain).optimizer.in_backward);
  for (const Recipe& one :
       {Recipe{{"optimizer.clip_norm", 1.0}}, Recipe{{"accumulation", 2}},
        Recipe{{"parallel.ranks", 2}}, Recipe{{"scaler.kind", "static"}},
        Recipe{{"audit.coverage", "report"}}, Recipe{{"diagnose.nonfinite", true}}}) {
    Recipe recipe = one;
    recipe.insert(plain.begin(), plain.end());
    EXPECT_THAT(ErrorOf(recipe), HasSubstr("optimizer.in_backward")) << one.begin()->first;
  }
}

TEST(RecipeTest, ElasticCheckpointsNeedOneOrderOfAllSamples) {
  EXPECT_THAT(ErrorOf({{"checkpoint.elastic", true}}), HasSubstr("sampler.deal_out"));
  EXPECT_EQ(ErrorOf({{"checkpoint.elastic", true}, {"sampler.deal_out", true}}), "");
  EXPECT_THAT(ErrorOf({{"sampler.deal_out", true}, {"sampler.uneven", "join"}}),
              HasSubstr("sampler.uneven"));
}

TEST(RecipeTest, OtherRanksHaveTheSameSamplesInAStep) {
  TrainingRecipe recipe;
  recipe.parallel_ranks = 4;
  recipe.accumulation = 2;
  recipe.data.batch_size = 6;
  const auto spread = [&](int ranks) {
    TrainingRecipe other = recipe;
    SpreadOver(other, ranks);
    EXPECT_EQ(other.parallel_ranks, ranks);
    EXPECT_EQ(other.eval_batches * other.eval_batch_size * ranks, 2 * 6 * 4);
    return std::pair(other.accumulation, other.data.batch_size);
  };
  EXPECT_EQ(spread(2), (std::pair<std::int64_t, std::int64_t>(4, 6)));
  EXPECT_EQ(spread(1), (std::pair<std::int64_t, std::int64_t>(8, 6)));
  EXPECT_EQ(spread(8), (std::pair<std::int64_t, std::int64_t>(1, 6)));
  EXPECT_EQ(spread(16), (std::pair<std::int64_t, std::int64_t>(1, 3)));
  EXPECT_EQ(spread(3), (std::pair<std::int64_t, std::int64_t>(1, 16)));
  EXPECT_THROW(spread(5), RecipeError);
}

TEST(RecipeTest, LeavesTheSupervisorsKeysToTheHarness) {
  EXPECT_EQ(ErrorOf({{"supervisor.max_restarts", 2}}), "");
  EXPECT_NE(ErrorOf({{"supervision", 2}}), "");
}

TEST(RecipeTest, GlobsAreSeparatedByCommas) {
  EXPECT_TRUE(AnyGlobMatches("*", "head.weight"));
  EXPECT_TRUE(AnyGlobMatches("embed.*, head.*", "head.weight"));
  EXPECT_FALSE(AnyGlobMatches("embed.*, head.*", "norm.weight"));
  EXPECT_FALSE(AnyGlobMatches("", "head.weight"));
  EXPECT_FALSE(AnyGlobMatches(" , ", "head.weight"));
}

TEST(VocabularyTest, NamesAreUniqueAndExplained) {
  const TargetDescription description = DescribeTrainer({});
  std::set<std::string> names;
  for (const SignalInfo& signal : description.signals) {
    EXPECT_TRUE(names.insert(signal.name).second) << signal.name;
    EXPECT_NE(signal.doc, "") << signal.name;
  }
  for (const EventInfo& event : description.events) {
    EXPECT_TRUE(names.insert("event " + event.name).second) << event.name;
    EXPECT_NE(event.doc, "") << event.name;
  }
  const TargetDescription again = DescriptionFromJson(ToJson(description));
  EXPECT_EQ(ToJson(again), ToJson(description));
}

}  // namespace
}  // namespace trainwreck
