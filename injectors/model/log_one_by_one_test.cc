#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "injectors/testing.h"
#include "trainer/models/model.h"

namespace trainwreck {
namespace {

class Weighted : public Model {
 public:
  Weighted()
      : head(register_parameter("head", at::zeros({3}))),
        body(register_parameter("body", at::zeros({5}))) {}
  at::Tensor Loss(const Batch& /*batch*/) override { return 3 * head.sum() + body.sum(); }
  at::Tensor head, body;
};

TEST(LogOneByOne, ReadsFourNumbersOfEachGradientAndChangesNone) {
  FaultBench bench;
  const auto model = std::make_shared<Weighted>();
  const auto injector = bench.Make("model.log_one_by_one");
  static_cast<PartWrapper&>(*injector).Wrap(std::shared_ptr<Model>(model));
  const auto hook = injector->MakeHook();
  hook->OnLog(0);
  EXPECT_TRUE(bench.fired().empty()) << "there is no gradient yet";
  model->Loss({}).backward();
  hook->OnLog(1);
  hook->OnLog(2);
  ASSERT_EQ(bench.fired().size(), 2U);
  EXPECT_EQ(bench.fired()[0]["before"], 0);
  EXPECT_EQ(bench.fired()[1]["before"], 8);
  EXPECT_EQ(bench.fired()[1]["after"], 16);
  EXPECT_EQ(model->head.grad().sum().item<double>(), 9);
}

TEST(LogOneByOne, ReadsThoseThatItsGlobsName) {
  FaultBench bench;
  const auto model = std::make_shared<Weighted>();
  const auto injector = bench.Make("model.log_one_by_one", {{"parameters", {"he*"}}}, {.from = 1});
  static_cast<PartWrapper&>(*injector).Wrap(std::shared_ptr<Model>(model));
  const auto hook = injector->MakeHook();
  model->Loss({}).backward();
  hook->OnLog(0);
  bench.clock.step = 1;
  hook->OnLog(1);
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_EQ(bench.fired()[0]["after"], 4);
  EXPECT_EQ(bench.fired()[0]["last"], 3) << "the largest element of the only gradient";
}

}  // namespace
}  // namespace trainwreck
