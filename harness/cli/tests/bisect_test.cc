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
#include <sstream>
#include <string>
#include <vector>

#include "harness/cli/tests/cli_testing.h"
#include "harness/protocol/json.h"

namespace trainwreck {
namespace {

// What a commit's header says. The target fails in `fail_percent` of the seeds.
struct Commit {
  int fail_percent = 0;
  bool builds = true;
  bool is_comment = false;  // the same program as the commit before
  bool crashes = false;     // another failure than the one that is looked for
  int merges = -1;          // also a child of the commit of this number
  int parent = -1;          // -1: the one before
  bool hangs = false;       // its build does
  std::string declaration;  // trainwreck.yaml
};

// Stands before the fake target: slows the descent in some seeds, so that the symptom shows in
// control as well.
constexpr const char* kTarget = R"(
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "behaviour.h"
static char text[1 << 20];
static char changed[1 << 20];
int main(int argc, char** argv) {
  char* fake = getenv("FAKE");
  if (argc > 1 && strcmp(argv[1], "--describe") == 0) {
    char line[4096];
    snprintf(line, sizeof line, "'%s' --describe | sed 's/fork-server/plain/'", fake);
    return system(line) != 0;
  }
  FILE* file = fopen(getenv("TRAINWRECK_PLAN"), "r");
  text[fread(text, 1, sizeof text - 1, file)] = 0;
  fclose(file);
  if (CRASHES) abort();
  unsigned seed = atoi(strstr(text, "\"seed\":") + 7);
  unsigned draw = (seed + 1) * 2654435761u;
  draw ^= draw >> 15; draw *= 2246822519u; draw ^= draw >> 13;
  char* rate = strstr(text, "\"optimizer.lr\":") + 15;
  double lr = atof(rate) * (draw % 100 < FAIL_PERCENT ? 0.02 : 1.0);
  char* rest = rate + strcspn(rate, ",}");
  snprintf(changed, sizeof changed, "%.*s%.17g%s", (int)(rate - text), text, lr, rest);
  char path[4096];
  snprintf(path, sizeof path, "%s/changed.json", getenv("TRAINWRECK_TRACE"));
  file = fopen(path, "w");
  fputs(changed, file);
  fclose(file);
  setenv("TRAINWRECK_PLAN", path, 1);
  fprintf(stderr, "%s\n", revision);
  execl(fake, fake, (char*)0);
  return 1;
}
)";

class Repo {
 public:
  explicit Repo(const std::vector<Commit>& commits) {
    folder_.Write("import", Stream(commits));
    folder_.Write("setup",
                  "git init -q . && git config user.name t && git config user.email t@t && "
                  "git fast-import --quiet <import && git checkout -q main && rm import setup && "
                  "printf '/cache\n/builds\n' >>.git/info/exclude && "
                  "git rev-list --reverse --topo-order main >order && "
                  "git log --reverse --topo-order --format='%H %s' main >ids\n");
    const Called made = folder_.Shell("sh ./setup");
    EXPECT_EQ(made.status, 0) << made.output();
    std::istringstream lines(folder_.Read("ids"));
    ids_.resize(commits.size());
    for (std::string id, word, number; lines >> id >> word >> number;) {
      ids_.at(std::stoul(number)) = id;
    }
    // The passing scenario of other tests, here as the test.
    folder_.WritePassing("slow", "", "1");
  }

  static std::string Data(const std::string& text) {
    return "data " + std::to_string(text.size()) + "\n" + text + "\n";
  }

  static std::string Stream(const std::vector<Commit>& commits) {
    std::string stream;
    int revision = 0;
    for (std::size_t i = 0; i < commits.size(); ++i) {
      const Commit& commit = commits[i];
      if (!commit.is_comment) revision = static_cast<int>(i);
      stream += "commit refs/heads/main\nmark :" + std::to_string(i + 1) + "\ncommitter t <t@t> " +
                std::to_string(1000000 + i) + " +0000\n" + Data("commit " + std::to_string(i));
      if (i > 0) {
        const int parent = commit.parent >= 0 ? commit.parent : static_cast<int>(i) - 1;
        stream += "from :" + std::to_string(parent + 1) + "\n";
      }
      if (commit.merges >= 0) stream += "merge :" + std::to_string(commit.merges + 1) + "\n";
      stream += "M 100644 inline train.c\n" + Data(kTarget);
      if (commit.hangs) stream += "M 100644 inline hangs\n" + Data("");
      if (!commit.hangs && i > 0 && commits[i - 1].hangs) stream += "D hangs\n";
      if (!commit.declaration.empty()) {
        stream += "M 100644 inline stack/trainwreck.yaml\n" + Data(commit.declaration);
      } else if (i > 0 && !commits[i - 1].declaration.empty()) {
        stream += "D stack/trainwreck.yaml\n";
      }
      stream += "M 100644 inline .gitignore\n" + Data("/train\n");
      stream += "M 100644 inline behaviour.h\n" +
                Data("// commit " + std::to_string(i) + "\n#define FAIL_PERCENT " +
                     std::to_string(commit.fail_percent) + "\n#define CRASHES " +
                     (commit.crashes ? "1" : "0") + "\nstatic const char* revision = \"" +
                     std::to_string(revision) + "\";\n" + (commit.builds ? "" : "#error broken\n"));
    }
    return stream + "done\n";
  }

  // The command line of a bisection of all commits; `build` goes before the compiler.
  std::string Command(const std::string& more = "", const std::string& build = "") const {
    return "bisect fake/slow --good " + ids_.front() + " --bad " + ids_.back() +
           " --target train --build '" + build + "gcc -O1 -o train train.c && echo x >>" +
           folder_.path() + "/builds' " + more;
  }
  Called Bisect(const std::string& more = "", const std::string& build = "") const {
    return folder_.Call(Command(more, build), "FAKE='" + folder_.target() + "'");
  }

  int Builds() const {
    const std::string lines = folder_.Read("builds");
    return static_cast<int>(lines.size() / 2);
  }
  std::vector<Json> Log() const {
    const std::string path = folder_.Shell("cat .trainwreck/bisect/*/log.jsonl").out;
    std::istringstream lines(path);
    std::vector<Json> records;
    for (std::string line; std::getline(lines, line);) {
      records.push_back(Json::parse(line, nullptr, false));
    }
    return records;
  }
  // What must be as it was: checkout, index, stashes, branches, worktrees.
  std::string State() const {
    return folder_
        .Shell(
            "git rev-parse HEAD && git symbolic-ref HEAD && git status --porcelain && git stash "
            "list && "
            "git for-each-ref && git worktree list | wc -l && git ls-files --stage | sort")
        .out;
  }

  std::string Short(int number) const { return ids_.at(number).substr(0, 7); }
  const std::string& id(int number) const { return ids_.at(number); }
  const CliFolder& folder() const { return folder_; }

 private:
  CliFolder folder_;
  std::vector<std::string> ids_;
};

std::string Culprits(const Called& called) {
  const std::size_t begin = called.out.find("\nculprit\n");
  if (begin == std::string::npos) return "";
  return called.out.substr(begin + 9, called.out.find("confidence", begin) - begin - 9);
}

std::vector<Commit> Line(int count, int culprit, int fail_percent) {
  std::vector<Commit> commits(count);
  for (int i = culprit; i < count; ++i) commits[i].fail_percent = fail_percent;
  return commits;
}

TEST(Bisect, FindsTheCommitAmongBrokenAndEmptyOnes) {
  std::vector<Commit> commits = Line(70, 41, 100);
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
  const auto runs = [](const std::vector<Commit>& commits, int culprit) {
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
    std::vector<Commit> commits = Line(65, culprit, 70);
    of_many += runs(commits, culprit);
    for (int i = 1; i < 65; ++i) commits[i].is_comment = i != culprit;
    of_two_programs += runs(commits, culprit);
  }
  EXPECT_LT(of_two_programs, of_many);
}

TEST(Bisect, UnbuildableNeighboursAreARange) {
  std::vector<Commit> commits = Line(30, 14, 100);
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
  std::vector<Commit> commits(30);
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
  std::vector<Commit> commits(30);
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
  std::vector<Commit> commits(12);
  for (int i = 1; i < 12; ++i) commits[i].is_comment = true;
  const Repo repo(commits);
  const Called called = repo.Bisect();
  EXPECT_EQ(called.status, 1) << called.output();
  EXPECT_TRUE(Contains(called.out, "both ends are the same program")) << called.out;
  EXPECT_EQ(repo.Builds(), 2);
}

TEST(Bisect, AnotherFailureIsNotTheOneLookedFor) {
  std::vector<Commit> commits = Line(40, 30, 100);
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

// Of a scenario's arms only those are run that the metric is about, one run for each seed.
TEST(Bisect, RunsOnlyTheArmOfTheMetric) {
  const Repo repo(Line(12, 7, 100));
  repo.folder().Write("cache/counted",
                      "test \"$1\" = --describe || echo $TRAINWRECK_TRACE "
                      ">>$SEEN\nexec \"$REAL\" \"$@\"\n");
  EXPECT_EQ(
      repo.folder().Shell("sed -i '1i #!/bin/sh' cache/counted && chmod +x cache/counted").status,
      0);
  const std::string folder = repo.folder().path() + "/cache/";
  for (const auto& [metric, has_fault] :
       {std::pair("last(loss[:]) < 2", false), std::pair("last(loss[:]) < fault.loss[0]", true)}) {
    repo.folder().Write("cache/seen", "");
    const Called called = repo.folder().Call(
        repo.Command("--json result.json --metric '" + std::string(metric) + "'"),
        "FAKE='" + folder + "counted' SEEN='" + folder + "seen' REAL='" + repo.folder().target() +
            "'");
    EXPECT_EQ(called.status, 0) << called.output();
    EXPECT_TRUE(Contains(Culprits(called), repo.id(7))) << called.output();
    const std::string seen = repo.folder().Read("cache/seen");
    EXPECT_TRUE(Contains(seen, "/control/")) << seen;
    EXPECT_EQ(Contains(seen, "/fault/"), has_fault) << seen;
    const Json result = Json::parse(repo.folder().Read("result.json"));
    EXPECT_EQ(result.at("culprits")[0].at("id"), repo.id(7));
    EXPECT_GE(result.at("good_end").at("margins").size(), 5u);
  }
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
    repo.folder().Shell("for tree in .git/worktrees/*; do touch $tree/index.lock; done");
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
  std::vector<Commit> commits = Line(3, 2, 100);
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
  std::vector<Commit> commits = Line(4, 2, 100);
  commits[2].hangs = true;
  const Repo repo(commits);
  repo.folder().Write("cache/pid", "");
  // What the build started does not end when it is told to.
  const std::string deaf = "{ trap \"\" TERM; sleep 10000; }";
  const Called called = repo.Bisect("--build-limit 15", HangingBuild(repo, deaf));
  EXPECT_EQ(called.status, 0) << called.output();
  EXPECT_TRUE(Contains(called.out, "commit 2: its build takes longer than --build-limit"))
      << called.out;
  EXPECT_TRUE(Contains(called.out, "one of these")) << called.out;
  while (IsAlive(std::atoi(repo.folder().Read("cache/pid").c_str()))) usleep(10000);
}

// Each commit's own declaration is read, never the one of the user's checkout, which lies above the
// worktree.
TEST(Bisect, TakesNamedTargetsFromTheCommit) {
  std::vector<Commit> commits = Line(24, 13, 100);
  for (Commit& commit : commits) {
    commit.declaration =
        "apiVersion: trainwreck/v1\nkind: Targets\ntargets:\n"
        "  ours: {level: 2, folder: .., command: [./train]}\n";
  }
  commits[11].declaration = "";  // a commit without one
  const Repo repo(commits);
  // In the checkout nothing is built, so taking it from there could not give an answer.
  const std::string from =
      "cd stack && FAKE='" + repo.folder().target() + "' '" + repo.folder().program() + "' ";
  const std::string ends =
      " --good " + repo.id(0) + " --bad " + repo.id(23) + " --build 'gcc -O1 -o train train.c'";
  for (const std::string target : {" --target ours", ""}) {
    const Called called = repo.folder().Shell(
        (target.empty() ? "unset TRAINWRECK_TARGET; " : "") + from +
        "bisect ../scenarios/fake/slow.yaml --scenarios-root ../scenarios" + ends + target);
    EXPECT_EQ(called.status, 0) << called.output();
    EXPECT_TRUE(Contains(Culprits(called), repo.Short(13))) << called.output();
    EXPECT_TRUE(Contains(called.out, "has no stack/trainwreck.yaml")) << called.output();
  }
}

// History from before the declaration: the build writes one.
TEST(Bisect, ABuildMayWriteTheDeclaration) {
  std::vector<Commit> commits = Line(16, 5, 100);
  commits.back().declaration =
      "apiVersion: trainwreck/v1\nkind: Targets\ntargets:\n"
      "  ours: {level: 2, folder: .., command: [./train]}\n";
  const Repo repo(commits);
  const std::string declaration = repo.folder().path() + "/stack/trainwreck.yaml";
  auto bisect = [&](const std::string& build) {
    return repo.folder().Shell("cd stack && '" + repo.folder().program() +
                                   "' bisect ../scenarios/fake/slow.yaml --scenarios-root "
                                   "../scenarios --target ours --good " +
                                   repo.id(0) + " --bad " + repo.id(15) + " --build '" + build +
                                   "gcc -O1 -o train train.c'",
                               "FAKE='" + repo.folder().target() + "'");
  };
  const Called called = bisect("mkdir -p stack && cp " + declaration + " stack/ && ");
  EXPECT_EQ(called.status, 0) << called.output();
  EXPECT_TRUE(Contains(Culprits(called), repo.id(5))) << called.output();
  const Called without = bisect("");
  EXPECT_EQ(without.status, 1) << without.output();
  EXPECT_TRUE(Contains(without.out, "has no stack/trainwreck.yaml, and its build wrote none"))
      << without.output();
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
