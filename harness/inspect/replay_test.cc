#include "harness/inspect/replay.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

namespace trainwreck {
namespace replay_test {

Run Stored() {
  Run run;
  run.id = "fake/x/fault/0";
  run.steps = 20;
  SetPhases(run, {});
  return run;
}

TargetDescription Target() {
  TargetDescription target;
  target.signals.push_back({.name = "grad_norm", .per_module = true});
  target.events.push_back({.name = "batch", .on_demand = true});
  target.events.push_back({.name = "resumed"});
  return target;
}

TEST(Replay, MakesTheStepFromACheckpointBeforeIt) {
  const auto run = ReplayOf(Stored(), 7);
  ASSERT_EQ(run.phases.size(), 2u);
  EXPECT_EQ(run.phases[0].until, 7);
  EXPECT_EQ(run.phases[1].until, 8);
  EXPECT_EQ(run.plan.until, 7);
}

TEST(Replay, RecordsModulesAndWhatIsReportedOnDemand) {
  EXPECT_EQ(RunToReplay(Stored(), 7, Target()).plan.record,
            std::vector<std::string>({"grad_norm{*}", "batch"}));
}

TEST(Replay, TheFirstStepNeedsNoCheckpoint) {
  const auto run = ReplayOf(Stored(), 0);
  ASSERT_EQ(run.phases.size(), 1u);
  EXPECT_EQ(run.plan.until, 1);
}

TEST(Replay, WithItsLastStepARunMayStop) {
  const auto run = ReplayOf(Stored(), 7, /*is_last=*/true);
  ASSERT_EQ(run.phases.size(), 2u);
  EXPECT_EQ(run.phases[0].until, 7);
  EXPECT_FALSE(run.phases[1].until) << "the recipe's end, which the run reached early";
}

TEST(Replay, BeginsWithTheStateThatAllRanksSaved) {
  const auto folder = std::filesystem::path(testing::TempDir()) / "saved_state";
  StoredTrace stored;
  stored.trace.world_size = 2;
  const auto save = [&](int rank, int step, bool state) {
    const auto name = "evidence-rank" + std::to_string(rank) + ".train.0";
    std::filesystem::create_directories(folder / name / "state");
    std::ofstream(folder / name / "state" / ("rank" + std::to_string(rank))) << "x";
    stored.trace.events.push_back({"evidence_saved",
                                   step,
                                   rank,
                                   0.0,
                                   {{"folder", "/where/it/was/" + name}, {"state", state}}});
  };
  save(0, 7, true);
  EXPECT_TRUE(SavedState(stored, folder, 7).empty()) << "rank 1 has none";
  save(1, 7, false);
  EXPECT_TRUE(SavedState(stored, folder, 7).empty()) << "it had no room";
  save(1, 7, true);
  EXPECT_EQ(SavedState(stored, folder, 7).size(), 2u);
  EXPECT_TRUE(SavedState(stored, folder, 8).empty());

  const auto run = ReplayFrom({"a"}, Stored(), 7);
  ASSERT_EQ(run.phases.size(), 1u);
  EXPECT_EQ(run.phases[0].until, 8);
  EXPECT_TRUE(run.plan.resume);
  EXPECT_EQ(run.checkpoint_files, std::vector<std::string>({"a"}));
}

TEST(Replay, RefusesStepsAndRunsThatItCannotMake) {
  const auto make = [](const trainwreck::Run& run, int step) {
    return RunToReplay(run, step, Target());
  };
  EXPECT_THROW(make(Stored(), 20), UsageError);
  EXPECT_THROW(make(Stored(), -1), UsageError);
  auto phased = Stored();
  SetPhases(phased, {{"first", 5}, {"second", std::nullopt}});
  EXPECT_THROW(make(phased, 3), UsageError);
  auto aimed = Stored();
  aimed.plan.faults.push_back({.id = "x", .fault = "x.y", .with = {}, .trigger = {}});
  EXPECT_NO_THROW(make(aimed, 3));
  aimed.plan.faults[0].trigger.phase = "train";
  EXPECT_THROW(make(aimed, 3), UsageError);
}

TEST(Replay, ComparesHowTheStepEnded) {
  RunTrace trace;
  trace.events.push_back({"exception", 3, 1, 0.0, {{"stage", "forward"}}});
  trace.events.push_back({"exception", 4, 0, 0.0, {{"stage", "reduce"}}});
  EXPECT_EQ(DeathsIn(trace, 3), Deaths({{1, "forward"}}));
  EXPECT_EQ(DeathsIn(trace, 5), Deaths());

  Replay replay;
  EXPECT_FALSE(replay.has_record());
  EXPECT_FALSE(replay.is_same()) << "nothing to compare with";
  replay.stored_deaths = DeathsIn(trace, 3);
  EXPECT_TRUE(replay.has_record());
  EXPECT_FALSE(replay.is_same()) << "it died, the replay did not";
  replay.deaths = {{1, "backward"}};
  EXPECT_FALSE(replay.is_same()) << "elsewhere";
  replay.deaths = replay.stored_deaths;
  EXPECT_TRUE(replay.is_same());
  replay.signals = {{"loss", 0, 1, 2, false}};
  EXPECT_FALSE(replay.is_same()) << "other bits before it died";
  replay.signals[0].same = true;
  EXPECT_TRUE(replay.is_same());
  replay.deaths.emplace(0, "forward");
  EXPECT_FALSE(replay.is_same()) << "another rank died too";
}

TEST(Replay, FindsTheStepThatFailed) {
  RunTrace trace;
  for (int step = 0; step < 9; ++step) trace.series[{"loss", 0}].Set(step, step < 6 ? 1 : NAN);
  EXPECT_EQ(FailingStep(trace), 6);
  trace.events.push_back({"first_nonfinite", 5, 0, 0, {}});
  EXPECT_EQ(FailingStep(trace), 5) << "a gradient before the loss";
  RunTrace died;
  died.series[{"loss", 0}].Set(0, 1);
  EXPECT_EQ(FailingStep(died), std::nullopt);
  died.events.push_back({"exception", 3, 0, 0, {}});
  EXPECT_EQ(FailingStep(died), 3);
}

TEST(Replay, FindsEventsOfItsStepAndRankAlone) {
  Replay replay;
  replay.step = 4;
  replay.trace.events = {{"batch", 3, 0, 0, {}}, {"batch", 4, 1, 0, {}}, {"batch", 4, 0, 0, {}}};
  EXPECT_EQ(replay.Batches(0).size(), 1u);
  EXPECT_EQ(replay.EventOf("batch", 1), &replay.trace.events[1]);
  EXPECT_EQ(replay.EventOf("exception", 0), nullptr);
  replay.signals = {{"loss", 0, 1, 1, true}, {"lr", 0, 1, 2, false}};
  EXPECT_EQ(replay.different(), 1);
}

}  // namespace replay_test
}  // namespace trainwreck
