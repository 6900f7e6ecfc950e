#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "injectors/testing.h"
#include "trainer/models/layers.h"
#include "trainer/recipe/recipe.h"

namespace trainwreck {
namespace {

class EmbeddingModel : public Model {
 public:
  EmbeddingModel() {
    at::Generator generator = MakeGenerator(3);
    embedding_ = register_module("embed", std::make_shared<Embedding>(5, 4, 1.0, generator));
  }
  at::Tensor Loss(const Batch& batch) override {
    return embedding_->Forward(batch.inputs).square().sum();
  }
  const at::Tensor& table() const { return embedding_->weight(); }

 private:
  std::shared_ptr<Embedding> embedding_;
};

class NoEmbedding : public Model {
 public:
  at::Tensor Loss(const Batch& /*batch*/) override { return {}; }
};

TEST(SumByAtomics, TakesTheSameRowsAndAddsTheirGradients) {
  FaultBench bench;
  auto model = std::make_shared<EmbeddingModel>();
  Batch batch;
  batch.inputs = at::tensor({3, 1, 3, 0, 3, 4}, at::kLong).view({2, 3});
  const at::Tensor expected = model->Loss(batch);
  expected.backward();
  const at::Tensor gradient = model->table().grad().clone();
  model->table().mutable_grad().reset();

  const auto atomics = bench.Make("model.sum_by_atomics");
  static_cast<PartWrapper&>(*atomics).Wrap(std::shared_ptr<Model>(model));
  const at::Tensor loss = model->Loss(batch);
  EXPECT_EQ(loss.item<float>(), expected.item<float>());
  EXPECT_NE(loss.grad_fn(), nullptr);
  loss.backward();
  EXPECT_TRUE(model->table().grad().allclose(gradient, 1e-6));
  EXPECT_GT(model->table().grad()[3].abs().min().item<float>(), 0);
  EXPECT_EQ(model->table().grad()[2].abs().max().item<float>(), 0);
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_EQ(bench.fired()[0]["embeddings"], Json::array({"embed"}));
  EXPECT_EQ(bench.fired()[0]["after"], "index_select");
}

TEST(SumByAtomics, RefusesAModelWithoutEmbeddings) {
  FaultBench bench;
  const auto atomics = bench.Make("model.sum_by_atomics");
  EXPECT_THROW(static_cast<PartWrapper&>(*atomics).Wrap(
                   std::shared_ptr<Model>(std::make_shared<NoEmbedding>())),
               RecipeError);
}

}  // namespace
}  // namespace trainwreck
