#include "harness/bisect/failure.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace trainwreck {
namespace {

FailureSizes SizesOf(const std::vector<double>& amounts, const std::string& unit) {
  FailureSizes sizes;
  for (double amount : amounts) sizes.Add(FailureSize{amount, unit});
  return sizes;
}

TEST(FailureSizes, ExcludeWhatDiffersByFar) {
  const FailureSizes plain = SizesOf({10, 12}, "plain");
  for (double alike : {1.3, 10.0, 11.0, 95.0}) {
    EXPECT_FALSE(plain.Excludes(FailureSize{alike, "plain"})) << alike;
  }
  for (double other : {1.2, 97.0, 1e30}) {
    EXPECT_TRUE(plain.Excludes(FailureSize{other, "plain"})) << other;
  }
  // Of octaves, the difference counts.
  const FailureSizes octaves = SizesOf({10, 12}, "octaves");
  for (double alike : {7.1, 14.9}) EXPECT_FALSE(octaves.Excludes(FailureSize{alike, "octaves"}));
  for (double other : {6.9, 15.1}) EXPECT_TRUE(octaves.Excludes(FailureSize{other, "octaves"}));
}

TEST(FailureSizes, TellNothingWhereTheBadEndDisagrees) {
  // One says nothing yet.
  EXPECT_FALSE(SizesOf({1}, "plain").Excludes(FailureSize{1e9, "plain"}));
  EXPECT_TRUE(SizesOf({1}, "plain").LeavesOpen(FailureSize{1e9, "plain"}));
  EXPECT_FALSE(SizesOf({1}, "plain").LeavesOpen(FailureSize{2, "plain"}));
  EXPECT_FALSE(SizesOf({1, 1}, "plain").LeavesOpen(FailureSize{1e9, "plain"}));
  EXPECT_FALSE(SizesOf({1, 9}, "plain").Excludes(FailureSize{1e9, "plain"}));
  EXPECT_FALSE(SizesOf({1, 1}, "plain").Excludes(std::nullopt));
  EXPECT_FALSE(SizesOf({1, 1}, "plain").Excludes(FailureSize{1e9, "steps"}));
}

TEST(FailureSizes, MayBeInfinite) {
  const double infinite = std::numeric_limits<double>::infinity();
  for (const char* unit : {"plain", "octaves"}) {
    const FailureSizes sizes = SizesOf({infinite, infinite}, unit);
    EXPECT_FALSE(sizes.Excludes(FailureSize{infinite, unit}));
    EXPECT_TRUE(sizes.Excludes(FailureSize{1e30, unit}));
    EXPECT_FALSE(SizesOf({1, infinite}, unit).Excludes(FailureSize{1e30, unit}));
  }
}

TEST(FailureSizes, AreOfOneKind) {
  const Failure small = {"late", "learns", "control", FailureSize{1, "octaves"}};
  const Failure large = {"late", "learns", "control", FailureSize{9, "octaves"}};
  EXPECT_EQ(small, large);
  EXPECT_NE(small, (Failure{"late", "learns", "fault", FailureSize{1, "octaves"}}));
  const std::vector<Failure> read = FailuresFromJson(ToJson({large, {"crash", "", ""}}));
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(read[0].size->Text(), "9 octaves");
  EXPECT_FALSE(read[1].size);
  // As earlier logs have it.
  EXPECT_EQ(FailuresFromJson(Json::parse(R"([["late", "learns", "control"]])"))[0], small);
}

}  // namespace
}  // namespace trainwreck
