// bisect --test: any command as the test, on small repositories of shell scripts that may be flaky;
// and what `run` has for a bisection by others.
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "harness/cli/tests/cli_testing.h"
#include "harness/protocol/json.h"

namespace trainwreck {
namespace {

// Commits "c0", "c1", ... on main, each with a script `test.sh` that a shell runs.
class Scripts {
 public:
  Scripts() {
    folder_.Write("git.sh",
                  "git init -q -b main repo && cd repo && git config user.name t && "
                  "git config user.email t@t\n");
    EXPECT_EQ(folder_.Shell("sh ./git.sh").status, 0);
  }
  // A line of commits; `script` has the text of commit i.
  template <typename Script>
  Scripts(int count, const Script& script) : Scripts() {
    for (int i = 0; i < count; ++i) Commit(script(i));
  }
  void Commit(const std::string& script, const std::string& file = "test.sh") {
    folder_.Write("repo/" + file, script + "\n# " + std::to_string(count_) + "\n");
    const Called made = Git("add . && git commit -q -m c" + std::to_string(count_));
    EXPECT_EQ(made.status, 0) << made.output();
    ids_.push_back(Git("rev-parse HEAD").out.substr(0, 40));
    ++count_;
  }
  Called Git(const std::string& arguments) const {
    return folder_.Shell("cd repo && git " + arguments);
  }
  Called Bisect(const std::string& arguments) const {
    return folder_.Shell("cd repo && '" + folder_.program() + "' bisect " + arguments);
  }
  // A bisection over all commits.
  Called Test(const std::string& more = "", const std::string& command = "sh ./test.sh") const {
    return Bisect("--test '" + command + "' --good " + ids_.front() + " --bad " + ids_.back() +
                  " " + more);
  }
  Json Result() const { return Json::parse(folder_.Read("repo/result.json")); }
  const std::string& id(int number) const { return ids_.at(number); }
  const CliFolder& folder() const { return folder_; }

 private:
  CliFolder folder_;
  std::vector<std::string> ids_;
  int count_ = 0;
};

// Fails in `percent` of the seeds.
std::string Flaky(int percent, int status = 1) {
  return "d=$(( (TRAINWRECK_SEED * 7919 + 31) % 100 ))\nif test $d -lt " + std::to_string(percent) +
         "; then exit " + std::to_string(status) + "; fi\nexit 0";
}

std::string Exit(int status) { return "exit " + std::to_string(status); }

TEST(BisectCommand, FindsAFlakyCulpritAndWritesIt) {
  const Scripts scripts(24, [](int i) { return Flaky(i >= 9 ? 60 : 0); });
  const Called called = scripts.Test("--json result.json");
  EXPECT_EQ(called.status, 0) << called.output();
  EXPECT_TRUE(Contains(called.out, "\nculprit\n  " + scripts.id(9) + " c9\n")) << called.out;
  const Json result = scripts.Result();
  EXPECT_EQ(result.at("schema"), "trainwreck/bisect-result");
  EXPECT_EQ(result.at("answer"), "culprit");
  ASSERT_EQ(result.at("culprits").size(), 1u);
  EXPECT_EQ(result.at("culprits")[0].at("id"), scripts.id(9));
  EXPECT_EQ(result.at("culprits")[0].at("subject"), "c9");
  EXPECT_GE(result.at("confidence").get<double>(), 0.95);
  EXPECT_EQ(result.at("bad_end").at("id"), scripts.id(23));
  EXPECT_EQ(result.at("before_it")[0].at("failed"), 0);
}

TEST(BisectCommand, WritesTheSearchAndItsPage) {
  const Scripts scripts(24, [](int i) { return Flaky(i >= 9 ? 60 : 0); });
  const Called called = scripts.Test("--json result.json --html result.html");
  EXPECT_EQ(called.status, 0) << called.output();
  const Json result = scripts.Result();
  const Json &commits = result.at("commits"), &trail = result.at("trail");
  ASSERT_EQ(commits.size(), 24u);
  ASSERT_EQ(trail.size(), result.at("runs").get<std::size_t>());
  std::map<int, int> failed;
  for (const Json& run : trail) failed[run.at("commit")] += run.at("saw") == "failed";
  double sum = result.at("no_change");
  for (int i = 0; i < 24; ++i) {
    EXPECT_EQ(commits[i].at("id"), scripts.id(i));
    EXPECT_EQ(commits[i].at("failed"), failed[i]) << i;
    EXPECT_EQ(commits[i].at("posterior"), trail.back().at("posterior")[i]) << i;
    sum += commits[i].at("posterior").get<double>();
  }
  EXPECT_NEAR(sum, 1, 0.002);
  EXPECT_GT(commits[9].at("posterior"), 0.9);
  EXPECT_LT(trail.front().at("posterior")[9], 0.5);
  EXPECT_EQ(trail.back().at("confidence"), result.at("confidence"));
  const std::string page = scripts.folder().Read("repo/result.html");
  EXPECT_TRUE(Contains(page, "the culprit is " + scripts.id(9).substr(0, 8)));
  const Called again = scripts.folder().Call("report repo/result.json --report html=again.html");
  EXPECT_EQ(again.status, 0) << again.output();
  EXPECT_EQ(scripts.folder().Read("again.html"), page);
  EXPECT_EQ(scripts.folder().Call("bisect --replay x --html x.html").status, 2);
}

TEST(BisectCommand, HasTheStatusesOfGitBisectRun) {
  for (int status : {1, 124, 126, 127}) {
    const Scripts scripts(6, [&](int i) { return Exit(i >= 3 ? status : 0); });
    const Called called = scripts.Test();
    EXPECT_EQ(called.status, 0) << called.output();
    EXPECT_TRUE(Contains(called.out, scripts.id(3))) << called.out;
  }
  const Scripts skipping(8, [](int i) { return Exit(i == 3 ? 125 : i >= 4 ? 1 : 0); });
  const Called skipped = skipping.Test("--json result.json");
  EXPECT_EQ(skipped.status, 0) << skipped.output();
  EXPECT_EQ(skipping.Result().at("answer"), "range");
  EXPECT_EQ(skipping.Result().at("culprits").size(), 2u);
  EXPECT_EQ(skipping.Result().at("skipped")[0].at("id"), skipping.id(3));
  int tries = 0;  // 125 is an answer: there is no second try
  for (std::size_t at = 0; (at = skipped.out.find(" skip ", at + 1)) != std::string::npos;) ++tries;
  EXPECT_EQ(tries, 1) << skipped.out;
}

TEST(BisectCommand, AnEndThatCannotBeTestedIsSaidAtOnce) {
  for (int end : {0, 5}) {
    const Scripts scripts(6, [&](int i) {
      return "echo x >>$COUNT\n" + Exit(i == end ? 125 : i >= 3 ? 1 : 0);
    });
    const std::string count = scripts.folder().path() + "/count";
    const Called called = scripts.Test("", "COUNT=" + count + " sh ./test.sh");
    EXPECT_EQ(called.status, 2) << called.output();
    EXPECT_TRUE(Contains(
        called.err, end == 0 ? "the good end cannot be tested" : "the bad end cannot be tested"))
        << called.err;
    EXPECT_TRUE(Contains(called.err, end == 0 ? "another --good" : "another --bad")) << called.err;
    EXPECT_LE(scripts.folder().Read("count").size(), 4u);  // no more than one run of each end
  }
}

TEST(BisectCommand, StatusesFrom128OnEndIt) {
  for (const std::string how : {"exit 128", "exit 255", "kill -9 $$"}) {
    const Scripts scripts(9, [&](int i) { return i == 4 ? how : Exit(i >= 6 ? 1 : 0); });
    const Called called = scripts.Test();
    EXPECT_EQ(called.status, 7) << called.output();
    EXPECT_TRUE(Contains(called.err, "128 and above end a bisection")) << called.err;
    EXPECT_TRUE(Contains(called.err, scripts.id(4))) << called.err;
    // What was seen before is not lost.
    EXPECT_TRUE(Contains(scripts.Test().out, "# goes on after")) << called.out;
  }
}

TEST(BisectCommand, GivesEachRunASeedAndTheCommit) {
  const std::string script =
      "echo $TRAINWRECK_SEED $TRAINWRECK_COMMIT $(git rev-parse HEAD) "
      ">>\"$SEEN\"\n";
  const Scripts scripts(12, [&](int i) { return script + Flaky(i >= 5 ? 100 : 0); });
  const std::string seen = scripts.folder().path() + "/seen";
  EXPECT_EQ(scripts.Test("", "SEEN=" + seen + " sh ./test.sh").status, 0);
  std::istringstream lines(scripts.folder().Read("seen"));
  std::set<int> seeds;
  int runs = 0, seed = 0;
  for (std::string commit, head; lines >> seed >> commit >> head; ++runs) {
    seeds.insert(seed);
    EXPECT_EQ(commit, head);
  }
  EXPECT_GT(runs, 5);
  EXPECT_EQ(static_cast<int>(seeds.size()), runs);
}

TEST(BisectCommand, SaysThatTheCommandIsNotThere) {
  const Scripts scripts(6, [](int i) { return Exit(i >= 3 ? 1 : 0); });
  scripts.folder().Write("repo/mine.sh", "exit 0\n");  // in no commit
  const Called called = scripts.Test("", "./mine.sh");
  EXPECT_EQ(called.status, 1) << called.output();
  EXPECT_TRUE(Contains(called.out, "always 127")) << called.out;
  EXPECT_TRUE(Contains(called.out, "needs its full path")) << called.out;
}

TEST(BisectCommand, TakesSkipsAndMarks) {
  const Scripts scripts(
      16, [](int i) { return "echo $TRAINWRECK_COMMIT >>\"$SEEN\"\n" + Exit(i >= 10 ? 1 : 0); });
  const std::string command = "SEEN=" + scripts.folder().path() + "/seen sh ./test.sh";
  const Called called = scripts.Test("--skip " + scripts.id(3) + ".." + scripts.id(6) + " --mark " +
                                         scripts.id(7) + "=good --mark " + scripts.id(12) + "=bad",
                                     command);
  EXPECT_EQ(called.status, 0) << called.output();
  EXPECT_TRUE(Contains(called.out, "\nculprit\n  " + scripts.id(10))) << called.out;
  const std::string seen = scripts.folder().Read("seen");
  for (int i : {1, 2, 3, 4, 5, 6, 7, 12, 13, 14}) {
    EXPECT_FALSE(Contains(seen, scripts.id(i))) << i;  // known, or it could tell nothing
  }
  // More is known later: the same question goes on, and the mark decides against the runs.
  const Called more = scripts.Test("--mark " + scripts.id(10) + "=good", command);
  EXPECT_EQ(more.status, 0) << more.output();
  EXPECT_TRUE(Contains(more.out, "# goes on after")) << more.out;
  EXPECT_TRUE(Contains(more.out, "\nculprit\n  " + scripts.id(11))) << more.out;
}

TEST(BisectCommand, SaysWhatIsWrongWithMarks) {
  const Scripts scripts(10, [](int i) { return Exit(i >= 5 ? 1 : 0); });
  auto fails = [&](const std::string& more, const std::string& message) {
    const Called called = scripts.Test("--fresh " + more);
    EXPECT_EQ(called.status, 2) << called.output();
    EXPECT_TRUE(Contains(called.err, message)) << called.err;
  };
  fails("--mark " + scripts.id(3), "say REV=good");
  fails("--mark " + scripts.id(3) + "=slow", "REV=good, REV=bad or REV=skip");
  fails("--mark " + scripts.id(0) + "=good", "is an end");
  fails("--skip " + scripts.id(9), "is an end");
  fails("--skip nowhere", "no such commit");
  fails("--mark " + scripts.id(3) + "=bad --mark " + scripts.id(6) + "=good", "contradict");
  fails("--term-old skip", "two words");
  fails("--json nowhere/result.json", "cannot be written");
  const std::string ends = " --good " + scripts.id(0) + " --bad " + scripts.id(9);
  const Called two = scripts.Bisect("fake/x --test true" + ends);
  EXPECT_TRUE(Contains(two.err, "are two tests")) << two.err;
  const Called metric = scripts.Bisect("--test true --metric 'loss < 1'" + ends);
  EXPECT_TRUE(Contains(metric.err, "only its exit status")) << metric.err;
}

TEST(BisectCommand, UsesTheUsersTerms) {
  const Scripts scripts(10, [](int i) { return Exit(i >= 5 ? 1 : 0); });
  const Called called = scripts.Bisect(
      "--test 'sh ./test.sh' --term-old fast --term-new slow --old " + scripts.id(0) + " --new " +
      scripts.id(9) + " --mark " + scripts.id(2) + "=fast --json result.json");
  EXPECT_EQ(called.status, 0) << called.output();
  EXPECT_TRUE(Contains(called.out, "culprit: the first slow commit\n  " + scripts.id(5)))
      << called.out;
  EXPECT_TRUE(Contains(called.out, "search  fast ")) << called.out;
  EXPECT_FALSE(Contains(called.out, "fail")) << called.out;
  EXPECT_EQ(scripts.Result().at("terms"), Json({"fast", "slow"}));
}

TEST(BisectCommand, KeepsToPaths) {
  Scripts scripts;
  const std::string script =
      "echo $TRAINWRECK_COMMIT >>\"$SEEN\"\ngrep -q broken part && exit 1\n"
      "exit 0";
  scripts.Commit(script);
  scripts.Commit("sound", "part");
  for (int i = 2; i < 20; ++i) {
    scripts.Commit(i >= 13 ? "broken" : "sound", i % 4 == 1 ? "part" : "other");
  }
  const std::string command = "SEEN=" + scripts.folder().path() + "/seen sh ./test.sh";
  const Called called = scripts.Test("-- part", command);
  EXPECT_EQ(called.status, 0) << called.output();
  EXPECT_TRUE(Contains(called.out, "# 5 commits after")) << called.out;
  EXPECT_TRUE(Contains(called.out, "c17 is the last one that changes a path")) << called.out;
  EXPECT_TRUE(Contains(called.out, "\nculprit\n  " + scripts.id(13))) << called.out;
  for (int i : {2, 3, 12, 14, 18, 19}) {
    EXPECT_FALSE(Contains(scripts.folder().Read("seen"), scripts.id(i))) << i;
  }
  const Called none = scripts.Test("-- nothing", command);
  EXPECT_EQ(none.status, 2) << none.output();
  EXPECT_TRUE(Contains(none.err, "changes what is named after '--'")) << none.err;
}

// main: 0 1 2 3 [merge of 4 5 6] 8; the side branch begins at 1, and its 5 breaks.
class Branches : public Scripts {
 public:
  Branches() {
    for (int i = 0; i < 4; ++i) Commit(Exit(0), i == 0 ? "test.sh" : "main");
    EXPECT_EQ(Git("checkout -q -b side HEAD~2").status, 0);
    for (int i = 4; i < 7; ++i) Commit(Exit(i >= 5 ? 1 : 0), "test.sh");
    EXPECT_EQ(Git("checkout -q main && git merge -q --no-ff -m merge side").status, 0);
    merge = Git("rev-parse HEAD").out.substr(0, 40);
    Commit("x", "main");
  }
  std::string merge;
};

TEST(BisectCommand, FollowsFirstParents) {
  const Branches branches;
  const Called all = branches.Test();
  EXPECT_TRUE(Contains(all.out, "\nculprit\n  " + branches.id(5))) << all.output();
  const Called first = branches.Test("--first-parent");
  EXPECT_TRUE(Contains(first.out, "\nculprit\n  " + branches.merge)) << first.output();
}

TEST(BisectCommand, LeavesOutWhatAnyGoodEndHas) {
  const Branches branches;
  const Called called = branches.Test("--good " + branches.id(4) + " --good " + branches.id(3));
  EXPECT_TRUE(Contains(called.out, "# 4 commits after")) << called.out;  // 5, 6, the merge, 8
  EXPECT_TRUE(Contains(called.out, "\nculprit\n  " + branches.id(5))) << called.output();
}

TEST(BisectCommand, ATestThatHangsSaysNothing) {
  const Scripts scripts(6, [](int i) { return i == 3 ? "exec sleep 1000" : Exit(i > 3 ? 1 : 0); });
  const Called called = scripts.Test("--test-limit 2");
  EXPECT_EQ(called.status, 0) << called.output();
  EXPECT_TRUE(Contains(called.out, "takes longer than --test-limit")) << called.out;
  EXPECT_TRUE(Contains(called.out, "one of these")) << called.out;
}

TEST(BisectCommand, RunGivesTheCodesOfGitBisect) {
  const CliFolder folder;
  folder.WritePassing("ok");
  folder.Write("scenarios/fake/bad.yaml", folder.Read("scenarios/fake/ok.yaml"));
  EXPECT_EQ(folder
                .Shell("sed -i 's/fake.ok/fake\\/bad/; s/loss > 1/loss > 100/' "
                       "scenarios/fake/bad.yaml")
                .status,
            0);
  EXPECT_EQ(folder.Call("run fake/ok --bisect-codes").status, 0);
  EXPECT_EQ(folder.Call("run fake/bad --bisect-codes").status, 1);
  EXPECT_EQ(folder.Call("run fake/ok --seeds 1 --bisect-codes").status, 125);
  EXPECT_EQ(folder.Call("run fake/ok --target /bin/true --bisect-codes").status, 125);
  EXPECT_EQ(folder.Call("run fake/none --bisect-codes").status, 128);
}

TEST(BisectCommand, RunJudgesEachSeedByItself) {
  const CliFolder folder;
  folder.WritePassing("ok", "", "5");
  const Called called = folder.Call("run fake/ok --each-seed 7:9 --output out --keep all");
  EXPECT_EQ(called.status, 0) << called.output();
  EXPECT_TRUE(Contains(called.out, "fake/ok@7")) << called.out;
  EXPECT_TRUE(Contains(called.out, "fake/ok@8")) << called.out;
  EXPECT_TRUE(folder.Has("out/fake/ok/fault/8/rank0.jsonl"));
  EXPECT_TRUE(Contains(folder.Read("out/fake/ok/fault/8/run.json"), "\"seed\": 8"));
}

}  // namespace
}  // namespace trainwreck
