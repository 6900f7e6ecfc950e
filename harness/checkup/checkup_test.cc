// Checkups of the fake target: what is known is learnt from runs, a recipe that was never seen is
// compared with it, and answers that are known are counted.
#include "harness/checkup/checkup.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>

#include "harness/session/fake_suite.h"

namespace trainwreck {
namespace checkup_test {

using testing::FakeSuite;

constexpr int kCores = 2;

void WriteSuite(const FakeSuite& suite) {
  suite.WriteSlow("slow");
  suite.Write("dies",
              "recipe: {steps: 20, optimizer.lr: 0.15}\n"
              "inject:\n  dies: {fault: fake.misbehave, with: {mode: crashes}}\n"
              "symptoms:\n  killed: exited(rank=0, signal=6)\n"
              "remedies:\n  restart: {set: {supervisor.max_restarts: 1}}\n"
              "decoys:\n  lower_lr: {scale: {optimizer.lr: 0.5}}\n"
              "seeds: 2\n");
  // Known to nobody: what is tagged `negative` is not learnt from.
  suite.WriteSlow("mine", 0.12, 0.01, "tags: [negative]\n");
}

Patient PatientIn(const Practice& practice, const std::string& name, const std::string& arm,
                  int seeds = 1) {
  PlanOptions plan;
  plan.seeds = kLearningSeeds + seeds;
  // The scenario and its cases may go: a patient holds what it needs.
  return OnePatient(ChooseCases(practice.session, {.paths = {name}}, plan, {}), arm, kLearningSeeds,
                    seeds);
}

TEST(Checkup, NamesTheFaultOfARecipeThatNobodyHasSeen) {
  const FakeSuite suite;
  WriteSuite(suite);
  const Practice practice(suite.Open(), suite.common(), kCores);
  EXPECT_EQ(practice.signatures.size(), 4u) << "control and fault of two scenarios";
  const auto report = CheckUp(practice, PatientIn(practice, "fake/mine", "fault", 2));
  ASSERT_TRUE(report);
  EXPECT_EQ(report->recipe, "fake/mine");
  EXPECT_EQ(report->arm, "fault");
  EXPECT_EQ(report->seeds, 2);
  EXPECT_FALSE(report->is_healthy());
  ASSERT_EQ(report->named.size(), 2u);
  const NamedRow& row = report->named.front();
  EXPECT_EQ(row.row, "fake/slow");
  EXPECT_GT(row.bits, 0);
  ASSERT_FALSE(row.evidence.empty());
  EXPECT_LE(row.evidence.size(), 5u);
  ASSERT_EQ(row.next.size(), 1u);
  EXPECT_EQ(row.next[0].changes, "optimizer.lr x 50");
  ASSERT_EQ(row.not_first.size(), 1u);
  EXPECT_EQ(row.not_first[0].name, "slightly_faster");
  const Json json = ToJson(*report);
  EXPECT_EQ(json.at("named")[0].at("family"), "fake");
  EXPECT_EQ(json.at("named")[0].at("advice").at("see"), "trainwreck run 'fake/slow'");
  EXPECT_EQ(json.at("healthy"), false);
}

// Known rows stand out, and the rest is counted: nobody takes silence for health.
TEST(Checkup, SaysWhichRowsItCannotName) {
  const FakeSuite suite;
  WriteSuite(suite);
  suite.WriteSlow("same", 0.2, 0.9);  // slower by a tenth, which no clue tells
  suite.WriteSlow("foreign", 0.2, 0.01, "requires: {features: [wings]}\n");
  suite.Write("twin",
              "recipe: {steps: 20}\ntwins:\n  again: {}\nagree:\n  loss: {of: loss, within: "
              "bitwise}\nmust_notice:\n  slow: {fault: fake.slow_descent, with: {factor: 0.5}, "
              "only_in_twins: true}\nseeds: 2\n");
  const Practice practice(suite.Open(), suite.common(), kCores);
  const UnseenRows unseen = FindUnseenRows(practice.known.cases, practice.signatures);
  using Names = std::vector<std::string>;
  EXPECT_EQ(unseen.lacking, Names{"fake/foreign"});
  EXPECT_EQ(unseen.twins, Names{"fake/twin"});
  EXPECT_EQ(unseen.like_healthy, Names{"fake/same"});
}

// The invariant names it in every run, and its training may look as any healthy one.
TEST(Checkup, LearnsNoFaultThatAnInvariantNames) {
  const auto scenario = std::make_shared<Scenario>();
  scenario->name = "fake/broken";
  scenario->breaks = {"finite"};
  Case one;
  one.name = scenario->name;
  one.scenario = scenario;
  one.arms.resize(2);
  one.arms[1].kind = ArmKind::kFault;
  for (ArmPlan& arm : one.arms) arm.runs.resize(1);
  EXPECT_EQ(PatientOf(one, ArmKind::kControl, 0, 1).runs.size(), 1u);
  EXPECT_TRUE(PatientOf(one, ArmKind::kFault, 0, 1).runs.empty());
  EXPECT_EQ(FindUnseenRows({one}, {}).named_by_invariants, std::vector<std::string>{"fake/broken"});
  scenario->breaks.clear();
  EXPECT_EQ(PatientOf(one, ArmKind::kFault, 0, 1).runs.size(), 1u);
}

TEST(Checkup, FindsNothingInAHealthyRecipe) {
  const FakeSuite suite;
  WriteSuite(suite);
  const Practice practice(suite.Open(), suite.common(), kCores);
  const auto report = CheckUp(practice, PatientIn(practice, "fake/mine", "control"));
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->is_healthy());
  EXPECT_EQ(ToJson(*report).at("healthy"), true);
  for (const NamedRow& row : report->named) EXPECT_LE(row.bits, 0) << row.row;
}

TEST(Checkup, NamesAFaultOfRanksAndOneOfPhases) {
  const FakeSuite suite;
  WriteSuite(suite);
  suite.Write("rank_dies",
              "recipe: {steps: 20, parallel.ranks: 2, fake.rank: 1}\n"
              "inject:\n  dies: {fault: fake.misbehave, with: {mode: crashes}}\n"
              "symptoms:\n  killed: exited(rank=1, signal=6)\n"
              "remedies:\n  restart: {set: {supervisor.max_restarts: 1}}\n"
              "decoys:\n  lower_lr: {scale: {optimizer.lr: 0.5}}\n"
              "seeds: 2\n");
  suite.WriteSlow("resumed", 0.2, 0.01,
                  "phases: [{name: train, until: 10}, {name: resume}]\nreference: true\n");
  const Practice practice(suite.Open(), suite.common(), kCores);
  EXPECT_EQ(practice.signatures.size(), 8u);
  const auto ranks = CheckUp(practice, PatientIn(practice, "fake/rank_dies", "fault"));
  ASSERT_TRUE(ranks);
  EXPECT_EQ(ranks->named.front().row, "fake/rank_dies");
  const auto healthy = CheckUp(practice, PatientIn(practice, "fake/rank_dies", "control"));
  ASSERT_TRUE(healthy);
  EXPECT_TRUE(healthy->is_healthy());
  const auto phases = CheckUp(practice, PatientIn(practice, "fake/resumed", "fault"));
  ASSERT_TRUE(phases);
  const auto& losses = phases->final_losses;
  EXPECT_TRUE(std::any_of(losses.begin(), losses.end(), [](const auto& one) {
    return one.first == kUninterrupted;
  })) << "it is run in one phase, too";
  for (const NamedRow& row : phases->named) EXPECT_NE(row.row, "fake/rank_dies");
}

std::vector<std::string> LinesOf(const std::string& file) {
  std::ifstream stream(file);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST(Checkup, LearningThatWasCutOffGoesOnWhereItEnded) {
  const FakeSuite suite;
  WriteSuite(suite);
  const auto learn = [&] { return Practice(suite.Open(), suite.common(), kCores).signatures; };
  const std::string file =
      SignaturesFile(Practice(suite.Open(), suite.common(), kCores).clues, suite.Open());
  std::filesystem::remove(file);  // other tests have the same target and clues
  const std::vector<Signature> whole = learn();
  std::vector<std::string> lines = LinesOf(file);
  ASSERT_EQ(lines.size(), 4u);
  const std::string last = lines.back();
  lines.resize(2);
  std::ofstream(file) << lines[0] << "\n" << lines[1] << "\n" << last.substr(0, 40) << "\n";
  const std::vector<Signature> again = learn();
  EXPECT_EQ(LinesOf(file).size(), 5u) << "two are kept, the torn one too, and two are learnt";
  ASSERT_EQ(again.size(), whole.size());
  for (std::size_t i = 0; i < whole.size(); ++i) {
    EXPECT_EQ(ToJson(again[i]), ToJson(whole[i])) << whole[i].name;
  }
}

TEST(Checkup, IsScoredOnSeedsThatNobodyLearntFrom) {
  const FakeSuite suite;
  WriteSuite(suite);
  const Practice practice(suite.Open(), suite.common(), kCores);
  PlanOptions plan;
  plan.seeds = kLearningSeeds + 2;
  const Chosen chosen = ChooseCases(practice.session, {.tag = "not negative"}, plan, {});
  const std::vector<Patient> patients = PatientsToScore(chosen.cases, 2);
  ASSERT_EQ(patients.size(), 4u);
  const auto report = ScoreCheckups(practice, patients);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->faults.at("fake").first, 4);
  EXPECT_EQ(report->faults.at("fake").all, 4);
  EXPECT_EQ(report->controls.healthy, 4);
  EXPECT_EQ(report->unseen.all, 0) << "no fault has a second point";
  ASSERT_EQ(report->checkups.size(), 8u);
  for (const ScoredCheckup& one : report->checkups) {
    EXPECT_GE(one.seed, kLearningSeeds);
    EXPECT_TRUE(one.is_right) << one.case_name;
  }
  EXPECT_EQ(ToJson(*report).at("checkups").size(), 8u);
}

TEST(Checkup, AScoreCountsPlacesWithoutTheHealthyOne) {
  Score score;
  const auto ranked = [](const std::vector<std::string>& rows) {
    std::vector<Likeness> list;
    for (const std::string& row : rows) list.push_back({row, row, 0});
    return list;
  };
  score.Add("nan/a", ranked({"nan/a", "", "oom/b"}));
  score.Add("nan/a", ranked({"nan/c", "oom/b", "", "nan/a"}));
  score.Add("nan/a", ranked({"", "oom/b", "oom/c", "oom/d", "nan/a"}));
  EXPECT_EQ(score.all, 3);
  EXPECT_EQ(score.first, 1);
  EXPECT_EQ(score.in_three, 2) << "first, third; fourth is too late";
  EXPECT_EQ(score.family, 2);
  EXPECT_EQ(score.healthy, 1);
}

}  // namespace checkup_test
}  // namespace trainwreck
