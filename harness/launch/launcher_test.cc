#include "harness/launch/launcher.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "harness/launch/fake_runs.h"
#include "harness/protocol/trace_reader.h"

namespace trainwreck {
namespace {

class LauncherTest : public testing::TestWithParam<Isolation> {
 protected:
  using Run = trainwreck::Run;  // not testing::Test::Run

  RunResult RunOne(const Run& run, const std::function<void(LauncherOptions&)>& adjust = {},
                   const std::function<bool(const Run&, const RunTrace&)>& is_decided = {}) {
    auto results = RunFakes({run}, GetParam(), adjust, is_decided);
    EXPECT_EQ(results.size(), 1u);
    return std::move(results[run.id]);
  }
};

INSTANTIATE_TEST_SUITE_P(Isolation, LauncherTest,
                         testing::Values(Isolation::kFork, Isolation::kExec), [](const auto& info) {
                           return info.param == Isolation::kFork ? "Fork" : "Exec";
                         });

TEST_P(LauncherTest, CompletesARun) {
  const RunResult result = RunOne(FakeRun("a/b/control/0", "completes"));
  EXPECT_EQ(result.end, RunEnd::kCompleted) << result.detail;
  EXPECT_EQ(result.detail, "");
  EXPECT_TRUE(result.trace.finished);
  EXPECT_EQ(result.trace.last_step(0), 19);
  ASSERT_NE(result.trace.Find("loss", 0), nullptr);
  EXPECT_EQ(result.trace.Find("loss", 0)->values[0], 4.0);
  ASSERT_EQ(result.exits.size(), 1u);
  EXPECT_EQ(result.exits[0].code, 0);
  EXPECT_EQ(result.exits[0].phase, "train");
  EXPECT_GT(result.peak_memory_bytes, 0);
  ASSERT_EQ(EventsNamed(result.trace, "spawned").size(), 1u);
  ASSERT_EQ(EventsNamed(result.trace, "exited").size(), 1u);
  EXPECT_EQ(EventsNamed(result.trace, "exited")[0].rank, 0);
  for (const char* file : {"plan.train.0.json", "rank0.jsonl", "launcher.jsonl", "rank0.stdout",
                           "rank0.stderr", "checkpoints"}) {
    EXPECT_TRUE(std::filesystem::exists(result.folder + "/" + file)) << file;
  }
}

TEST_P(LauncherTest, RunsManyAndEachOnce) {
  std::list<Run> runs;
  for (int i = 0; i < 60; ++i) {
    runs.push_back(FakeRun("many/" + std::to_string(i), "completes",
                           {{"parallel.ranks", 1 + i % 3}, {"steps", 5 + i}}));
    runs.back().cost = i;
  }
  const auto results = RunFakes(runs, GetParam());
  ASSERT_EQ(results.size(), 60u);
  for (const Run& run : runs) {
    const RunResult& result = results.at(run.id);
    EXPECT_EQ(result.end, RunEnd::kCompleted) << run.id << ": " << result.detail;
    EXPECT_EQ(result.trace.last_step(run.ranks - 1), run.steps - 1);
  }
}

TEST_P(LauncherTest, SaysHowARankEnded) {
  struct Example {
    const char* mode;
    RunEnd end;
    const char* detail;
  };
  const Example examples[] = {
      {"exits_7", RunEnd::kFailed, "rank 0 exited with code 7"},
      {"throws", RunEnd::kFailed, "out of cheese"},
      {"crashes", RunEnd::kFailed, "rank 0 was killed by SIGABRT after step 2"},
      {"killed", RunEnd::kFailed, "rank 0 was killed by SIGKILL after step 2"},
      {"half_line", RunEnd::kFailed, "rank 0 was killed by SIGKILL after step 2"},
      {"garbage", RunEnd::kGarbage, "rank0.jsonl:1: not a JSON object"},
      {"fifo", RunEnd::kGarbage, "rank0.jsonl: not a regular file"},
      {"nothing", RunEnd::kGarbage, "rank 0 exited with code 0 and wrote nothing"},
      {"quits_quietly", RunEnd::kGarbage, "without an `end` record"},
      {"hides", RunEnd::kLeak, "left processes behind"},
  };
  std::list<Run> runs;
  for (const Example& example : examples) runs.push_back(FakeRun(example.mode, example.mode));
  runs.push_back(FakeRun("good", "completes"));
  const auto results = RunFakes(runs, GetParam());
  for (const Example& example : examples) {
    const RunResult& result = results.at(example.mode);
    EXPECT_EQ(ToString(result.end), std::string(ToString(example.end)))
        << example.mode << ": " << result.detail;
    EXPECT_NE(result.detail.find(example.detail), std::string::npos)
        << example.mode << ": " << result.detail;
  }
  EXPECT_EQ(results.at("good").end, RunEnd::kCompleted);
  EXPECT_EQ(results.at("half_line").trace.last_step(0), 2);
  EXPECT_TRUE(results.at("half_line").problems.empty());
  EXPECT_EQ(results.at("exits_7").exits[0].last_words, "second line\nthird line\nthe reason");
  EXPECT_EQ(EventsNamed(results.at("hides").trace, "leaked").size(), 1u);
}

// The reason stands before the backtrace.
TEST_P(LauncherTest, ARunThatCannotStartSaysWhyAndTookNoTime) {
  const std::string folder = FreshFolder("broken");
  std::ofstream script(folder + "/broken.sh");
  script << "echo 'loading' >&2; echo 'CUDA error: no kernel image' >&2\n"
         << "echo 'Exception raised from Check at c10.cpp:43 (most recent call first):' >&2\n";
  for (int frame = 0; frame < 200; ++frame) {
    script << "echo 'frame #" << frame << ": c10::Error + 0x88 (0x7f0 in /lib/libc10.so)' >&2\n";
  }
  script << "echo >&2; exit 1\n";
  script.close();
  const auto begin = std::chrono::steady_clock::now();
  const RunResult result = RunOne(FakeRun("broken", "completes"), [&](LauncherOptions& options) {
    options.target.command = {"/bin/sh", folder + "/broken.sh"};
  });
  const std::chrono::duration<double> all = std::chrono::steady_clock::now() - begin;
  EXPECT_NE(result.detail.find("loading\nCUDA error: no kernel image"), std::string::npos)
      << result.detail;
  EXPECT_EQ(result.detail.find("frame #"), std::string::npos) << result.detail;
  EXPECT_LE(result.wall_seconds, all.count());
  if (GetParam() == Isolation::kExec) return;
  EXPECT_EQ(result.end, RunEnd::kInfrastructure);
  EXPECT_EQ(result.detail.find("the fork server did not start: loading"), 0u) << result.detail;
}

// One that starts and then dies says why, too.
TEST(ForkServerTest, SaysTheLastWordsOfOneThatDies) {
  const std::string script = FreshFolder("dies") + "/dies.sh";
  std::ofstream(script) << "printf '{\"ready\":true}\\n' >&3; echo 'no memory left' >&2; exit 1\n";
  std::list<trainwreck::Run> runs;
  for (int i = 0; i < 20; ++i) runs.push_back(FakeRun("run" + std::to_string(i), "completes"));
  const auto results = RunFakes(runs, Isolation::kFork, [&](LauncherOptions& options) {
    options.target.command = {"/bin/sh", script};
    options.cores = 1;
  });
  ASSERT_EQ(results.size(), 20u);
  bool is_said = false;
  for (const auto& [id, result] : results) {
    EXPECT_EQ(result.end, RunEnd::kInfrastructure) << result.detail;
    is_said = is_said || result.detail == "the spawn server died 3 times: no memory left";
  }
  EXPECT_TRUE(is_said) << results.at("run19").detail;
}

TEST_P(LauncherTest, NamesWaitingAndLaggingRankOfAStall) {
  Run run = FakeRun("stall", "waits", {{"parallel.ranks", 2}, {"fake.rank", 1}});
  run.policy.stall_seconds = 0.6;
  const RunResult result = RunOne(run);
  EXPECT_EQ(result.end, RunEnd::kStalled) << result.detail;
  const auto stalled = EventsNamed(result.trace, "stalled");
  ASSERT_EQ(stalled.size(), 1u);
  EXPECT_EQ(stalled[0].fields["waiting_rank"], 0);
  EXPECT_EQ(stalled[0].fields["waiting_call"], 8);
  EXPECT_EQ(stalled[0].fields["waiting_step"], 4);
  EXPECT_EQ(stalled[0].fields["waiting_op"], "all_reduce");
  EXPECT_EQ(stalled[0].fields["lagging_rank"], 1);
  EXPECT_EQ(stalled[0].fields["lagging_call"], 6);
  EXPECT_EQ(stalled[0].fields["lagging_state"], "running");
  EXPECT_EQ(EventsNamed(result.trace, "killed").size(), 1u);
  EXPECT_EQ(result.exits.size(), 2u);
}

// The libraries of a GPU are loaded in the first step, behind a broadcast of the weights.
TEST_P(LauncherTest, TheFirstStepOnAGpuIsAPartOfTheStart) {
  Run run = FakeRun("loads", "loads_late", {{"fake.at", 0}});
  run.policy.stall_seconds = 0.6;
  EXPECT_EQ(RunOne(run).end, RunEnd::kStalled);
  run.id = "loads_gpu";
  run.device = "cuda";
  RunResult result = RunOne(run);
  EXPECT_EQ(result.end, RunEnd::kCompleted) << result.detail;
  run.id = "many_load";  // longer than a start elsewhere
  result = RunOne(run, [](LauncherOptions& o) { o.target.limits.usual_start_seconds = 1; });
  EXPECT_EQ(result.end, RunEnd::kCompleted) << result.detail;
}

TEST_P(LauncherTest, SeesAStoppedRank) {
  Run run = FakeRun("stopped", "stops", {{"parallel.ranks", 2}, {"fake.rank", 1}});
  run.policy.stall_seconds = 0.6;
  const RunResult result = RunOne(run);
  EXPECT_EQ(result.end, RunEnd::kStalled) << result.detail;
  const auto stalled = EventsNamed(result.trace, "stalled");
  ASSERT_EQ(stalled.size(), 1u);
  EXPECT_EQ(stalled[0].fields["lagging_rank"], 1);
  EXPECT_EQ(stalled[0].fields["lagging_state"], "stopped");
  EXPECT_NE(result.detail.find("; NCCL: rank 1: NCCL WARN a peer is gone"), std::string::npos)
      << result.detail;
}

TEST_P(LauncherTest, ReportsCollectivesThatDoNotMatch) {
  Run run = FakeRun("mismatch", "mismatch", {{"parallel.ranks", 2}, {"fake.rank", 1}});
  run.policy.stall_seconds = 0.6;
  const RunResult result = RunOne(run);
  const auto mismatches = EventsNamed(result.trace, "collective_mismatch");
  ASSERT_EQ(mismatches.size(), 1u);
  EXPECT_EQ(mismatches[0].fields["call"], 6);
  EXPECT_EQ(mismatches[0].fields["op_a"], "all_reduce");
  EXPECT_EQ(mismatches[0].fields["op_b"], "broadcast");
}

TEST_P(LauncherTest, LetsPeersOfADeadRankGoOn) {
  const RunResult result =
      RunOne(FakeRun("peer", "killed", {{"parallel.ranks", 2}, {"fake.rank", 1}}));
  EXPECT_EQ(result.end, RunEnd::kFailed);
  EXPECT_EQ(result.trace.last_step(0), 19);
  EXPECT_EQ(result.trace.last_step(1), 2);
  EXPECT_TRUE(EventsNamed(result.trace, "killed").empty());
}

TEST_P(LauncherTest, NamesTheRankThatDiedFirstAndNotThePeerThatComplained) {
  Run run = FakeRun("breaks", "breaks", {{"parallel.ranks", 2}, {"fake.rank", 1}});
  const RunResult failed = RunOne(run);
  EXPECT_EQ(failed.end, RunEnd::kFailed);
  EXPECT_EQ(failed.detail.find("rank 1 exited with code 1 after step 2: "), 0u) << failed.detail;
  EXPECT_NE(failed.detail.find("the cause"), std::string::npos) << failed.detail;
  run.policy.max_restarts = 1;
  const RunResult restarted = RunOne(run);
  EXPECT_EQ(restarted.end, RunEnd::kCompleted) << restarted.detail;
  const auto events = EventsNamed(restarted.trace, "restarted");
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].fields["dead_rank"], 1);
  EXPECT_EQ(events[0].fields["lost_steps"], 3);  // no checkpoint yet
}

TEST_P(LauncherTest, NamesNoRankWhereTheRanksOnlyComplainOfEachOther) {
  for (const char* mode : {"complains", "refuses"}) {
    Run run = FakeRun(std::string("blame/") + mode, mode, {{"parallel.ranks", 2}});
    run.policy.max_restarts = 1;
    const RunResult restarted = RunOne(run);
    EXPECT_EQ(restarted.end, RunEnd::kCompleted) << restarted.detail;
    const auto events = EventsNamed(restarted.trace, "restarted");
    ASSERT_EQ(events.size(), 1u) << mode;
    EXPECT_FALSE(events[0].fields.contains("dead_rank")) << events[0].fields.dump();
  }
}

TEST_P(LauncherTest, DoesNotStartARefusedPlanAgain) {
  Run run = FakeRun("refused", "bad_plan", {{"parallel.ranks", 2}});
  run.policy.max_restarts = 3;
  const RunResult result = RunOne(run);
  EXPECT_EQ(result.end, RunEnd::kFailed);
  EXPECT_EQ(result.restarts, 0);
}

TEST_P(LauncherTest, RestartsAfterADeathAndAStall) {
  for (const char* mode : {"killed", "hangs", "half_line"}) {
    Run run = FakeRun(std::string("restart/") + mode, mode,
                      {{"parallel.ranks", 2}, {"fake.rank", 1}, {"fake.attempts", 2}});
    run.policy.max_restarts = 2;
    run.policy.stall_seconds = 0.6;
    const RunResult result = RunOne(run);
    EXPECT_EQ(result.end, RunEnd::kCompleted) << mode << ": " << result.detail;
    EXPECT_EQ(result.restarts, 2) << mode;
    ASSERT_EQ(EventsNamed(result.trace, "restarted").size(), 2u) << mode;
    EXPECT_EQ(EventsNamed(result.trace, "restarted")[1].fields["attempt"], 2);
    EXPECT_EQ(result.trace.last_step(1), 19);
    EXPECT_TRUE(result.problems.empty()) << mode << ": " << result.problems[0];
    EXPECT_TRUE(std::filesystem::exists(result.folder + "/plan.train.2.json"));
  }
}

TEST_P(LauncherTest, GivesUpWhenRestartsAreUsedUp) {
  Run run = FakeRun("gives_up", "killed", {{"fake.attempts", 9}});
  run.policy.max_restarts = 2;
  const RunResult result = RunOne(run);
  EXPECT_EQ(result.end, RunEnd::kFailed);
  EXPECT_EQ(result.restarts, 2);
  EXPECT_EQ(result.exits.size(), 3u);
  EXPECT_NE(result.detail.find("attempt 2"), std::string::npos) << result.detail;
}

TEST_P(LauncherTest, WaitsLongerBeforeEachRestart) {
  Run run = FakeRun("backs_off", "killed", {{"fake.attempts", 2}});
  run.policy.max_restarts = 2;
  run.policy.backoff_seconds = 0.3;
  const RunResult result = RunOne(run);
  EXPECT_EQ(result.end, RunEnd::kCompleted) << result.detail;
  const auto restarted = EventsNamed(result.trace, "restarted");
  ASSERT_EQ(restarted.size(), 2u);
  EXPECT_EQ(restarted[0].fields["waited_s"], 0.3);
  EXPECT_EQ(restarted[1].fields["waited_s"], 0.6);
  const auto exited = EventsNamed(result.trace, "exited");
  ASSERT_EQ(exited.size(), 3u);
  EXPECT_GE(restarted[0].time_s - exited[0].time_s, 0.3);
  EXPECT_GE(restarted[1].time_s - exited[1].time_s, 0.6);
}

TEST_P(LauncherTest, ARunMayEndWhileItBacksOff) {
  Run run = FakeRun("out_of_time", "killed", {{"fake.attempts", 9}});
  run.policy.max_restarts = 9;
  run.policy.backoff_seconds = 30;
  run.policy.seconds = 1;
  const RunResult result = RunOne(run);
  EXPECT_EQ(result.end, RunEnd::kTimeout) << result.detail;
  EXPECT_EQ(result.restarts, 0);
  EXPECT_LT(result.wall_seconds, 10);
}

TEST_P(LauncherTest, OldRestartsAreForgotten) {
  Run run = FakeRun("window", "killed", {{"fake.attempts", 4}, {"fake.step_ms", 100}});
  run.policy.max_restarts = 1;
  run.policy.window_seconds = 0.2;  // of the 0.3 s that an attempt lives
  const RunResult forgiven = RunOne(run);
  EXPECT_EQ(forgiven.end, RunEnd::kCompleted) << forgiven.detail;
  EXPECT_EQ(forgiven.restarts, 4);
  run.policy.window_seconds = 60;
  const RunResult given_up = RunOne(run);
  EXPECT_EQ(given_up.end, RunEnd::kFailed);
  EXPECT_EQ(given_up.restarts, 1);
}

TEST_P(LauncherTest, ResumesInTheNextPhase) {
  Run run = FakeRun("phases", "completes", {{"parallel.ranks", 2}});
  run.phases = {Phase{"train", 8}, Phase{"resume", std::nullopt}};
  const RunResult result = RunOne(run);
  EXPECT_EQ(result.end, RunEnd::kCompleted) << result.detail;
  const auto resumed = EventsNamed(result.trace, "resumed");
  ASSERT_EQ(resumed.size(), 2u);
  EXPECT_EQ(resumed[0].fields["from_step"], 8);
  EXPECT_EQ(result.exits.size(), 4u);
  EXPECT_EQ(result.trace.last_step(0), 19);
  std::ifstream file(result.folder + "/plan.resume.0.json");
  const Plan plan = PlanFromJson(Json::parse(file));
  EXPECT_TRUE(plan.resume);
  EXPECT_FALSE(plan.until.has_value());
}

TEST_P(LauncherTest, StopsARunOverItsSeconds) {
  Run run = FakeRun("slow", "ignores_sigterm");
  run.policy.seconds = 0.2;
  const RunResult result = RunOne(run);
  EXPECT_EQ(result.end, RunEnd::kTimeout);
  EXPECT_EQ(EventsNamed(result.trace, "timeout").size(), 1u);
  EXPECT_EQ(result.exits.size(), 1u);
  EXPECT_EQ(result.exits[0].signal, SIGKILL);
  EXPECT_LT(result.wall_seconds, 20);
}

TEST_P(LauncherTest, StopsARunThatIsDecided) {
  const Run run = FakeRun("decided", "completes", {{"steps", 100'000}, {"fake.step_ms", 1}});
  const RunResult result =
      RunOne(run, {}, [](const Run&, const RunTrace& trace) { return trace.last_step(0) > 10; });
  EXPECT_EQ(result.end, RunEnd::kDecided) << result.detail;
  EXPECT_LT(result.trace.last_step(0), 99'999);
}

TEST_P(LauncherTest, StopsARunThatWritesTooMuch) {
  std::list<Run> runs = {FakeRun("stdout", "flood_stdout"), FakeRun("trace", "flood_trace"),
                         FakeRun("good", "completes")};
  const auto results =
      RunFakes(runs, GetParam(), [](LauncherOptions& options) { options.disk_bytes = 8 << 20; });
  for (const char* id : {"stdout", "trace"}) {
    const RunResult& result = results.at(id);
    EXPECT_EQ(result.end, RunEnd::kDiskBudget) << id << ": " << result.detail;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(result.folder)) {
      if (!entry.is_regular_file()) continue;
      EXPECT_LE(entry.file_size(), 1u << 20) << entry.path();
    }
  }
  EXPECT_EQ(results.at("good").end, RunEnd::kCompleted);
}

// Two that hang with their traces half written: neither has come to its end when both are too much.
TEST_P(LauncherTest, RunsThatGoOnShareTheMemoryOfTheirTraces) {
  std::list<Run> runs;
  for (const char* id : {"one", "other"}) {
    runs.push_back(FakeRun(id, "hangs", {{"steps", 4000}, {"fake.at", 2000}}));
    runs.back().policy.stall_seconds = 3;
  }
  runs.push_back(FakeRun("small", "completes"));
  const auto room = std::make_shared<TraceRoom>(100'000);  // one takes 65 kB
  const auto results = RunFakes(runs, GetParam(), [&](LauncherOptions& options) {
    options.cores = 4;
    options.room_of = [&](const Run&) { return room; };
  });
  const bool one_lost = results.at("one").end == RunEnd::kGarbage;
  const RunResult& lost = results.at(one_lost ? "one" : "other");
  EXPECT_EQ(lost.end, RunEnd::kGarbage) << lost.detail;
  EXPECT_NE(lost.detail.find("over their bound"), std::string::npos) << lost.detail;
  EXPECT_TRUE(lost.trace.series.empty());
  EXPECT_LT(lost.wall_seconds, 3);  // it was stopped
  EXPECT_EQ(results.at(one_lost ? "other" : "one").end, RunEnd::kStalled);
  EXPECT_FALSE(results.at(one_lost ? "other" : "one").trace.series.empty());
  EXPECT_EQ(results.at("small").end, RunEnd::kCompleted) << results.at("small").detail;
}

TEST_P(LauncherTest, WritesWhatTheFaultsOfTheRecipeChanged) {
  Run run = FakeRun("amended", "completes");
  run.amendments.push_back({"hot", "recipe.high_lr", "optimizer.lr", 0.1, 1.5});
  const RunResult result = RunOne(run);
  const auto fired = EventsNamed(result.trace, "fired");
  ASSERT_EQ(fired.size(), 1u);
  EXPECT_EQ(fired[0].fields["id"], "hot");
  EXPECT_EQ(fired[0].fields["before"], 0.1);
  EXPECT_EQ(fired[0].fields["after"], 1.5);
}

TEST_P(LauncherTest, ReplacesWhatAnEarlierRunLeft) {
  const std::string folder = FreshFolder("again");
  auto there = [&](LauncherOptions& options) { options.output_dir = folder; };
  const RunResult first = RunOne(FakeRun("again", "completes"), there);
  const RunResult second = RunOne(FakeRun("again", "completes", {{"steps", 5}}), there);
  EXPECT_EQ(second.end, RunEnd::kCompleted) << second.detail;
  EXPECT_EQ(second.trace.last_step(0), 4);
  EXPECT_EQ(EventsNamed(second.trace, "spawned").size(), 1u);
}

TEST_P(LauncherTest, SaysThatTheTargetCannotBeStarted) {
  const RunResult result = RunOne(FakeRun("missing", "completes"), [](LauncherOptions& options) {
    options.target.command = {"/no/such/program"};
  });
  EXPECT_EQ(result.end, RunEnd::kInfrastructure);
  EXPECT_NE(result.detail.find("/no/such/program"), std::string::npos) << result.detail;
}

}  // namespace
}  // namespace trainwreck
