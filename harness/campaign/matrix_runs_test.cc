// The columns of a matrix over the fake target: which runs are made, what is read of them, and that
// kept runs give the same columns again.
#include "harness/campaign/matrix_runs.h"

#include <gtest/gtest.h>

#include "harness/session/chosen.h"
#include "harness/session/fake_suite.h"

namespace trainwreck {
namespace matrix_runs_test {

using testing::FakeSuite;

std::vector<Case> CasesOf(const Session& session, int seeds = 2) {
  PlanOptions plan;
  plan.seeds = seeds;
  return ChooseCases(session, {}, plan, {}).cases;
}

TEST(MatrixRuns, OnlyArmsThatAreReadAreRunAndAllRecordWhatAnySymptomReads) {
  const FakeSuite suite;
  suite.WriteSlow("slow");
  const std::vector<Case> cases = CasesOf(suite.Open(), 3);
  const auto count = [&](const MatrixRequest& request) {
    std::map<std::string, int> runs;
    for (const auto& run : MatrixRunsOf(cases[0], {"zebra", "loss"}, request)) {
      ++runs[run.arm];
      EXPECT_EQ(run.plan.record, (std::vector<std::string>{"loss", "zebra"}));
    }
    return runs;
  };
  using Runs = std::map<std::string, int>;
  EXPECT_EQ(count({}), (Runs{{"control", 2}, {"fault", 2}})) << "as the scenario says";
  EXPECT_EQ(count({.seeds = 1, .control_seeds = 3}), (Runs{{"control", 3}, {"fault", 1}}));
}

TEST(MatrixRuns, KeptRunsGiveTheSameColumnsAgain) {
  const FakeSuite suite;
  suite.WriteSlow("slow");
  suite.Write("needs",
              "requires: {features: [wings]}\nrecipe: {steps: 20}\n"
              "inject:\n  slow: {fault: fake.slow_descent}\n"
              "symptoms:\n  stuck: at_end loss > 1\n"
              "remedies:\n  faster: {scale: {optimizer.lr: 50}}\n");
  const Session session = suite.Open();
  Matrix made;
  const std::vector<Case> cases = StartMatrix(CasesOf(session), made);
  ASSERT_EQ(cases.size(), 1u);
  EXPECT_EQ(made.skipped.at("fake/needs"), "requires:wings");
  const std::string output = FreshFolder("matrix");
  const BatchesEnd end = RunMatrix(cases, {.cores = 2, .keep = true}, session, output, made);
  EXPECT_TRUE(end.troubles.empty());
  ASSERT_EQ(made.columns.size(), 1u);
  EXPECT_EQ(made.columns[0].fault[0].holds, 2);
  EXPECT_EQ(made.columns[0].control[0].fails, 2);
  Matrix kept;
  kept.symptoms = made.symptoms;
  ReadKeptMatrix(cases, output, session.description, kept);
  ASSERT_EQ(kept.columns.size(), 1u);
  kept.skipped = made.skipped;
  EXPECT_EQ(ToJson(kept), ToJson(made));
  Matrix none;
  none.symptoms = made.symptoms;
  ReadKeptMatrix(cases, FreshFolder("empty"), session.description, none);
  EXPECT_TRUE(none.columns.empty());
  EXPECT_EQ(none.skipped.count("fake/slow"), 1u);
}

TEST(MatrixRuns, AControlRunThatDiesIsTrouble) {
  const FakeSuite suite;
  suite.Write("dies",
              "recipe: {steps: 20, fake.mode: crashes}\n"
              "inject:\n  slow: {fault: fake.slow_descent}\n"
              "symptoms:\n  stuck: at_end loss > 1\n"
              "remedies:\n  faster: {scale: {optimizer.lr: 50}}\n");
  const Session session = suite.Open();
  Matrix matrix;
  const std::vector<Case> cases = StartMatrix(CasesOf(session, 1), matrix);
  const BatchesEnd end =
      RunMatrix(cases, {.seeds = 1, .cores = 2}, session, FreshFolder("dies"), matrix);
  ASSERT_EQ(end.troubles.size(), 1u);
  EXPECT_EQ(end.troubles[0], "fake/dies/control/0: a healthy run ended as 'failed'");
}

}  // namespace matrix_runs_test
}  // namespace trainwreck
