#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

#include "injectors/testing.h"
#include "trainer/models/model.h"

namespace trainwreck {
namespace {

class Table : public Model {
 public:
  Table() : rows(register_parameter("rows", at::ones({3, 2}))) {}
  at::Tensor Loss(const Batch& batch) override { return rows.sum(); }
  at::Tensor rows;
};

TEST(PaddingRow, GivesARowNoGradient) {
  FaultBench bench;
  const auto injector = bench.Make("model.padding_row", {{"parameter", "rows"}, {"row", 1}});
  PartWrapper& wrapper = *injector;
  auto model = std::make_shared<Table>();
  wrapper.Wrap(std::shared_ptr<Model>(model));
  const auto hook = wrapper.MakeHook();
  hook->OnBackwardDone(0);  // no gradient yet
  for (int twice = 0; twice < 2; ++twice) {
    model->rows.mutable_grad().reset();
    model->Loss({}).backward();
    hook->OnBackwardDone(0);
    EXPECT_TRUE(model->rows.grad().sum(1).equal(at::tensor({2.0f, 0.0f, 2.0f})));
  }
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_NEAR(bench.fired()[0]["before"].get<double>(), std::sqrt(2.0), 1e-6);
  EXPECT_EQ(bench.fired()[0]["after"], 0.0);
}

TEST(PaddingRow, RefusesARowThatIsNotThere) {
  FaultBench bench;
  const auto injector = bench.Make("model.padding_row", {{"parameter", "rows"}, {"row", 3}});
  EXPECT_THROW(
      static_cast<PartWrapper&>(*injector).Wrap(std::shared_ptr<Model>(std::make_shared<Table>())),
      std::runtime_error);
}

}  // namespace
}  // namespace trainwreck
