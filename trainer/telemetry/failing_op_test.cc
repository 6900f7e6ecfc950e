#include "trainer/telemetry/failing_op.h"

#include <ATen/ops/add.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/custom_function.h>

#include <stdexcept>

namespace trainwreck {
namespace {

TEST(FailingOp, IsTheInnermostAndWhatWasCalled) {
  EXPECT_EQ(LastFailingOp().op, "") << "nobody watches";
  const at::Tensor table = at::ones({4, 2});
  EXPECT_ANY_THROW(at::embedding(table, at::tensor({1, 9}, at::kLong)));
  EXPECT_EQ(LastFailingOp().op, "") << "nobody watches";

  WatchOperations();
  WatchOperations();
  EXPECT_NO_THROW(at::embedding(table, at::tensor({1, 3}, at::kLong)));
  EXPECT_EQ(LastFailingOp().op, "");
  EXPECT_ANY_THROW(at::embedding(table, at::tensor({1, 9}, at::kLong)));
  EXPECT_EQ(LastFailingOp().op, "aten::index_select");
  EXPECT_EQ(LastFailingOp().within, "aten::embedding");
  // An error that was caught does not become part of the next one.
  at::add(table, table);
  EXPECT_ANY_THROW(at::add(table, at::ones({3, 3})));
  EXPECT_EQ(LastFailingOp().op, "aten::add");
  EXPECT_EQ(LastFailingOp().within, "aten::add");
}

struct ThrowInBackward : torch::autograd::Function<ThrowInBackward> {
  static at::Tensor forward(torch::autograd::AutogradContext* /*context*/, const at::Tensor& x) {
    return x.clone();
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* /*context*/,
                                                 const torch::autograd::variable_list& gradients) {
    return {at::add(gradients[0], at::ones({3, 3}))};
  }
};

TEST(FailingOp, NamesTheNodeOfTheBackwardPass) {
  WatchOperations();
  const at::Tensor x = at::ones({2, 2}).requires_grad_();
  const at::Tensor loss = ThrowInBackward::apply(at::mul(x, x)).sum();
  EXPECT_ANY_THROW(loss.backward());
  EXPECT_EQ(LastFailingOp().op, "aten::add");
  EXPECT_NE(LastFailingOp().within.find("ThrowInBackward"), std::string::npos)
      << LastFailingOp().within;
}

}  // namespace
}  // namespace trainwreck
