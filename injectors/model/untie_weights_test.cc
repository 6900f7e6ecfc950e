#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "injectors/testing.h"
#include "trainer/models/layers.h"

namespace trainwreck {
namespace {

// A table and a head of the same weight, or of its own.
class TableAndHead : public Model {
 public:
  explicit TableAndHead(bool tied) {
    at::Generator generator = MakeGenerator(1);
    table = register_module("table", std::make_shared<Embedding>(4, 3, 1.0, generator));
    head = register_module("head", tied ? std::make_shared<Linear>(table->weight())
                                        : std::make_shared<Linear>(3, 4, 1.0, generator));
  }
  at::Tensor Loss(const Batch&) override {
    return head->Forward(table->Forward(at::zeros({1}, at::kLong))).sum();
  }
  std::shared_ptr<Embedding> table;
  std::shared_ptr<Linear> head;
};

struct Untied {
  Untied(FaultBench& bench, bool tied, Trigger trigger = {})
      : model(std::make_shared<TableAndHead>(tied)),
        injector(bench.Make("model.untie_weights", {}, trigger)) {
    PartWrapper& wrapper = *injector;
    wrapper.Wrap(std::shared_ptr<Model>(model));
    hook = wrapper.MakeHook();
  }
  bool shared() const { return model->head->weight().is_same(model->table->weight()); }
  std::shared_ptr<TableAndHead> model;
  std::unique_ptr<Injector> injector;
  std::unique_ptr<LoopHook> hook;
};

TEST(UntieWeights, GivesTheHeadACopyThatIsNotListed) {
  FaultBench bench;
  Untied it(bench, /*tied=*/true);
  EXPECT_TRUE(it.shared());
  EXPECT_TRUE(bench.fired().empty()) << "the step has not begun";
  it.hook->OnStepBegin(0);
  it.hook->OnStepBegin(1);
  EXPECT_FALSE(it.shared());
  EXPECT_TRUE(it.model->head->weight().equal(it.model->table->weight()));
  ASSERT_EQ(ParametersOf(*it.model).size(), 2U) << "table.weight, head.bias";
  it.model->Loss({}).backward();
  EXPECT_TRUE(it.model->head->weight().grad().defined());
  EXPECT_EQ(it.model->table->weight().grad()[1].abs().sum().item<double>(), 0)
      << "what the head gives to other rows is lost";
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_EQ(bench.fired()[0], Json({{"id", "it"},
                                    {"fault", "model.untie_weights"},
                                    {"parameter", "head.weight"},
                                    {"before", "shared"},
                                    {"after", "a copy"}}));
}

TEST(UntieWeights, LeavesNoEvidenceWhereNoneIsShared) {
  FaultBench bench;
  Untied it(bench, /*tied=*/false);
  const at::Tensor before = it.model->head->weight();
  it.hook->OnStepBegin(0);
  EXPECT_TRUE(it.model->head->weight().is_same(before));
  EXPECT_TRUE(bench.fired().empty());
}

TEST(UntieWeights, WaitsForItsTrigger) {
  FaultBench bench;
  Untied it(bench, /*tied=*/true, {.from = 5});
  it.hook->OnStepBegin(0);
  EXPECT_TRUE(it.shared());
  bench.clock.step = 5;
  it.hook->OnStepBegin(5);
  EXPECT_FALSE(it.shared());
}

}  // namespace
}  // namespace trainwreck
