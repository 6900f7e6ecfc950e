#include "trainer/flops.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/record_function.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "trainer/models/model.h"
#include "trainer/models/models.h"
#include "trainer/test_run.h"

namespace trainwreck {
namespace {

using ::testing::Each;

double g_counted = 0;

// Of a product of two matrices: two for each element of the left one and each column of the right.
std::unique_ptr<at::ObserverContext> CountProduct(const at::RecordFunction& op) {
  const std::string name = op.name();
  const bool adds = name == "aten::addmm";
  if (!adds && name != "aten::mm" && name != "aten::bmm") return nullptr;
  const auto factors = op.inputs().slice(adds ? 1 : 0, 2);
  const at::Tensor left = factors[0].toTensor(), right = factors[1].toTensor();
  g_counted += 2.0 * static_cast<double>(left.numel() * right.size(-1));
  return nullptr;
}

// Of all products of matrices in a forward and backward pass, by the shapes of their factors.
double CountedFlops(Model& model, const Batch& batch) {
  g_counted = 0;
  const auto handle = at::addThreadLocalCallback(at::RecordFunctionCallback(CountProduct)
                                                     .needsInputs(true)
                                                     .scopes({at::RecordScope::FUNCTION}));
  model.Loss(batch).backward();
  at::removeCallback(handle);
  return g_counted;
}

Batch Tokens(std::int64_t rows, std::int64_t length, std::int64_t vocab) {
  Batch batch;
  batch.inputs = at::arange(rows * length).remainder(vocab).view({rows, length});
  batch.targets = batch.inputs;
  batch.weights = at::ones({rows, length});
  batch.ids.resize(rows);
  return batch;
}

TEST(ModelFlopsTest, AreThoseOfTheProductsThatATransformerMakes) {
  for (const bool tied : {false, true}) {
    ModelRecipe recipe;
    recipe.layers = 3;
    recipe.width = 32;
    recipe.heads = 4;
    recipe.attention = AttentionForm::kExplicit;
    recipe.tied_embeddings = tied;
    const auto model = MakeGpt(recipe, /*vocab=*/50, /*seq_len=*/12, /*seed=*/1);
    const Batch batch = Tokens(/*rows=*/5, /*length=*/12, /*vocab=*/50);
    EXPECT_EQ(ModelFlops(*model, {batch}), CountedFlops(*model, batch)) << tied;
    EXPECT_EQ(ModelFlops(*model, {batch, batch}), 2 * ModelFlops(*model, {batch}));
  }
}

TEST(ModelFlopsTest, LeaveOutWhatCheckpointingMakesAgain) {
  ModelRecipe recipe;
  recipe.layers = 2;
  recipe.width = 32;
  recipe.heads = 4;
  recipe.attention = AttentionForm::kExplicit;
  const Batch batch = Tokens(5, 12, 50);
  const auto model = MakeGpt(recipe, 50, 12, 1);
  recipe.activation_checkpointing = true;
  const auto recomputing = MakeGpt(recipe, 50, 12, 1);
  EXPECT_EQ(ModelFlops(*recomputing, {batch}), ModelFlops(*model, {batch}));
  EXPECT_GT(CountedFlops(*recomputing, batch), 1.2 * CountedFlops(*model, batch));
}

// The gradient of the first layer's inputs is not computed, though it is counted.
TEST(ModelFlopsTest, OfAnMlpCountEachMatrixThreeTimes) {
  ModelRecipe recipe;
  recipe.layers = 2;
  recipe.width = 16;
  const auto model = MakeMlp(recipe, /*features=*/8, /*classes=*/4, /*seed=*/1);
  Batch batch;
  batch.inputs = at::ones({6, 8});
  batch.targets = at::arange(6).remainder(4);
  batch.weights = at::ones({6});
  batch.ids.resize(6);
  EXPECT_EQ(ModelFlops(*model, {batch}), 3 * 2 * 6 * (8 * 16 + 16 * 16 + 16 * 4));
  EXPECT_EQ(CountedFlops(*model, batch), ModelFlops(*model, {batch}) - 2 * 6 * 8 * 16);
}

// Nothing is multiplied by a state before the first token.
TEST(ModelFlopsTest, OfARecurrentNetCountEachMatrixForEachToken) {
  ModelRecipe recipe;
  recipe.width = 16;
  const auto model = MakeRnn(recipe, /*vocab=*/20, /*seed=*/1);
  const Batch batch = Tokens(3, 7, 20);
  EXPECT_EQ(ModelFlops(*model, {batch}), 3 * 2 * 3 * 7 * (2 * 16 * 16 + 16 * 20));
  EXPECT_EQ(CountedFlops(*model, batch), ModelFlops(*model, {batch}) - 3 * 2 * 3 * 16 * 16);
}

TEST(ModelFlopsTest, AreRecordedWithTheirShareOfThePeakWhereAFormulaAsks) {
  const Recipe recipe = With(Mlp(), {{"steps", 4}, {"model.width", 256}, {"data.batch_size", 128}});
  const Outcome asked = RunOnce(recipe, {"mfu", "model_flops"});
  ASSERT_EQ(asked.Values("mfu").size(), 4u);
  EXPECT_THAT(asked.Values("mfu"), Each(testing::AllOf(testing::Gt(0.001), testing::Lt(1.5))));
  EXPECT_THAT(asked.Values("model_flops"), Each(asked.Values("model_flops").front()));
  for (int step = 0; step < 4; ++step) {
    EXPECT_DOUBLE_EQ(asked.Values("tokens_per_s")[step],
                     asked.Values("tokens")[step] / asked.Values("step_s")[step]);
  }
  const Outcome other = RunOnce(recipe, {"loss"});
  EXPECT_TRUE(other.Values("mfu").empty());
  EXPECT_EQ(other.Values("loss"), asked.Values("loss"));
}

}  // namespace
}  // namespace trainwreck
