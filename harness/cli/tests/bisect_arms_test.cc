// What bisect runs of a commit: which arms of the scenario, and whose target.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "harness/cli/tests/bisect_testing.h"

namespace trainwreck {
namespace {

// Bisects with a target that leaves the folder of each of its runs in cache/seen.
Called BisectAndCount(const Repo& repo, const std::string& more) {
  const std::string folder = repo.folder().path() + "/cache/";
  repo.folder().Write("cache/seen", "");
  repo.folder().Write("cache/counted",
                      "#!/bin/sh\ntest \"$1\" = --describe || echo $TRAINWRECK_TRACE "
                      ">>$SEEN\nexec \"$REAL\" \"$@\"\n");
  EXPECT_EQ(repo.folder().Shell("chmod +x cache/counted").status, 0);
  return repo.folder().Call(repo.Command("--json result.json " + more),
                            "FAKE='" + folder + "counted' SEEN='" + folder + "seen' REAL='" +
                                repo.folder().target() + "'");
}

// Only the arms of the metric are run, with one run for each seed.
TEST(Bisect, RunsOnlyTheArmOfTheMetric) {
  const Repo repo(Line(12, 7, 100));
  for (const auto& [metric, has_fault] :
       {std::pair("last(loss[:]) < 2", false), std::pair("last(loss[:]) < fault.loss[0]", true)}) {
    const Called called = BisectAndCount(repo, "--metric '" + std::string(metric) + "'");
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

int CountOf(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++count;
  return count;
}

// All arms are run until the failure is known; here it is one of control, from the first run on.
TEST(Bisect, RunsControlAloneWhereItFails) {
  const Repo repo(Line(12, 7, 100));
  const Called called = BisectAndCount(repo, "-j 1");
  EXPECT_EQ(called.status, 0) << called.output();
  EXPECT_TRUE(Contains(Culprits(called), repo.id(7))) << called.output();
  const int seeds = Json::parse(repo.folder().Read("result.json")).at("runs");
  EXPECT_GE(seeds, 8);
  const std::string seen = repo.folder().Read("cache/seen");
  EXPECT_EQ(CountOf(seen, "/control/"), seeds) << seen;
  for (const char* arm : {"/fault/", "/faster/", "/slightly_faster/"}) {
    EXPECT_EQ(CountOf(seen, arm), 1) << arm;
  }
  EXPECT_EQ(CountOf(seen, "\n"), seeds + 3) << seen;
}

// Control's own claims need the reference arm where they name it.
TEST(Bisect, RunsTheArmsThatControlIsComparedWith) {
  const Repo repo(Line(12, 7, 100));
  repo.folder().WritePassing(
      "slow", "reference: true\nhealthy:\n  near: loss[0] < 1e9 + reference.loss[0]\n", "1");
  const Called called = BisectAndCount(repo, "-j 1");
  EXPECT_TRUE(Contains(Culprits(called), repo.id(7))) << called.output();
  const int seeds = Json::parse(repo.folder().Read("result.json")).at("runs");
  const std::string seen = repo.folder().Read("cache/seen");
  EXPECT_EQ(CountOf(seen, "/control/"), seeds) << seen;
  EXPECT_EQ(CountOf(seen, "/reference/"), seeds) << seen;
  EXPECT_EQ(CountOf(seen, "/fault/"), 1) << seen;
}

// Each commit's own declaration is read, never the one of the user's checkout, which lies above the
// worktree.
TEST(Bisect, TakesNamedTargetsFromTheCommit) {
  std::vector<TestCommit> commits = Line(24, 13, 100);
  for (TestCommit& commit : commits) {
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
  std::vector<TestCommit> commits = Line(16, 5, 100);
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

// What lies above the repository is the same program at every commit.
TEST(Bisect, RefusesATargetDeclaredOutside) {
  const Repo repo(Line(2, 1, 100));
  repo.folder().Write("trainwreck.yaml",
                      "apiVersion: trainwreck/v1\nkind: Targets\ntargets:\n"
                      "  ours: {level: 2, command: [./train]}\n");
  ASSERT_EQ(repo.folder().Shell("git clone -q . inner").status, 0);
  auto bisect = [&](const std::string& target) {
    return repo.folder().Shell("cd inner && '" + repo.folder().program() +
                                   "' bisect ../scenarios/fake/slow.yaml --scenarios-root "
                                   "../scenarios --good HEAD~1 --bad HEAD --build 'gcc -O1 -o "
                                   "train train.c' --target " +
                                   target,
                               "FAKE='" + repo.folder().target() + "'");
  };
  const Called refused = bisect("ours");
  EXPECT_EQ(refused.status, 2) << refused.output();
  EXPECT_TRUE(Contains(refused.err, "outside of the repository")) << refused.err;
  EXPECT_EQ(bisect("train").status, 0);
}

}  // namespace
}  // namespace trainwreck
