#include "harness/session/storage.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>

#include "harness/session/session.h"
#include "harness/session/stored_trace.h"

namespace trainwreck {
namespace storage_test {

namespace fs = std::filesystem;

std::string Folder(const std::string& name) {
  const std::string folder = ::testing::TempDir() + "/" + name;
  fs::remove_all(folder);
  fs::create_directories(folder);
  return folder;
}

Run MakeRun() {
  Run run;
  run.id = "nan/x/sgd/lower/1";
  run.scenario = "nan/x";
  run.point = "sgd";
  run.arm = "lower";
  run.kind = ArmKind::kRemedy;
  run.seed = 1;
  run.plan.recipe = {{"steps", 3}, {"optimizer.lr", 0.1}};
  run.phases = {{"train", 2}, {"resume", std::nullopt}};
  run.first_recipe = std::make_shared<const Recipe>(Recipe{{"steps", 3}, {"optimizer.lr", 0.2}});
  run.amendments = {{"hot", "recipe.high_lr", "optimizer.lr", 0.1, 1.5}};
  run.ranks = 2;
  run.processes = 1;
  run.steps = 3;
  run.policy = {2, 30, 1.5, true, false};
  run.cost = 12;
  return run;
}

TEST(Storage, ARunIsReadAsItWasStored) {
  RunResult result;
  result.folder = Folder("stored");
  result.end = RunEnd::kStalled;
  result.detail = "rank 1 waits";
  StoreRun(MakeRun(), result);
  const StoredRun stored = LoadStoredRun(result.folder);
  EXPECT_EQ(ToJson(stored.run), ToJson(MakeRun()));
  EXPECT_EQ(stored.run.kind, ArmKind::kRemedy);
  EXPECT_EQ(stored.run.phases.size(), 2u);
  EXPECT_EQ(stored.end, RunEnd::kStalled);
  EXPECT_EQ(stored.detail, "rank 1 waits");
  Json json = ToJson(MakeRun());
  json["end"] = "vanished";
  WriteWholeFile(result.folder + "/run.json", json.dump());
  EXPECT_FALSE(LoadStoredRun(result.folder).end) << "of another version, say";
}

TEST(Storage, WhatIsDamagedIsNoStoredRun) {
  const std::string folder = Folder("damaged");
  EXPECT_THROW(LoadStoredRun(folder), ConfigurationError);
  Json json = ToJson(MakeRun());
  json.erase("policy");
  WriteWholeFile(folder + "/run.json", json.dump());
  EXPECT_THROW(LoadStoredRun(folder), ConfigurationError);
  WriteWholeFile(folder + "/run.json", "{");
  EXPECT_THROW(LoadStoredRun(folder), ConfigurationError);
}

TEST(Storage, AFolderGoesWithThoseThatAreEmptyThen) {
  const std::string root = Folder("removed");
  fs::create_directories(root + "/nan/x/fault/0");
  fs::create_directories(root + "/nan/x/control/0");
  RemoveRunFolder(root + "/nan/x/fault/0", root);
  EXPECT_FALSE(fs::exists(root + "/nan/x/fault"));
  EXPECT_TRUE(fs::exists(root + "/nan/x/control/0"));
  RemoveRunFolder(root + "/nan/x/control/0", root);
  EXPECT_FALSE(fs::exists(root + "/nan"));
  EXPECT_TRUE(fs::exists(root));
}

TEST(Storage, TheDescriptionIsFoundFromARunsFolder) {
  const std::string root = Folder("described");
  TargetDescription target;
  target.name = "t";
  StoreDescription(root, target);
  fs::create_directories(root + "/nan/x/fault/0");
  EXPECT_EQ(FindStoredDescription(root + "/nan/x/fault/0")->name, "t");
  EXPECT_FALSE(FindStoredDescription(Folder("lonely")));
}

void Write(const std::string& file, const std::string& text) { std::ofstream(file) << text; }

constexpr const char* kStep = "{\"t\":\"step\",\"step\":0,\"loss\":2.5,\"time\":0.1}\n";

TEST(StoredTrace, WithoutAnEndTheRunMayGoOn) {
  const std::string folder = Folder("open");
  EXPECT_THROW(LoadStoredTrace(folder), UsageError);
  Write(folder + "/rank0.jsonl", kStep);
  EXPECT_TRUE(LoadStoredTrace(folder).has_open_end);
  EXPECT_FALSE(LoadStoredTrace(folder).trace.finished);
  const StoredTrace over = LoadStoredTrace(folder, {.finished = true, .steps = 0});
  EXPECT_FALSE(over.has_open_end);
  EXPECT_TRUE(over.trace.finished);
  EXPECT_EQ(LoadStoredTrace(folder, {.finished = false, .steps = 7}).trace.planned_steps, 7);
}

TEST(StoredTrace, ARankThatIsMissingIsLost) {
  const std::string folder = Folder("missing_rank");
  Write(folder + "/rank1.jsonl", kStep);
  EXPECT_EQ(LoadStoredTrace(folder).trace.lost, std::set<int>{0});
}

TEST(StoredTrace, OfAStoredRunItIsKnownWhatIsGone) {
  RunResult result;
  result.folder = Folder("cut");
  result.end = RunEnd::kCompleted;
  auto run = MakeRun();
  run.ranks = 1;
  StoreRun(run, result);
  Write(result.folder + "/rank0.jsonl", kStep);
  const StoredTrace stored = LoadStoredTrace(result.folder);
  EXPECT_EQ(stored.end, RunEnd::kCompleted);
  ASSERT_EQ(stored.problems.size(), 2u);
  EXPECT_EQ(stored.problems[0], "launcher.jsonl is missing");
  EXPECT_EQ(stored.problems[1],
            "rank0.jsonl is cut off: the run came to its end, the file does not");
}

// What the launcher stopped has an end of its own making: nothing may be said of its last step.
TEST(StoredTrace, ARunThatWasStoppedEarlyIsNotFinished) {
  RunResult result;
  result.folder = Folder("stopped");
  auto run = MakeRun();
  run.ranks = 1;
  for (const RunEnd end : {RunEnd::kDecided, RunEnd::kStalled}) {
    result.end = end;
    StoreRun(run, result);
    Write(result.folder + "/rank0.jsonl", kStep);
    Write(result.folder + "/launcher.jsonl",
          "{\"t\":\"event\",\"step\":0,\"name\":\"run_ended\"}\n");
    EXPECT_EQ(LoadStoredTrace(result.folder).trace.finished, end != RunEnd::kDecided);
  }
}

}  // namespace storage_test
}  // namespace trainwreck
