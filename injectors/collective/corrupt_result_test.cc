#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <set>

#include "injectors/collective/testing_group.h"
#include "injectors/testing.h"
#include "trainer/recipe/recipe.h"

namespace trainwreck {
namespace {

// What an all-reduce of gradients gives, of a tensor that held 1 everywhere.
at::Tensor Reduce(FaultBench& bench, Injector& injector, at::ScalarType type = at::kFloat) {
  PartWrapper& wrapper = injector;
  int made = 0;
  const auto group = wrapper.Wrap(std::unique_ptr<Communicator>(std::make_unique<FakeGroup>(made)));
  const auto hook = wrapper.MakeHook();
  hook->OnStepBegin(bench.clock.step);
  hook->OnBackwardDone(bench.clock.step);
  at::Tensor tensor = at::full({8}, 1, type);
  group->AllReduce(tensor, Reduction::kSum);
  EXPECT_EQ(made, 1) << "the peers must not wait";
  return tensor;
}

TEST(CollectiveCorruptResult, FlipsABitOfOneElement) {
  FaultBench bench(1, 2);
  const auto corrupt = bench.Make("collective.corrupt_result", {{"bit", 31}});
  const at::Tensor result = Reduce(bench, *corrupt);
  EXPECT_EQ(result.eq(-2).sum().item<int>(), 1);
  EXPECT_EQ(result.eq(2).sum().item<int>(), 7);
  ASSERT_EQ(bench.fired().size(), 1U);
  const Json fired = bench.fired()[0];
  EXPECT_EQ(fired["before"], 2.0);
  EXPECT_EQ(fired["after"], -2.0);
  EXPECT_EQ(fired["changed"], 1);
  EXPECT_EQ(fired["call"], 0);
  EXPECT_EQ(result[fired["index"].get<int>()].item<float>(), -2);
}

TEST(CollectiveCorruptResult, ScalesSetsZeroesAndAddsNoise) {
  FaultBench bench(1, 2);
  const auto all = [&](const char* kind, double value) {
    const auto corrupt = bench.Make("collective.corrupt_result",
                                    {{"kind", kind}, {"elements", 8}, {"value", value}});
    return Reduce(bench, *corrupt);
  };
  EXPECT_TRUE(all("scale", 1.5).eq(3).all().item<bool>());
  EXPECT_TRUE(all("set", 7).eq(7).all().item<bool>());
  EXPECT_TRUE(all("zero", 0).eq(0).all().item<bool>());
  const at::Tensor noisy = all("noise", 0.1);
  EXPECT_FALSE(noisy.eq(2).any().item<bool>());
  EXPECT_LT((noisy - 2).abs().max().item<double>(), 0.6001);
}

TEST(CollectiveCorruptResult, OtherSeedsAndStepsTakeOtherElements) {
  FaultBench bench(1, 2);
  const auto corrupt = bench.Make("collective.corrupt_result", {{"bit", 31}});
  std::set<int> places;
  for (bench.clock.step = 0; bench.clock.step < 20; ++bench.clock.step) {
    Reduce(bench, *corrupt);
    places.insert(bench.fired().back()["index"].get<int>());
  }
  EXPECT_GT(places.size(), 3U);
}

TEST(CollectiveCorruptResult, LeavesOtherTypesAloneUnlessTold) {
  FaultBench bench(1, 2);
  const auto corrupt = bench.Make("collective.corrupt_result");
  EXPECT_TRUE(Reduce(bench, *corrupt, at::kDouble).eq(2).all().item<bool>());
  EXPECT_TRUE(bench.fired().empty());
  const auto told = bench.Make("collective.corrupt_result", {{"calls", {0}}});
  EXPECT_THROW(Reduce(bench, *told, at::kDouble), RecipeError);
}

}  // namespace
}  // namespace trainwreck
