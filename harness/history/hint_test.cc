#include "harness/history/hint.h"

#include <gtest/gtest.h>

#include "harness/history/history_testing.h"

namespace trainwreck {
namespace hint_test {

// A record of this program in an environment with this BLAS.
Record Of(const std::string& program, const std::string& blas) {
  Record record = TestRecord("commit-of-" + program, program);
  for (CaseRecord& one : record.cases) one.environment["blas"] = blas;
  return record;
}

class HintTest : public ::testing::Test {
 protected:
  HintTest() : history_(FreshFile(), RunHistory::Mode::kWrite) {}

  // The hint of comparing A with B, whose run 1 is A.
  std::string HintOf(const Record& b) {
    Record a = *history_.Load(1);
    return HintFor(Compare(a, b, {}), "main", &history_);
  }

  RunHistory history_;

 private:
  static std::string FreshFile() {
    const std::string path = ::testing::TempDir() + "/hint.db";
    for (const char* end : {"", "-wal", "-shm"}) std::remove((path + end).c_str());
    return path;
  }
};

constexpr const char* kAdvice =
    "to tell code from environment, run A's commit in B's environment and compare that";

TEST_F(HintTest, NamesTheRunThatDiffersInOneThingOnly) {
  history_.Add(Of("old", "MKL"));
  const Record b = Of("new", "OpenBLAS");
  EXPECT_EQ(HintOf(b), kAdvice) << "A itself is no witness";
  history_.Add(Of("old", "MKL"));
  history_.Add(b);
  EXPECT_EQ(HintOf(b), kAdvice) << "nor is A once more, nor B";
  history_.Add(Of("old", "OpenBLAS"));
  EXPECT_EQ(HintOf(b), "run 4 has A's program in B's environment: trainwreck compare 4 main");
}

TEST_F(HintTest, AllCasesInCommonHaveToBeOfThatEnvironment) {
  history_.Add(Of("old", "MKL"));
  const Record b = Of("new", "OpenBLAS");
  Record mixed = Of("old", "OpenBLAS");
  mixed.cases[1].environment["blas"] = "MKL";
  history_.Add(mixed);
  EXPECT_EQ(HintOf(b), kAdvice);
  Record other = Of("old", "OpenBLAS");
  for (CaseRecord& one : other.cases) one.name += "-other";
  history_.Add(other);
  EXPECT_EQ(HintOf(b), kAdvice) << "nothing in common";
}

TEST_F(HintTest, WithoutAHistoryItSaysHowToMakeSuchARun) {
  const Comparison comparison = Compare(Of("old", "MKL"), Of("new", "OpenBLAS"), {});
  EXPECT_EQ(HintFor(comparison, "main", nullptr), kAdvice);
}

TEST_F(HintTest, WhereOnlyOneDiffersThereIsNothingToTellApart) {
  history_.Add(Of("old", "MKL"));
  EXPECT_EQ(HintOf(Of("new", "MKL")), "");
  EXPECT_EQ(HintOf(Of("old", "OpenBLAS")), "");
}

TEST_F(HintTest, SeedsAreAskedForWhereAMarginIsUnknown) {
  history_.Add(Of("old", "MKL"));
  Record b = Of("new", "MKL");
  for (CaseRecord& one : b.cases) {
    one.trainings.resize(2);
    one.margins[0].by_seed = {{0, -5.0}, {1, -5.0}};
  }
  const std::string hint = HintOf(b);
  EXPECT_EQ(hint.rfind("seeds are missing: ", 0), 0u) << hint;
}

}  // namespace hint_test
}  // namespace trainwreck
