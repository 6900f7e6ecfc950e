#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include "injectors/collective/testing_group.h"
#include "injectors/testing.h"

namespace trainwreck {
namespace {

// A step as the loop makes it: the loss in doubles, two buckets of gradients, then an agreement
// and, after the step, a call of something else.
struct Step {
  explicit Step(Injector& injector) {
    PartWrapper& wrapper = injector;
    group = wrapper.Wrap(std::unique_ptr<Communicator>(std::make_unique<FakeGroup>(made)));
    hook = wrapper.MakeHook();
  }

  // The values after the calls, each of a tensor that held 1.
  std::vector<double> Run(int step) {
    std::vector<double> values;
    const auto reduce = [&](at::ScalarType type, Reduction reduction = Reduction::kSum) {
      at::Tensor tensor = at::full({3}, 1, type);
      group->AllReduce(tensor, reduction);
      values.push_back(tensor[0].item<double>());
    };
    hook->OnStepBegin(step);
    hook->OnBackwardDone(step);
    reduce(at::kDouble);
    reduce(at::kFloat);
    reduce(at::kFloat);
    reduce(at::kLong, Reduction::kMin);
    hook->OnStepEnd(step);
    reduce(at::kFloat);
    return values;
  }

  int made = 0;
  std::unique_ptr<Communicator> group;
  std::unique_ptr<LoopHook> hook;
};

using Values = std::vector<double>;

TEST(CollectiveSkip, LeavesOutTheReductionOfGradients) {
  FaultBench bench(1, 2);
  const auto skip = bench.Make("collective.skip", {{"leaves", "own"}});
  Step step(*skip);
  EXPECT_EQ(step.Run(0), (Values{2, 1, 1, 1, 2}));
  EXPECT_EQ(step.made, 3);
  ASSERT_EQ(bench.fired().size(), 1U) << "once in a step";
  EXPECT_EQ(bench.fired()[0], Json({{"id", "it"},
                                    {"fault", "collective.skip"},
                                    {"call", 1},
                                    {"elements", 3},
                                    {"before", "reduced over 2 ranks"},
                                    {"after", "rank 1's own"}}));
  bench.clock.step = 1;
  step.Run(1);
  EXPECT_EQ(bench.fired().size(), 2U);
}

TEST(CollectiveSkip, CanLeaveWhatMakesTheMeanTheRanksOwn) {
  FaultBench bench(1, 2);
  const auto skip = bench.Make("collective.skip");
  EXPECT_EQ(Step(*skip).Run(0), (Values{2, 2, 2, 1, 2}));
}

TEST(CollectiveSkip, CanChooseSingleCalls) {
  FaultBench bench(1, 2);
  const auto skip = bench.Make("collective.skip", {{"calls", {0, 2}}, {"leaves", "own"}});
  Step step(*skip);
  EXPECT_EQ(step.Run(0), (Values{1, 2, 1, 1, 2}));
  EXPECT_EQ(step.Run(0), (Values{1, 2, 1, 1, 2})) << "calls are counted anew in each step";
}

TEST(CollectiveSkip, KeepsToItsTrigger) {
  FaultBench bench(1, 2);
  const auto other_rank = bench.Make("collective.skip", {}, {.ranks = {0}});
  Step step(*other_rank);
  step.Run(0);
  EXPECT_EQ(step.made, 5);
  const auto later = bench.Make("collective.skip", {}, {.from = 2});
  Step late(*later);
  late.Run(0);
  EXPECT_EQ(late.made, 5);
  EXPECT_TRUE(bench.fired().empty());
  bench.clock.step = 2;
  late.Run(2);
  EXPECT_EQ(late.made, 8);
}

}  // namespace
}  // namespace trainwreck
