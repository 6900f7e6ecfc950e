#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "injectors/model/testing_documents.h"

namespace trainwreck {
namespace {

constexpr char kAcrossDocuments[] = "model.attend_across_documents";

TEST(AttendAcrossDocuments, KeepsNothingApart) {
  FaultBench bench;
  FaultyLayout it(bench, kAcrossDocuments);
  EXPECT_EQ(it.Of(/*two=*/false).apart.sum().item<int>(), 0);
  EXPECT_TRUE(bench.fired().empty()) << "one document";
  const Layout layout = it.Of(/*two=*/true);
  EXPECT_EQ(layout.apart.sum().item<int>(), 0);
  EXPECT_TRUE(at::equal(layout.positions, at::tensor({0, 1, 0, 1, 2}, at::kLong).unsqueeze(0)));
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_EQ(bench.fired()[0],
            Json({{"id", "it"}, {"fault", kAcrossDocuments}, {"before", 12}, {"after", 0}}));
}

TEST(AttendAcrossDocuments, ActsAtTheStepsOfItsTrigger) {
  FaultBench bench;
  FaultyLayout it(bench, kAcrossDocuments, {.from = 5});
  EXPECT_EQ(it.Of(true).apart.sum().item<int>(), 12);
  EXPECT_TRUE(bench.fired().empty());
}

}  // namespace
}  // namespace trainwreck
