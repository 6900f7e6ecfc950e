#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "injectors/data/testing_data.h"
#include "injectors/testing.h"
#include "trainer/models/model.h"

namespace trainwreck {
namespace {

class Tables : public Model {
 public:
  explicit Tables(std::int64_t tokens) {
    embed = register_parameter("embed", at::arange(tokens * 2, at::kFloat).view({tokens, 2}));
    body = register_parameter("body", at::arange(3, at::kFloat));
    head = register_parameter("head", at::arange(tokens, at::kFloat));
  }
  at::Tensor Loss(const Batch& batch) override { return head.sum(); }
  at::Tensor embed, body, head;
};

std::shared_ptr<Tables> Renamed(Injector& injector, std::int64_t tokens) {
  auto model = std::make_shared<Tables>(tokens);
  static_cast<PartWrapper&>(injector).Wrap(std::shared_ptr<Model>(model));
  return model;
}

TEST(RenameTokens, NumbersDataAndRowsFromTheOtherEnd) {
  FaultBench bench;
  const auto rename = bench.Make("data.rename_tokens", {{"parameters", {"embed", "head"}}});
  const auto data = Wrapped<SequenceData>(*rename);  // 16 tokens
  const auto model = Renamed(*rename, 16);
  for (int twice = 0; twice < 2; ++twice) {  // the cached tensors stay as they were
    const Sample sample = data->Get(0);
    EXPECT_TRUE(sample.input.equal(at::tensor({15, 14, 13, 12, 11, 10}, at::kLong)));
    EXPECT_TRUE(sample.target.equal(at::tensor({14, 13, 12, 11, 10, 9}, at::kLong)));
  }
  EXPECT_TRUE(model->embed[15].equal(at::tensor({0.0f, 1.0f}))) << "the row of token 0";
  EXPECT_EQ(model->head[3].item<double>(), 12);
  EXPECT_EQ(model->body[2].item<double>(), 2);
  EXPECT_TRUE(model->embed.requires_grad());
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_EQ(bench.fired()[0]["parameters"], Json({"embed", "head"}));
  EXPECT_EQ(bench.fired()[0]["before"], Json({0, 1, 2, 3}));
  EXPECT_EQ(bench.fired()[0]["after"], Json({15, 14, 13, 12}));
}

TEST(RenameTokens, RefusesFeaturesAndOtherParameters) {
  FaultBench bench;
  const auto features = bench.Make("data.rename_tokens");
  EXPECT_THROW(Wrapped<LabelledData>(*features), std::runtime_error);
  const auto body = bench.Make("data.rename_tokens", {{"parameters", {"body"}}});
  Wrapped<SequenceData>(*body);
  EXPECT_THROW(Renamed(*body, 16), std::runtime_error);
}

}  // namespace
}  // namespace trainwreck
