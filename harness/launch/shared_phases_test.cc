// First phases that several runs share.
#include <gtest/gtest.h>

#include <filesystem>
#include <list>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "harness/launch/fake_runs.h"
#include "harness/launch/launcher.h"
#include "harness/text/files.h"

namespace trainwreck {
namespace {

// Trains to step 8 as control does, and then with a rate of its own.
Run RunWithRate(const std::string& id, double rate) {
  Run run = FakeRun(id, "completes", {{"parallel.ranks", 2}});
  run.arm = run.plan.arm = id;
  run.phases = {Phase{"train", 8, true}, Phase{"resume", std::nullopt}};
  run.first_recipe = std::make_shared<const Recipe>(run.plan.recipe);
  run.copies_first_phase = true;
  run.plan.recipe["optimizer.lr"] = rate;
  return run;
}

using Runs = std::list<Run>;

Runs ThreeRuns() {
  return {RunWithRate("control", 0.1), RunWithRate("hot", 0.2), RunWithRate("cold", 0.05)};
}

// The phases of which a process was started, and how many.
std::multiset<std::string> Started(const RunResult& result) {
  std::multiset<std::string> phases;
  for (const Event& event : EventsNamed(result.trace, "spawned")) {
    phases.insert(event.fields.at("phase").get<std::string>());
  }
  return phases;
}

std::vector<double> Losses(const RunResult& result) {
  const Series* losses = result.trace.Find("loss", 0);
  return losses == nullptr ? std::vector<double>() : losses->values;
}

TEST(SharedPhases, AreMadeOnceAndLeaveTheTraceOfARunOfItsOwn) {
  std::string folder;
  const auto remember = [&](LauncherOptions& options) { folder = options.output_dir; };
  const auto shared = RunFakes(ThreeRuns(), Isolation::kFork, remember);
  const auto alone = RunFakes(ThreeRuns(), Isolation::kExec);  // each makes all of its phases
  int makers = 0;
  for (const auto& [id, result] : shared) {
    ASSERT_EQ(result.end, RunEnd::kCompleted) << id << ": " << result.detail;
    const auto copied = EventsNamed(result.trace, "phase_shared");
    makers += copied.empty() ? 1 : 0;
    EXPECT_EQ(Started(result).count("train"), copied.empty() ? 2u : 0u) << id;
    EXPECT_EQ(Started(result).count("resume"), 2u) << id;
    EXPECT_EQ(EventsNamed(result.trace, "resumed").size(), 2u) << id;
    EXPECT_EQ(Losses(result).size(), 20u) << id;
    EXPECT_EQ(Losses(result), Losses(alone.at(id))) << id;
    EXPECT_EQ(Started(alone.at(id)).count("train"), 2u) << id;
    EXPECT_TRUE(result.problems.empty()) << id << ": " << result.problems.front();
  }
  EXPECT_EQ(makers, 1);
  EXPECT_FALSE(std::filesystem::exists(folder + "/.shared-phases"));
}

TEST(SharedPhases, HaveTheRecipeOfControlAndTheOthersTheirOwn) {
  const auto results = RunFakes(ThreeRuns(), Isolation::kFork);
  const auto at = [&](const std::string& id, int step) { return Losses(results.at(id)).at(step); };
  EXPECT_EQ(at("hot", 7), at("control", 7));
  EXPECT_LT(at("hot", 8), at("control", 8));
  EXPECT_GT(at("cold", 8), at("control", 8));
}

TEST(SharedPhases, AreMadeByAnotherWhereTheFirstEndsTooSoon) {
  Runs runs = ThreeRuns();
  const auto decides = [](const trainwreck::Run& run, const RunTrace& trace) {
    return run.arm == "control" && trace.last_step(0) < 8;
  };
  for (auto& run : runs) {
    Recipe slow = *run.first_recipe;
    slow["fake.step_ms"] = 40;
    run.first_recipe = std::make_shared<const Recipe>(slow);
  }
  const auto results = RunFakes(runs, Isolation::kFork, {}, decides);
  EXPECT_EQ(results.at("control").end, RunEnd::kDecided);
  std::size_t copied = 0;
  for (const char* id : {"hot", "cold"}) {
    EXPECT_EQ(results.at(id).end, RunEnd::kCompleted) << results.at(id).detail;
    copied += EventsNamed(results.at(id).trace, "phase_shared").size();
  }
  EXPECT_EQ(copied, 1u);
}

TEST(SharedPhases, AreOnlySharedByRunsThatBeginAlike) {
  Runs runs = ThreeRuns();
  runs.back().plan.seed = 7;
  const auto results = RunFakes(runs, Isolation::kFork);
  EXPECT_TRUE(EventsNamed(results.at("cold").trace, "phase_shared").empty());
}

}  // namespace
}  // namespace trainwreck
