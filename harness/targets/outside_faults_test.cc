// Faults that are done to files, environments and processes: what they change, where, and what not.
#include "harness/targets/outside_faults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <thread>

#include "harness/process/rank_processes.h"
#include "harness/process/spawn.h"
#include "harness/targets/outside_faults_testing.h"

namespace trainwreck {
namespace outside_faults_test {

// A rank's guard, on another machine, is told to kill, and its answer is the evidence.
class GuardedRankTest : public OutsideFaultsTest {
 protected:
  GuardedRankTest() {
    fs::create_directory(guard_folder_);
    guards_ = RankGuards(guard_folder_, 2);
    GuardSays();
    Add("process.crash_rank", {{"how", "sigkill"}}).trigger.ranks = {1};
    faults_.reset(new OutsideFaults(Make(0, 2, LauncherKind::kSrun)));
    guards_.Look();
    faults_->ActAtStep(0, 0, getpid());
    guards_.Look();
  }
  void GuardSays() { ReplaceFile(GuardFile(guard_folder_, 1), ToJson(rank_).dump()); }

  const std::string guard_folder_ = folder_ + "/guards.train.0";
  GuardedRank rank_{.host = "n7", .pid = 42, .beat = 1};
  std::unique_ptr<OutsideFaults> faults_;
};

TEST_F(GuardedRankTest, IsGivenAnOrder) {
  faults_->HearGuards();
  EXPECT_TRUE(fired_.empty());  // it has not answered
  const Json orders = Json::parse(Read("guards.train.0/orders.json"));
  ASSERT_EQ(orders["orders"].size(), 1U);
  EXPECT_EQ(OrderFromJson(orders["orders"][0]).signal, SIGKILL);
  rank_.obeyed = {{0, "running", 3}};
  GuardSays();
  guards_.Look(RankGuards::Clock::now() + std::chrono::seconds(1));
  faults_->HearGuards();
  ASSERT_EQ(fired_.size(), 1U);
  EXPECT_EQ(fired_[0]["host"], "n7");
  EXPECT_EQ(fired_[0]["pid"], 42);
  EXPECT_EQ(fired_[0]["processes"], 3);
  faults_->HearGuards();
  EXPECT_EQ(fired_.size(), 1U);
}

// The rank that was killed ended the run, and its guard's last words are read before their time.
TEST_F(GuardedRankTest, IsHeardAfterTheEnd) {
  rank_.obeyed = {{0, "running", 3}};
  std::thread guard([&] {  // its file is seen late
    usleep(200'000);
    GuardSays();
  });
  faults_->HearLastOfGuards();
  guard.join();
  ASSERT_EQ(fired_.size(), 1U);
  EXPECT_EQ(fired_[0]["processes"], 3);
}

TEST_F(GuardedRankTest, IsNotWaitedForWhenItHasEnded) {
  rank_.state = "ended";
  GuardSays();
  faults_->HearLastOfGuards();
  EXPECT_TRUE(fired_.empty());
}

TEST_F(OutsideFaultsTest, RunsCommandsOnTheMachineAndUndoesThem) {
  Add("node.command", {{"run", "touch " + folder_ + "/cut"},
                       {"undo", "rm " + folder_ + "/cut"},
                       {"probe", "ls " + folder_},
                       {"seconds", 0.2}});
  OutsideFaults faults = Make();
  faults.ActAtStep(0, 0, getpid());
  ASSERT_EQ(fired_.size(), 1U);
  EXPECT_EQ(fired_[0]["before"], "deep\nnotes.txt");
  EXPECT_EQ(fired_[0]["after"], "cut\ndeep\nnotes.txt\nundo.rank0.json");
  EXPECT_EQ(fired_[0]["host"], HostName());
  EXPECT_EQ(Read("cut"), "");
  faults.EndPauses();
  EXPECT_EQ(Read("cut"), "");
  usleep(300'000);
  faults.EndPauses();
  EXPECT_EQ(Read("cut"), "gone");
  EXPECT_EQ(Read("undo.rank0.json"), "gone");
}

TEST_F(OutsideFaultsTest, WhatAKilledProcessLeavesIsUndone) {
  const pid_t pid = fork();
  if (pid == 0) {
    NodeCommands commands(folder_, 3);
    commands.Run({"touch " + folder_ + "/cut", "rm " + folder_ + "/cut", "true", 0});
    raise(SIGKILL);
  }
  waitpid(pid, nullptr, 0);
  EXPECT_EQ(Read("cut"), "");
  Write("undo.rank4.json",
        R"({"host": "another", "commands": ["touch )" + folder_ + R"(/other"]})");
  UndoLeft(folder_);
  EXPECT_EQ(Read("cut"), "gone");
  EXPECT_EQ(Read("undo.rank3.json"), "gone");
  EXPECT_EQ(Read("other"), "gone");  // it is that machine's
}

TEST_F(OutsideFaultsTest, ACommandThatFailsHasNotFired) {
  Add("node.command", {{"run", "exit 3"}, {"undo", ""}, {"probe", "true"}, {"seconds", 0}});
  OutsideFaults faults = Make();
  faults.ActAtStep(0, 0, getpid());
  EXPECT_TRUE(fired_.empty());
}

TEST_F(OutsideFaultsTest, DamagesFilesAsItSays) {
  const std::pair<const char*, std::string> damages[] = {{"truncate", "abcd"},
                                                         {"delete", "gone"},
                                                         {"zero", std::string(8, '\0')},
                                                         {"flip_bit", "abcdufgh"}};
  for (const auto& [how, bytes] : damages) {
    Write("deep/model.bin", kBytes);
    plan_.faults.clear();
    fired_.clear();
    Add("checkpoint.damage_file", {{"files", "*.bin"}, {"how", how}});
    Make().DamageCheckpoints();
    EXPECT_EQ(Read("deep/model.bin"), bytes) << how;
    EXPECT_EQ(Read("notes.txt"), kBytes) << how;
    ASSERT_EQ(fired_.size(), 1U) << how;
    EXPECT_EQ(fired_[0]["id"], "it");
    EXPECT_EQ(fired_[0]["file"], "deep/model.bin");
    EXPECT_EQ(fired_[0]["before"]["bytes"], 8);
    EXPECT_NE(fired_[0]["before"], fired_[0]["after"]) << how;
  }
}

TEST_F(OutsideFaultsTest, DamagesTheLargestFileAloneAndOfEqualOnesTheNewest) {
  const std::pair<const char*, const char*> files[] = {
      {"1/optimizer", "0123456789"}, {"2/optimizer", "0123456789"}, {"2/weights", kBytes}};
  for (const auto& [name, bytes] : files) {
    fs::create_directories(fs::path(folder_ + "/" + name).parent_path());
    Write(name, bytes);
  }
  fs::last_write_time(folder_ + "/1/optimizer",
                      fs::file_time_type::clock::now() - std::chrono::minutes(1));
  Add("checkpoint.damage_file", {{"files", "*"}, {"which", "largest"}, {"how", "delete"}});
  Make().DamageCheckpoints();
  ASSERT_EQ(fired_.size(), 1U);
  EXPECT_EQ(fired_[0]["file"], "2/optimizer");
  EXPECT_EQ(Read("2/optimizer"), "gone");
  EXPECT_EQ(Read("1/optimizer"), "0123456789");
  EXPECT_EQ(Read("2/weights"), kBytes);
}

TEST_F(OutsideFaultsTest, LeavesAloneWhatTheFileIsLinkedTo) {
  fs::create_hard_link(folder_ + "/notes.txt", folder_ + "/original");
  Add("checkpoint.damage_file", {{"files", "notes*"}, {"how", "zero"}});
  Make().DamageCheckpoints();
  EXPECT_EQ(Read("original"), kBytes);
  EXPECT_EQ(Read("notes.txt"), std::string(8, '\0'));
}

TEST_F(OutsideFaultsTest, ActsOnlyWhereItsTriggerSays) {
  PlannedFault& fault = Add("checkpoint.damage_file", {{"files", "notes*"}, {"how", "delete"}});
  fault.trigger.phase = "resume";
  Make().DamageCheckpoints();
  EXPECT_EQ(Read("notes.txt"), kBytes) << "another phase";
  plan_.phase = "resume";
  Make(/*rank=*/1, /*ranks=*/2).DamageCheckpoints();
  EXPECT_EQ(Read("notes.txt"), kBytes) << "all ranks have one folder: the first one does it";
  EXPECT_THAT(fired_, IsEmpty());
  Make().DamageCheckpoints();
  EXPECT_EQ(Read("notes.txt"), "gone");
}

TEST_F(OutsideFaultsTest, WantsACopyOfTheDataOnlyWhenItWillDamageThem) {
  EXPECT_FALSE(Make().WantsDataCopy());
  Add("data.damage_file", {{"files", "*"}, {"how", "zero"}}).trigger.attempt = 1;
  EXPECT_FALSE(Make().WantsDataCopy());
  plan_.attempt = 1;
  EXPECT_TRUE(Make().WantsDataCopy());
}

TEST_F(OutsideFaultsTest, SaysWhatAVariableWasBefore) {
  setenv("OUTSIDE_INHERITED", "old", 1);
  for (const char* name : {"OUTSIDE_GIVEN", "OUTSIDE_INHERITED", "OUTSIDE_NEW"}) {
    Add("environment.set", {{"name", name}, {"value", "new"}});
  }
  std::map<std::string, std::string> environment = {{"OUTSIDE_GIVEN", "given"}};
  Make().ChangeEnvironment(environment);
  ASSERT_EQ(fired_.size(), 3U);
  EXPECT_EQ(fired_[0]["before"], "given");
  EXPECT_EQ(fired_[1]["before"], "old");
  EXPECT_EQ(fired_[2]["before"], "unset");
  for (const auto& [name, value] : environment) EXPECT_EQ(value, "new") << name;
  EXPECT_EQ(environment.size(), 3U);
}

}  // namespace outside_faults_test
}  // namespace trainwreck
