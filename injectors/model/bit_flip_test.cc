#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <set>

#include "injectors/testing.h"
#include "trainer/models/model.h"

namespace trainwreck {
namespace {

class OneWeight : public Model {
 public:
  OneWeight() { weight = register_parameter("weight", at::full({4, 4}, 1.0f)); }
  at::Tensor Loss(const Batch& batch) override { return weight.sum(); }
  at::Tensor weight;
};

struct Flipping {
  Flipping(FaultBench& bench, std::map<std::string, Json> with, Trigger trigger = {})
      : bench(bench), injector(bench.Make("model.bit_flip", std::move(with), trigger)) {
    PartWrapper& wrapper = *injector;
    wrapper.Wrap(std::shared_ptr<Model>(model));
    hook = wrapper.MakeHook();
  }
  void RunStep(int step) {
    bench.clock.step = step;
    hook->OnStepBegin(step);
  }
  FaultBench& bench;
  std::shared_ptr<OneWeight> model = std::make_shared<OneWeight>();
  std::unique_ptr<Injector> injector;
  std::unique_ptr<LoopHook> hook;
};

TEST(BitFlip, FlipsOneBitOfOneElementAndSaysSo) {
  FaultBench bench;
  Flipping it(bench, {{"parameter", "w*"}, {"element", 5}, {"bit", 31}}, {.at = 2});
  it.RunStep(1);
  EXPECT_TRUE(it.model->weight.eq(1).all().item<bool>());
  it.RunStep(2);
  EXPECT_EQ(it.model->weight[1][1].item<float>(), -1);
  EXPECT_EQ(it.model->weight.eq(1).sum().item<int>(), 15);
  EXPECT_TRUE(it.model->weight.requires_grad());
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_EQ(bench.fired()[0], Json({{"id", "it"},
                                    {"fault", "model.bit_flip"},
                                    {"parameter", "weight"},
                                    {"bit", 31},
                                    {"elements", 1},
                                    {"changed", 1},
                                    {"index", 5},
                                    {"before", 1.0},
                                    {"after", -1.0}}));
}

// After a rollback the same step comes again; the particle does not.
TEST(BitFlip, DoesNotComeBackWithItsStep) {
  FaultBench bench;
  Flipping it(bench, {{"parameter", "weight"}}, {.at = 2});
  for (const int step : {0, 1, 2, 3, 0, 1, 2, 3}) it.RunStep(step);
  EXPECT_EQ(bench.fired().size(), 1U);
}

TEST(BitFlip, TakesAnElementByTheSeed) {
  FaultBench bench;
  Flipping it(bench, {{"parameter", "weight"}});
  for (int step = 0; step < 12; ++step) it.RunStep(step);
  std::set<int> places;
  for (const Json& fired : bench.fired()) places.insert(fired["index"].get<int>());
  EXPECT_GT(places.size(), 3U);
}

TEST(BitFlip, KeepsToItsRank) {
  FaultBench bench(0, 2);
  Flipping it(bench, {{"parameter", "weight"}}, {.ranks = {1}});
  it.RunStep(0);
  EXPECT_TRUE(bench.fired().empty());
}

TEST(BitFlip, WantsAParameterThatExists) {
  FaultBench bench;
  EXPECT_THROW(Flipping(bench, {{"parameter", "tail"}}), std::runtime_error);
}

}  // namespace
}  // namespace trainwreck
