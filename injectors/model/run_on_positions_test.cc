#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "injectors/model/testing_documents.h"

namespace trainwreck {
namespace {

constexpr char kRunOnPositions[] = "model.run_on_positions";

TEST(RunOnPositions, CountsAlongTheRow) {
  FaultBench bench;
  FaultyLayout it(bench, kRunOnPositions);
  const at::Tensor along = at::tensor({0, 1, 2, 3, 4}, at::kLong).unsqueeze(0);
  EXPECT_TRUE(at::equal(it.Of(/*two=*/false).positions, along));
  EXPECT_TRUE(bench.fired().empty()) << "one document";
  const Layout layout = it.Of(/*two=*/true);
  EXPECT_TRUE(at::equal(layout.positions, along));
  EXPECT_EQ(layout.apart.sum().item<int>(), 12);
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_EQ(bench.fired()[0],
            Json({{"id", "it"}, {"fault", kRunOnPositions}, {"before", 2}, {"after", 4}}));
}

TEST(RunOnPositions, ActsAtTheStepsOfItsTrigger) {
  FaultBench bench;
  FaultyLayout it(bench, kRunOnPositions, {.from = 5});
  EXPECT_TRUE(
      at::equal(it.Of(true).positions, at::tensor({0, 1, 0, 1, 2}, at::kLong).unsqueeze(0)));
  EXPECT_TRUE(bench.fired().empty());
}

}  // namespace
}  // namespace trainwreck
