#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include "injectors/collective/testing_calls.h"
#include "injectors/collective/testing_group.h"

namespace trainwreck {
namespace {

TEST(CollectiveSlowLink, MakesAllCallsAsTheyAre) {
  FaultBench bench(1, 2);
  EXPECT_EQ(CallsUnder(bench, "collective.slow_link", {{"mb_per_s", 1e6}}),
            (Calls{"[3] float32", "[4] float32", "[5] float32", "broadcast", "barrier"}));
}

TEST(CollectiveSlowLink, LeavesTheRanksAloneThatTheTriggerDoesNotName) {
  ExpectLeftAloneOnOtherRanks("collective.slow_link");
}

// The waiting time follows from the bytes: those of a ring of two ranks.
TEST(CollectiveSlowLink, TakesAtLeastAsLongAsTheBytesNeed) {
  FaultBench bench(1, 2);
  const auto slow = bench.Make("collective.slow_link", {{"mb_per_s", 0.1}, {"latency_ms", 3.0}});
  int calls = 0;
  const auto group = static_cast<PartWrapper&>(*slow).Wrap(
      std::unique_ptr<Communicator>(std::make_unique<FakeGroup>(calls)));
  at::Tensor tensor = at::full({500}, 1.5);
  group->AllReduce(tensor, Reduction::kSum);
  group->AllReduce(tensor, Reduction::kSum);
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(tensor[0].item<float>(), 6) << "the values are not touched";
  ASSERT_EQ(bench.fired().size(), 1U);
  const Json fired = bench.fired()[0];
  EXPECT_EQ(fired["bytes"], 2000);
  EXPECT_GE(fired["after"].get<double>(), fired["before"].get<double>() + 0.023);
}

}  // namespace
}  // namespace trainwreck
