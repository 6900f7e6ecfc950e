// bisect from end to end: the built program on generated repositories of a small compiled target,
// whose commits fail at a known rate.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "harness/cli/tests/bisect_testing.h"

namespace trainwreck {
namespace {

TEST(Bisect, FindsTheCommitAmongBrokenAndEmptyOnes) {
  std::vector<TestCommit> commits = Line(70, 41, 100);
  for (int i : {5, 17, 18, 30, 52}) commits[i].builds = false;
  for (int i : {8, 25, 42, 43, 60}) commits[i].is_comment = true;
  const Repo repo(commits);
  repo.folder().Write("behaviour.h", "my own changes\n");
  EXPECT_EQ(repo.folder()
                .Shell("git stash -q && echo mine >behaviour.h && git add behaviour.h && "
                       "echo more >>behaviour.h")
                .status,
            0);
  const std::string before = repo.State();
  // No build finds what another one left behind.
  const Called called = repo.Bisect("", "test ! -e left && touch left && ");
  EXPECT_EQ(called.status, 0) << called.output();
  EXPECT_TRUE(Contains(Culprits(called), repo.Short(41))) << called.output();
  EXPECT_TRUE(Contains(called.out, "symptom_in_control ('stuck' in control)")) << called.out;
  EXPECT_TRUE(Contains(called.out, "behaviour.h |")) << called.out;
  EXPECT_EQ(repo.State(), before);
  EXPECT_EQ(repo.folder().Read("behaviour.h"), "mine\nmore\n");
  EXPECT_LE(repo.Builds(), 12);  // both ends, six halvings, and detours around broken ones
}

TEST(Bisect, FindsItThroughNoise) {
  const Repo repo(Line(65, 23, 60));
  const Called called = repo.Bisect();
  EXPECT_EQ(called.status, 0) << called.output();
  EXPECT_TRUE(Contains(Culprits(called), repo.Short(23))) << called.output();
  // The log says the same without git, runs and builds.
  const Called replayed = repo.folder().Call("bisect --replay .trainwreck/bisect/*/log.jsonl");
  EXPECT_EQ(replayed.status, 0) << replayed.output();
  EXPECT_TRUE(Contains(replayed.out, "culprit " + repo.id(23))) << replayed.out;
  std::set<int> seeds;
  for (const Json& record : repo.Log()) {
    if (record.at("t") != "run") continue;
    EXPECT_TRUE(seeds.insert(record.at("seed").get<int>()).second);
  }
}

// There are two programs only, so building a commit tells on which side of the culprit it lies,
// however noisy its runs are.
TEST(Bisect, ACommentCannotBeBlamed) {
  const auto runs = [](const std::vector<TestCommit>& commits, int culprit) {
    const Repo repo(commits);
    const Called called = repo.Bisect();
    EXPECT_EQ(called.status, 0) << called.output();
    EXPECT_TRUE(Contains(Culprits(called), repo.Short(culprit))) << called.output();
    int count = 0;
    for (const Json& record : repo.Log()) count += record.at("t") == "run";
    return count;
  };
  int of_two_programs = 0, of_many = 0;  // one culprit alone may have luck
  for (const int culprit : {9, 23, 44}) {
    std::vector<TestCommit> commits = Line(65, culprit, 70);
    of_many += runs(commits, culprit);
    for (int i = 1; i < 65; ++i) commits[i].is_comment = i != culprit;
    of_two_programs += runs(commits, culprit);
  }
  EXPECT_LT(of_two_programs, of_many);
}

TEST(Bisect, UnbuildableNeighboursAreARange) {
  std::vector<TestCommit> commits = Line(30, 14, 100);
  for (int i : {13, 14, 15}) commits[i].builds = false;
  const Repo repo(commits);
  const Called called = repo.Bisect();
  EXPECT_EQ(called.status, 0) << called.output();
  const std::size_t begin = called.out.find("one of these");
  ASSERT_NE(begin, std::string::npos) << called.out;
  const std::string range = called.out.substr(begin, called.out.find("confidence", begin) - begin);
  for (int i : {13, 14, 15, 16}) EXPECT_TRUE(Contains(range, repo.Short(i))) << range;
  EXPECT_FALSE(Contains(range, repo.Short(12))) << range;
  EXPECT_FALSE(Contains(range, repo.Short(17))) << range;
}

TEST(Bisect, FollowsASideBranch) {
  // 0..9 on the main line, 10..19 a side branch from 4 with the culprit 14, 20 merges it.
  std::vector<TestCommit> commits(30);
  commits[10].parent = 4;
  for (int i = 14; i < 20; ++i) commits[i].fail_percent = 100;
  commits[20].parent = 9;
  commits[20].merges = 19;
  for (int i = 20; i < 30; ++i) commits[i].fail_percent = 100;
  const Repo repo(commits);
  const Called called = repo.Bisect();
  EXPECT_TRUE(Contains(Culprits(called), repo.Short(14))) << called.output();
}

TEST(Bisect, BlamesAMergeWhoseParentsAreGood) {
  std::vector<TestCommit> commits(30);
  commits[10].parent = 4;
  commits[20].parent = 9;
  commits[20].merges = 19;
  for (int i = 20; i < 30; ++i) commits[i].fail_percent = 100;
  const Repo repo(commits);
  const Called called = repo.Bisect();
  EXPECT_TRUE(Contains(Culprits(called), repo.Short(20))) << called.output();
}

TEST(Bisect, BlamesNobodyWhenNothingChanged) {
  for (int percent : {0, 100}) {
    const Repo repo(Line(20, 0, percent));
    const Called called = repo.Bisect();
    EXPECT_EQ(called.status, 1) << called.output();
    EXPECT_EQ(Culprits(called), "");
    EXPECT_TRUE(Contains(called.out, percent == 0 ? "not reproduced: the bad end passes"
                                                  : "no change: the good end fails as well"))
        << called.out;
  }
}

TEST(Bisect, SaysThatBothEndsAreTheSameProgram) {
  std::vector<TestCommit> commits(12);
  for (int i = 1; i < 12; ++i) commits[i].is_comment = true;
  const Repo repo(commits);
  const Called called = repo.Bisect();
  EXPECT_EQ(called.status, 1) << called.output();
  EXPECT_TRUE(Contains(called.out, "both ends are the same program")) << called.out;
  EXPECT_EQ(repo.Builds(), 2);
}

TEST(Bisect, AnotherFailureIsNotTheOneLookedFor) {
  std::vector<TestCommit> commits = Line(40, 30, 100);
  for (int i = 12; i < 20; ++i) commits[i].crashes = true;
  const Repo repo(commits);
  const Called called = repo.Bisect();
  EXPECT_TRUE(Contains(Culprits(called), repo.Short(30))) << called.output();

  commits[0].crashes = true;  // and a good end that cannot be read gives no answer at all
  const Repo crashing(commits);
  const Called refused = crashing.Bisect();
  EXPECT_EQ(refused.status, 1) << refused.output();
  EXPECT_TRUE(Contains(refused.out, "the good end cannot be tested: fails otherwise: crash"))
      << refused.out;
}

TEST(Bisect, GoesByTheMarginOfAMetric) {
  const Repo repo(Line(40, 27, 100));
  const Called called = repo.Bisect("--metric 'last(loss[:]) < 2'");
  EXPECT_EQ(called.status, 0) << called.output();
  EXPECT_TRUE(Contains(Culprits(called), repo.Short(27))) << called.output();
}

TEST(Bisect, GoesOnAfterSigkill) {
  const Repo repo(Line(65, 50, 80));
  const std::string before = repo.State();
  int runs = 0;
  for (int kill_at : {3, 7}) {
    const std::string command = "FAKE='" + repo.folder().target() + "' TRAINWRECK_CACHE='" +
                                repo.folder().path() + "/cache' exec '" + repo.folder().program() +
                                "' " + repo.Command() + " >/dev/null 2>&1";
    const pid_t child = fork();
    if (child == 0) {
      if (chdir(repo.folder().path().c_str()) != 0) _exit(1);
      execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      _exit(1);
    }
    for (;;) {
      int seen = 0;
      for (const Json& record : repo.Log()) {
        seen += record.is_object() && record.value("t", "") == "run";
      }
      if (seen >= kill_at || waitpid(child, nullptr, WNOHANG) == child) break;
      usleep(10000);
    }
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    // As git leaves it that was killed with us.
    repo.folder().Shell(
        "for tree in .git/worktrees/*; do touch $tree/index.lock $tree/HEAD.lock; done");
    for (const Json& record : repo.Log()) {
      runs += record.is_object() && record.value("t", "") == "run";
    }
    EXPECT_GE(runs, kill_at);
    if (kill_at == 3) runs = 0;
  }
  const Called called = repo.Bisect();
  EXPECT_EQ(called.status, 0) << called.output();
  EXPECT_TRUE(Contains(called.out, "# goes on after ")) << called.out;
  EXPECT_TRUE(Contains(Culprits(called), repo.Short(50))) << called.output();
  EXPECT_EQ(repo.State(), before);
  // What was seen before counts: the log is one, and no seed was run twice.
  std::set<int> seeds;
  for (const Json& record : repo.Log()) {
    ASSERT_TRUE(record.is_object());
    if (record.at("t") != "run") continue;
    EXPECT_TRUE(seeds.insert(record.at("seed").get<int>()).second);
  }
  EXPECT_GE(static_cast<int>(seeds.size()), runs);
}

// A process of our own that runs a bisection.
class Background {
 public:
  Background(const Repo& repo, const std::string& arguments) {
    const std::string command = "FAKE='" + repo.folder().target() + "' TRAINWRECK_CACHE='" +
                                repo.folder().path() + "/cache' exec '" + repo.folder().program() +
                                "' " + arguments + " >/dev/null 2>.stderr";
    child_ = fork();
    if (child_ != 0) return;
    if (chdir(repo.folder().path().c_str()) != 0) _exit(1);
    execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    _exit(1);
  }
  // False when it ended before.
  bool WaitUntil(const std::function<bool()>& is_so) {
    while (!is_so()) {
      if (waitpid(child_, &status_, WNOHANG) == child_) return false;
      usleep(10000);
    }
    return true;
  }
  int Interrupt() {
    kill(child_, SIGINT);
    waitpid(child_, &status_, 0);
    return WIFEXITED(status_) ? WEXITSTATUS(status_) : -WTERMSIG(status_);
  }

 private:
  pid_t child_;
  int status_ = 0;
};

bool IsAlive(int pid) { return kill(pid, 0) == 0; }

// What a build begins with that hangs at some commits: a shell that waits for a child, whose number
// is left in cache/pid.
std::string HangingBuild(const Repo& repo, const std::string& child = "sleep 10000") {
  return "test ! -e hangs || { " + child + " & echo $! >" + repo.folder().path() +
         "/cache/pid; wait; }; ";
}

TEST(Bisect, GoesOnAfterCtrlC) {
  const Repo repo(Line(65, 50, 80));
  const std::string before = repo.State();
  auto runs = [&] {
    int count = 0;
    for (const Json& record : repo.Log()) {
      count += record.is_object() && record.value("t", "") == "run";
    }
    return count;
  };
  Background bisection(repo, repo.Command());
  ASSERT_TRUE(bisection.WaitUntil([&] { return runs() >= 5; }));
  EXPECT_EQ(bisection.Interrupt(), 130);
  EXPECT_TRUE(Contains(repo.folder().Read(".stderr"), "the same command goes on from here"));
  const int seen = runs();
  const Called called = repo.Bisect();
  EXPECT_EQ(called.status, 0) << called.output();
  EXPECT_TRUE(Contains(called.out, "# goes on after " + std::to_string(seen) + " runs"))
      << called.out;
  EXPECT_TRUE(Contains(Culprits(called), repo.Short(50))) << called.output();
  EXPECT_EQ(repo.State(), before);
}

TEST(Bisect, CtrlCWhileGitWorksIsNoFailureOfGit) {
  const Repo repo(Line(3, 2, 100));
  repo.folder().Write("cache/begun", "");
  // Every checkout takes git for ever.
  const Called made = repo.folder().Shell("git config filter.slow.smudge 'echo x >" +
                                          repo.folder().path() + "/cache/begun; sleep 10000' && " +
                                          "echo 'behaviour.h filter=slow' >.git/info/attributes");
  ASSERT_EQ(made.status, 0) << made.output();
  Background bisection(repo, repo.Command());
  ASSERT_TRUE(bisection.WaitUntil([&] { return !repo.folder().Read("cache/begun").empty(); }));
  EXPECT_EQ(bisection.Interrupt(), 130);
  EXPECT_TRUE(Contains(repo.folder().Read(".stderr"), "the same command goes on from here"));
  repo.folder().Shell("rm .git/info/attributes");
  EXPECT_TRUE(Contains(Culprits(repo.Bisect()), repo.Short(2)));
}

TEST(Bisect, CtrlCEndsABuildThatHangs) {
  std::vector<TestCommit> commits = Line(3, 2, 100);
  commits[2].hangs = true;
  const Repo repo(commits);
  repo.folder().Write("cache/pid", "");
  Background bisection(repo, repo.Command("", HangingBuild(repo)));
  int pid = 0;
  ASSERT_TRUE(bisection.WaitUntil(
      [&] { return (pid = std::atoi(repo.folder().Read("cache/pid").c_str())) > 0; }));
  EXPECT_EQ(bisection.Interrupt(), 130);
  while (IsAlive(pid)) usleep(10000);  // it was told to end, and whoever adopts it reaps it
}

TEST(Bisect, ABuildThatHangsIsASkip) {
  std::vector<TestCommit> commits = Line(4, 2, 100);
  commits[2].hangs = true;
  const Repo repo(commits);
  repo.folder().Write("cache/pid", "");
  // What the build started does not end when it is told to.
  const std::string deaf = "{ trap \"\" TERM; sleep 10000; }";
  const Called called = repo.Bisect("--build-limit 6", HangingBuild(repo, deaf));
  EXPECT_EQ(called.status, 0) << called.output();
  EXPECT_TRUE(Contains(called.out, "commit 2: its build takes longer than --build-limit"))
      << called.out;
  EXPECT_TRUE(Contains(called.out, "one of these")) << called.out;
  while (IsAlive(std::atoi(repo.folder().Read("cache/pid").c_str()))) usleep(10000);
}

// The program's header lies in a submodule, whose commits the repository's commits name.
TEST(Bisect, ChecksOutSubmodules) {
  const Repo repo(Line(2, 1, 0));
  repo.folder().Write("build.sh",
                      "set -e\nexport HOME=$PWD/home; mkdir home\n"
                      "git config --global protocol.file.allow always\n"
                      "git config --global user.name t; git config --global user.email t@t\n"
                      "git init -q home/part; git init -q home/whole\n"
                      "for i in 0 1 2 3 4 5 6 7 8 9; do cd $HOME/part\n"
                      "  echo \"#define FAIL_PERCENT $((i >= 6 ? 100 : 0))\" >behaviour.h\n"
                      "  echo \"#define CRASHES 0\" >>behaviour.h\n"
                      "  echo \"static const char* revision = \\\"$i\\\";\" >>behaviour.h\n"
                      "  git add . && git commit -q -m $i\n"
                      "  cd $HOME/whole; git show main:train.c >/dev/null 2>&1 || true\n"
                      "  test -d part || git submodule --quiet add $HOME/part part\n"
                      "  git -C part fetch -q && git -C part checkout -q FETCH_HEAD\n"
                      "  cp ../../train.c . && echo /train >.gitignore\n"
                      "  git add . && git commit -q -m \"whole $i\"\n"
                      "done\n"
                      "rm -rf $HOME/whole/part $HOME/whole/.git/modules\n");
  const Called made = repo.folder().Shell("sh -e ./build.sh");
  ASSERT_EQ(made.status, 0) << made.output();
  const Called called = repo.folder().Shell(
      "cd home/whole && '" + repo.folder().program() +
          "' bisect ../../scenarios/fake/slow.yaml --scenarios-root ../../scenarios --good HEAD~9 "
          "--bad HEAD --target train --build 'gcc -O1 -Ipart -o train train.c'",
      "HOME='" + repo.folder().path() + "/home' FAKE='" + repo.folder().target() + "'");
  EXPECT_EQ(called.status, 0) << called.output();
  EXPECT_TRUE(Contains(Culprits(called), "whole 6")) << called.output();
}

TEST(Bisect, SaysWhatIsWrongWithTheCommandLine) {
  const Repo repo(Line(3, 2, 100));
  auto fails = [&](const std::string& arguments, const std::string& message) {
    const Called called = repo.folder().Call(arguments);
    EXPECT_EQ(called.status, 2) << called.output();
    EXPECT_TRUE(Contains(called.err, message)) << called.err;
  };
  fails("bisect fake/slow --bad HEAD", "--good REV --bad REV");
  fails("bisect --good HEAD~1 --bad HEAD", "name a scenario");
  fails("bisect fake/slow --good nowhere --bad HEAD", "--good nowhere: no such commit");
  fails("bisect fake/slow --good HEAD --bad HEAD", "nothing lies between");
  fails("bisect fake/slow --good HEAD --bad HEAD~1", "an ancestor of --good");
  fails("bisect fake/slow --good HEAD~1 --bad HEAD --metric 'loss <'", "--metric");
  fails("bisect --replay nothing", "there is no file");
}

// Two scenarios that differ in harmless keys and in one or two that only together do harm.
TEST(Bisect, FindsTheChangeBetweenTwoRecipes) {
  const CliFolder folder;
  folder.WritePassing("good");
  auto write = [&](const std::string& name, const std::string& recipe) {
    EXPECT_EQ(folder
                  .Shell("sed 's#^recipe:.*#recipe: " + recipe + "#; s#fake/good#fake/" + name +
                         "#' scenarios/fake/good.yaml >scenarios/fake/" + name + ".yaml")
                  .status,
              0);
  };
  write("bad", "{steps: 21, optimizer.lr: 0.003, fake.at: 7, fake.rank: 0, fake.attempts: 2}");
  const Called one = folder.Call("bisect --between fake/good fake/bad");
  EXPECT_EQ(one.status, 0) << one.output();
  EXPECT_TRUE(Contains(one.out, "# 4 differences")) << one.out;
  EXPECT_TRUE(Contains(one.out, "this change flips the verdict\n  optimizer.lr: 0.2 -> 0.003\n"))
      << one.out;

  // 4 exp(-0.1 * 9) is above 1; with either change alone it is not.
  write("pair", "{steps: 10, optimizer.lr: 0.1, fake.at: 7}");
  const Called two = folder.Call("bisect --between fake/good fake/pair");
  EXPECT_EQ(two.status, 0) << two.output();
  EXPECT_TRUE(Contains(two.out,
                       "these changes together flip the verdict\n  optimizer.lr: 0.2 -> "
                       "0.1\n  steps: 20 -> 10\n"))
      << two.out;

  write("alike", "{steps: 21, optimizer.lr: 0.2}");
  const Called none = folder.Call("bisect --between fake/good fake/alike");
  EXPECT_EQ(none.status, 1) << none.output();
  EXPECT_TRUE(Contains(none.out, "not reproduced: the bad end passes")) << none.out;
  EXPECT_EQ(folder.Call("bisect --between fake/good fake/good").status, 2);
}

}  // namespace
}  // namespace trainwreck
