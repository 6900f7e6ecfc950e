// Keys of where data come from: sources, the text and its tokenizer, and another task.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainer/recipe/recipe.h"

namespace trainwreck {
namespace {

using testing::HasSubstr;

std::string ErrorOf(const Recipe& recipe) {
  try {
    ParseRecipe(recipe);
  } catch (const RecipeError& error) {
    return error.what();
  }
  return "";
}

TEST(ParseRecipe, ReadsTheKeysOfSourcesAndTheirOverlap) {
  const TrainingRecipe recipe = ParseRecipe({{"data.source", 3},
                                             {"data.mix_source", 5},
                                             {"data.mix_share", 0.7},
                                             {"data.drop_features", "9,11"},
                                             {"data.duplicates", "drop_near"},
                                             {"audit.overlap", "stop"},
                                             {"audit.columns", "report"},
                                             {"eval.source", 13},
                                             {"early_stop.patience", 15}});
  EXPECT_EQ(recipe.data.source, 3);
  EXPECT_EQ(recipe.data.mix_source, 5);
  EXPECT_EQ(recipe.data.mix_share, 0.7);
  EXPECT_EQ(recipe.data.drop_features, "9,11");
  EXPECT_EQ(recipe.data.duplicates, Duplicates::kDropNear);
  EXPECT_EQ(recipe.audit_overlap, OnGaps::kStop);
  EXPECT_EQ(recipe.audit_columns, OnGaps::kReport);
  EXPECT_EQ(recipe.eval_source, 13);
  EXPECT_EQ(recipe.early_stop_patience, 15);
}

TEST(ParseRecipe, RefusesSourcesOfTokensAndEarlyStopsOnTrainingData) {
  const Recipe tokens = {{"model.kind", "gpt"}, {"data.kind", "markov"}};
  for (const auto& [key, value] : Recipe{{"data.source", 1},
                                         {"data.mix_share", 0.5},
                                         {"data.drop_features", "1"},
                                         {"audit.columns", "stop"},
                                         {"eval.source", 1},
                                         {"finetune.source", 1},
                                         {"finetune.replay", 0.5},
                                         {"finetune.consolidation", 1}}) {
    Recipe recipe = tokens;
    recipe[key] = value;
    EXPECT_THAT(ErrorOf(recipe), HasSubstr("only of features")) << key;
  }
  EXPECT_THAT(ErrorOf({{"early_stop.patience", 2}, {"eval.data", "training"}}),
              HasSubstr("needs eval.data held_out"));
  EXPECT_THAT(ErrorOf({{"optimizer.in_backward", true},
                       {"diagnose.nonfinite", false},
                       {"finetune.consolidation", 1}}),
              HasSubstr("not with optimizer.in_backward"));
}

TEST(FineTune, EvaluatesAndReplaysTheTaskBefore) {
  TrainingRecipe recipe = ParseRecipe({{"optimizer.lr", 0.5},
                                       {"data.source", 2},
                                       {"finetune.phase", "second"},
                                       {"finetune.source", 4},
                                       {"finetune.lr_ratio", 0.25},
                                       {"finetune.trainable", "head.*"},
                                       {"finetune.replay", 0.125},
                                       {"finetune.consolidation", 8}});
  EXPECT_EQ(recipe.finetune.phase, "second");
  EXPECT_EQ(recipe.finetune.consolidation, 8);
  FineTune(recipe);
  EXPECT_EQ(recipe.data.source, 4);
  EXPECT_EQ(recipe.data.mix_source, 2);
  EXPECT_EQ(recipe.data.mix_share, 0.125);
  EXPECT_EQ(recipe.eval_source, 2);
  EXPECT_EQ(recipe.optimizer.lr, 0.125);
  EXPECT_EQ(recipe.model.trainable, "head.*");
}

TEST(FineTune, OfTokensIsTheSameTaskWithAnotherRate) {
  Recipe recipe = {{"model.kind", "gpt"},
                   {"data.kind", "markov"},
                   {"optimizer.lr", 0.5},
                   {"finetune.phase", "second"},
                   {"finetune.lr_ratio", 0.5}};
  TrainingRecipe second = ParseRecipe(recipe);
  FineTune(second);
  EXPECT_EQ(second.optimizer.lr, 0.25);
  EXPECT_EQ(second.data.mix_share, 0);
}

TEST(ParseRecipe, ReadsTheKeyOfSegments) {
  EXPECT_FALSE(ParseRecipe({}).memory_expandable_segments);
  EXPECT_TRUE(ParseRecipe({{"memory.expandable_segments", true}}).memory_expandable_segments);
}

TEST(ParseRecipe, ReadsTheKeyOfTf32BesideThatOfPrecision) {
  EXPECT_FALSE(ParseRecipe({}).precision_tf32);
  const TrainingRecipe recipe = ParseRecipe({{"precision", "bf16"}, {"precision.tf32", true}});
  EXPECT_TRUE(recipe.precision_tf32);
  EXPECT_EQ(recipe.precision, Precision::kBf16);
}

TEST(ParseRecipe, ReadsTheKeysOfGraphsAndRepetitionAndWhatTheyExclude) {
  EXPECT_FALSE(ParseRecipe({}).cuda_graphs);
  EXPECT_EQ(ParseRecipe({}).audit_repeat_every, 0);
  const TrainingRecipe recipe = ParseRecipe(
      {{"cuda_graphs", true}, {"audit.repeat_every", 7}, {"audit.on_difference", "vote"}});
  EXPECT_TRUE(recipe.cuda_graphs);
  EXPECT_EQ(recipe.audit_repeat_every, 7);
  EXPECT_EQ(recipe.audit_on_difference, OnDifference::kVote);
  const Recipe in_backward = {{"optimizer.in_backward", true}, {"diagnose.nonfinite", false}};
  const Recipe overlap = {{"parallel.ranks", 2}, {"parallel.overlap", true}};
  const Recipe sampled = {
      {"model.kind", "gpt"}, {"data.kind", "markov"}, {"scheduled_sampling.share", 0.5}};
  for (Recipe one : {in_backward, overlap, sampled}) {
    one["cuda_graphs"] = true;
    EXPECT_THAT(ErrorOf(one), HasSubstr("cuda_graphs: not with"));
  }
  for (Recipe one : {in_backward, overlap}) {
    one["audit.repeat_every"] = 1;
    EXPECT_THAT(ErrorOf(one), HasSubstr("audit.repeat_every: not with"));
  }
}

TEST(ParseRecipe, ReadsTheKeysOfAttentionAndItsSums) {
  EXPECT_EQ(ParseRecipe({}).model.attention_backend, AttentionBackend::kAuto);
  EXPECT_FALSE(ParseRecipe({}).precision_reduced_sums);
  const TrainingRecipe recipe =
      ParseRecipe({{"model.attention_backend", "cudnn"}, {"precision.reduced_sums", true}});
  EXPECT_EQ(recipe.model.attention_backend, AttentionBackend::kCudnn);
  EXPECT_TRUE(recipe.precision_reduced_sums);
  EXPECT_FALSE(recipe.precision_tf32);
}

TEST(ParseRecipe, ReadsTheKeysOfTokenizers) {
  const TrainingRecipe recipe = ParseRecipe({{"model.kind", "gpt"},
                                             {"data.kind", "text"},
                                             {"data.merges", 77},
                                             {"checkpoint.tokenizer", "restore"}});
  EXPECT_EQ(recipe.data.merges, 77);
  EXPECT_EQ(recipe.checkpoint_tokenizer, OtherTokenizer::kRestore);
  EXPECT_THAT(ErrorOf({{"data.merges", 4}}), HasSubstr("data.merges: only of text"));
}

}  // namespace
}  // namespace trainwreck
