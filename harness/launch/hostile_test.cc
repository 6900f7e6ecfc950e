// Targets that fight back, and harnesses that die: afterwards nothing of them may be left, and the
// runs beside them must be as if alone. The program starts itself again as the harness that is to
// die.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "harness/launch/fake_runs.h"
#include "harness/process/interruption.h"

namespace trainwreck {
namespace {

constexpr double kPatienceSeconds = 20;
constexpr double kBurialSeconds = 5;

std::string MarkerVariable() { return "TRAINWRECK_TEST_MARKER"; }

// Runs this program as a harness: its processes carry the marker.
class Harness {
 public:
  Harness(const std::string& what, Isolation isolation)
      : marker_("m" + std::to_string(getpid()) + "." + std::to_string(++count_) + "."),
        folder_(FreshFolder("harness")) {
    pid_ = fork();
    if (pid_ != 0) return;
    setenv(MarkerVariable().c_str(), marker_.c_str(), 1);
    setenv("TRAINWRECK_FAKE_TARGET", FakeTargetPath().c_str(), 1);
    execl("/proc/self/exe", "hostile_test", "--harness", what.c_str(),
          isolation == Isolation::kFork ? "fork" : "exec", folder_.c_str(), nullptr);
    _exit(127);
  }

  // Waits for so many processes with the marker.
  bool AwaitProcesses(std::size_t count) {
    const auto deadline =
        std::chrono::steady_clock::now() + std::chrono::duration<double>(kPatienceSeconds);
    while (Processes().size() < count) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      poll(nullptr, 0, 5);
    }
    return true;
  }
  // Waits until the launcher has heard of them.
  bool AwaitSpawns(int count) {
    const auto deadline =
        std::chrono::steady_clock::now() + std::chrono::duration<double>(kPatienceSeconds);
    for (;;) {
      int spawns = 0;
      for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_)) {
        if (entry.path().filename() != "launcher.jsonl") continue;
        std::ifstream file(entry.path());
        for (std::string line; std::getline(file, line);) ++spawns;
      }
      if (spawns >= count) return true;
      if (std::chrono::steady_clock::now() > deadline) return false;
      poll(nullptr, 0, 5);
    }
  }
  std::vector<int> Processes() { return ProcessesWith(MarkerVariable() + "=" + marker_); }
  std::vector<int> Survivors() {
    return AwaitNoProcessWith(MarkerVariable() + "=" + marker_, kBurialSeconds);
  }
  int End(int signal) {
    if (signal != 0) kill(pid_, signal);
    int status = 0;
    waitpid(pid_, &status, 0);
    return status;
  }
  const std::string& folder() const { return folder_; }

 private:
  static inline int count_ = 0;
  std::string marker_;
  std::string folder_;
  pid_t pid_;
};

// The other side.
int HarnessMain(const std::string& what, const std::string& isolation, const std::string& folder) {
  std::list<Run> runs;
  for (int i = 0; i < 3; ++i) {
    runs.push_back(FakeRun("run/" + std::to_string(i), what, {{"parallel.ranks", i == 0 ? 2 : 1}}));
  }
  signal(SIGINT, Interrupt);
  const auto results = RunFakes(runs, isolation == "fork" ? Isolation::kFork : Isolation::kExec,
                                [&](LauncherOptions& options) {
                                  options.output_dir = folder;
                                  options.cores = 4;
                                });
  return WasInterrupted() && results.empty() ? 130 : 0;
}

class HostileTest : public testing::TestWithParam<Isolation> {
 protected:
  using Run = trainwreck::Run;
};

INSTANTIATE_TEST_SUITE_P(Isolation, HostileTest,
                         testing::Values(Isolation::kFork, Isolation::kExec), [](const auto& info) {
                           return info.param == Isolation::kFork ? "Fork" : "Exec";
                         });

TEST_P(HostileTest, NothingOutlivesAHarnessThatIsKilled) {
  // The harness, its server, three guards, four ranks, four that hide.
  Harness harness("hides_and_hangs", GetParam());
  ASSERT_TRUE(harness.AwaitProcesses(13));
  ASSERT_TRUE(harness.AwaitSpawns(4));
  harness.End(SIGKILL);
  EXPECT_TRUE(harness.Survivors().empty());
  // What it wrote so far is whole, and the folder can be used again.
  int records = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(harness.folder())) {
    if (entry.path().extension() != ".jsonl") continue;
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line); ++records) {
      EXPECT_TRUE(Json::parse(line, nullptr, false).is_object()) << entry.path() << ": " << line;
    }
  }
  EXPECT_GT(records, 0);
  auto again = RunFakes({FakeRun("run/0", "completes")}, GetParam(),
                        [&](LauncherOptions& options) { options.output_dir = harness.folder(); });
  EXPECT_EQ(again.at("run/0").end, RunEnd::kCompleted) << again.at("run/0").detail;
}

TEST_P(HostileTest, NothingOutlivesAnInterruptedHarness) {
  Harness harness("hides_and_hangs", GetParam());
  ASSERT_TRUE(harness.AwaitProcesses(13));
  const int status = harness.End(SIGINT);
  EXPECT_EQ(WEXITSTATUS(status), 130);
  EXPECT_TRUE(harness.Processes().empty());  // at once: RunAll returns when all is gone
}

TEST_P(HostileTest, StopsFloodsOfEveryKind) {
  std::list<Run> runs = {FakeRun("line", "flood_line"), FakeRun("events", "flood_events"),
                         FakeRun("good", "completes", {{"fake.step_ms", 20}})};
  const auto results = RunFakes(runs, GetParam());
  // Whichever is seen first: what it wrote, or how much.
  for (const auto& [id, what] :
       {std::pair{"line", "the line is too long"}, std::pair{"events", "too many events"}}) {
    const RunResult& result = results.at(id);
    if (result.end == RunEnd::kDiskBudget) continue;
    EXPECT_EQ(result.end, RunEnd::kGarbage) << id << ": " << result.detail;
    EXPECT_NE(result.detail.find(what), std::string::npos) << id << ": " << result.detail;
  }
  EXPECT_EQ(results.at("good").end, RunEnd::kCompleted) << results.at("good").detail;
}

TEST_P(HostileTest, CatchesAProcessThatFlickers) {
  const auto results =
      RunFakes({FakeRun("flickers", "flickers"), FakeRun("good", "completes")}, GetParam());
  EXPECT_EQ(results.at("flickers").end, RunEnd::kLeak) << results.at("flickers").detail;
  EXPECT_EQ(results.at("good").end, RunEnd::kCompleted);
}

// A file system of one MiB below `folder`, in a mount namespace of this process alone.
bool MountTinyDisk(const std::string& folder) {
  std::filesystem::create_directories(folder);
  return unshare(CLONE_NEWNS) == 0 &&
         mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount("tiny", folder.c_str(), "tmpfs", 0, "size=1m") == 0;
}

TEST_P(HostileTest, AFullDiskHurtsOnlyTheRunsOnIt) {
  const std::string folder = FreshFolder("disk");
  const std::string full = folder + "/full";
  if (!MountTinyDisk(full)) {
    GTEST_SKIP() << "NOT TESTED: mounting a tiny file system needs root: " << std::strerror(errno);
  }
  auto there = [&](LauncherOptions& options) { options.output_dir = folder; };
  const auto filled = RunFakes({FakeRun("full/a", "fills_disk"), FakeRun("other/a", "completes")},
                               GetParam(), there);
  EXPECT_EQ(filled.at("full/a").end, RunEnd::kInfrastructure) << filled.at("full/a").detail;
  EXPECT_EQ(filled.at("other/a").end, RunEnd::kCompleted) << filled.at("other/a").detail;
  // Now it is full before the run begins.
  const auto results = RunFakes({FakeRun("full/b", "completes"), FakeRun("other/b", "completes")},
                                GetParam(), there);
  EXPECT_EQ(results.at("full/b").end, RunEnd::kInfrastructure);
  EXPECT_NE(results.at("full/b").detail.find("No space left on device"), std::string::npos)
      << results.at("full/b").detail;
  EXPECT_EQ(results.at("other/b").end, RunEnd::kCompleted) << results.at("other/b").detail;
  umount2(full.c_str(), MNT_DETACH);
}

// A program that is told so by write(2) ends with an error of its own.
TEST_P(HostileTest, SaysThatAProgramEndedAtTheLimitOfAFile) {
  std::list<Run> runs = {FakeRun("big", "fills_disk")};
  const RunResult result = RunFakes(runs, GetParam(), [](LauncherOptions& options) {
                             options.target.disk_bytes = 8 << 20;
                           }).at("big");
  EXPECT_EQ(result.end, RunEnd::kDiskBudget) << result.detail;
  EXPECT_GE(result.disk_bytes, 8 << 20);
  EXPECT_NE(result.detail.find("MiB, and a run may write 8 MiB: 'disk' in the 'budget' of the "
                               "target allows more; rank 0 exited with code 1"),
            std::string::npos)
      << result.detail;
  EXPECT_NE(result.detail.find("File too large"), std::string::npos) << result.detail;
}

int ParentOf(int pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  int parent = 0;
  char state = 0;
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return 0;
  return std::sscanf(text.c_str() + name_end + 1, " %c %d", &state, &parent) == 2 ? parent : 0;
}

TEST_P(HostileTest, ReportsAGuardThatWasKilled) {
  bool killed = false;
  const auto results =
      RunFakes({FakeRun("unguarded", "completes", {{"steps", 100'000}, {"fake.step_ms", 1}}),
                FakeRun("good", "completes", {{"fake.step_ms", 10}})},
               GetParam(), {}, [&](const Run& run, const RunTrace& trace) {
                 const auto spawned = EventsNamed(trace, "spawned");
                 if (run.id == "unguarded" && !killed && !spawned.empty()) {
                   kill(ParentOf(spawned[0].fields["pid"].get<int>()), SIGKILL);
                   killed = true;
                 }
                 return false;
               });
  EXPECT_TRUE(killed);
  EXPECT_EQ(results.at("unguarded").end, RunEnd::kInfrastructure);
  EXPECT_NE(results.at("unguarded").detail.find("guard"), std::string::npos);
  EXPECT_EQ(results.at("good").end, RunEnd::kCompleted) << results.at("good").detail;
}

TEST_P(HostileTest, ReplacesASpawnServerThatWasKilled) {
  std::list<Run> runs = {FakeRun("first", "completes", {{"fake.step_ms", 20}})};
  for (int i = 0; i < 4; ++i) runs.push_back(FakeRun("later/" + std::to_string(i), "completes"));
  runs.front().cost = 10;
  bool killed = false;
  const auto results = RunFakes(
      runs, GetParam(), [](LauncherOptions& options) { options.cores = 1; },
      [&](const Run& run, const RunTrace& trace) {
        const auto spawned = EventsNamed(trace, "spawned");
        if (run.id == "first" && !killed && !spawned.empty()) {
          kill(ParentOf(ParentOf(spawned[0].fields["pid"].get<int>())), SIGKILL);
          killed = true;
        }
        return false;
      });
  EXPECT_TRUE(killed);
  ASSERT_EQ(results.size(), 5u);
  for (const auto& [id, result] : results) {
    EXPECT_EQ(result.end, RunEnd::kCompleted) << id << ": " << result.detail;
  }
}

}  // namespace
}  // namespace trainwreck

int main(int argc, char** argv) {
  if (argc == 5 && std::string(argv[1]) == "--harness") {
    return trainwreck::HarnessMain(argv[2], argv[3], argv[4]);
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
