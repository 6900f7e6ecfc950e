// The history from outside: what `run` records, and what history, baseline and compare say of it.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "harness/cli/tests/cli_testing.h"

namespace trainwreck {
namespace {

using nlohmann::json;

class HistoryCliTest : public testing::Test {
 protected:
  void SetUp() override { folder.WritePassing("ok", "", "5"); }
  json Listed(const std::string& what = "") {
    const Called called = folder.Call("history " + what + " --format json");
    EXPECT_EQ(called.status, 0) << called.output();
    return json::parse(called.out);
  }
  CliFolder folder;
};

TEST_F(HistoryCliTest, EveryRunIsRecordedAndListed) {
  const Called run = folder.Call("run");
  ASSERT_EQ(run.status, 0) << run.output();
  EXPECT_TRUE(Contains(run.out, "# history: run 1 in .trainwreck/history.db")) << run.out;
  folder.Call("run --seeds 1");                // inconclusive
  folder.Call("run --set fake.mode=exits_7");  // an error
  folder.Call("run --arm fault --seed 0");     // no verdict, no record
  const json runs = Listed();
  EXPECT_EQ(runs["schema"], "trainwreck/history");
  ASSERT_EQ(runs["runs"].size(), 3U);
  EXPECT_EQ(runs["runs"][0]["counts"], json({{"error", 1}}));
  EXPECT_EQ(runs["runs"][1]["counts"], json({{"inconclusive", 1}}));
  EXPECT_EQ(runs["runs"][2]["counts"], json({{"pass", 1}}));
  EXPECT_EQ(runs["runs"][0]["target_digest"], runs["runs"][2]["target_digest"]);
  const json cases = Listed("fake/ok");
  ASSERT_EQ(cases["cases"].size(), 3U);
  const json& passed = cases["cases"][2];
  EXPECT_EQ(passed["environment"]["blas"], "none");
  EXPECT_FALSE(passed["environment"]["cpu"].empty());
  EXPECT_EQ(passed["trainings"].size(), 20U);
  EXPECT_NEAR(passed["trainings"][0]["step_seconds"].get<double>(), 0.001, 1e-9);
  EXPECT_GT(passed["trainings"][0]["final_signals"]["loss"], 0);
  // The overrides are part of what is claimed, the number of seeds is not.
  EXPECT_EQ(passed["scenario_digest"], cases["cases"][1]["scenario_digest"]);
  EXPECT_NE(passed["scenario_digest"], cases["cases"][0]["scenario_digest"]);
  EXPECT_TRUE(Contains(folder.Call("history").out, "1 inconclusive"));
  EXPECT_TRUE(Contains(folder.Call("history 'fake/*'").out, "too_few_seeds"));
  EXPECT_EQ(folder.Call("history fake/none").status, 2);
}

TEST_F(HistoryCliTest, PagesGoBackToTheFirstRun) {
  folder.WritePassing("other", "", "5");
  for (int run = 0; run < 3; ++run) folder.Call("run --seeds 1");
  const Called first = folder.Call("history --limit 2");
  EXPECT_TRUE(Contains(first.out, "\n# older: --before '2'\n")) << first.out;
  const Called last = folder.Call("history --limit 2 --before 2");
  EXPECT_TRUE(Contains(last.out, "\n1  ")) << last.out;
  EXPECT_FALSE(Contains(last.out, "# older")) << last.out;
  EXPECT_EQ(Listed("--limit 2")["next_before"], "2");
  EXPECT_FALSE(Listed("--limit 2 --before 2").contains("next_before"));
  // Of cases, a page may end within a run.
  const json page = Listed("'fake/*' --limit 3");
  EXPECT_EQ(page["next_before"], "2:fake/other");
  const json next = Listed("'fake/*' --limit 3 --before 2:fake/other");
  ASSERT_EQ(next["cases"].size(), 3U);
  EXPECT_EQ(next["cases"][0]["run"], 2);
  EXPECT_EQ(next["cases"][0]["case"], "fake/ok");
  EXPECT_EQ(next["cases"][2]["run"], 1);
  EXPECT_TRUE(
      Contains(folder.Call("history 'fake/*' --limit 3").out, "# older: --before '2:fake/other'"));
  for (const char* wrong :
       {"--before x", "--before 2:", "--before 7", "--before 2:fake/ok", "costs --before 2",
        "fake/ok --before 7", "fake/ok --before 2:fake/none", "fake/ok --before 1"}) {
    const Called refused = folder.Call("history " + std::string(wrong));
    EXPECT_EQ(refused.status, 2) << wrong << refused.output();
    EXPECT_TRUE(Contains(refused.err, "before")) << refused.err;
  }
}

TEST_F(HistoryCliTest, HistoriesOfOtherMachinesAreMerged) {
  folder.Call("run --history a.db");
  folder.Call("run --history b.db");
  folder.Call("baseline set --name weekly --history b.db");
  const Called merged = folder.Call("history merge a.db b.db --history team/all.db");
  EXPECT_EQ(merged.status, 0) << merged.output();
  EXPECT_TRUE(Contains(merged.out, "a.db: 1 run added")) << merged.out;
  EXPECT_TRUE(Contains(merged.out, "baseline weekly added")) << merged.out;
  const Called again = folder.Call("history merge a.db b.db --history team/all.db");
  EXPECT_TRUE(Contains(again.out, "b.db: 0 runs added, 1 known")) << again.out;
  EXPECT_EQ(Listed("--history team/all.db")["runs"].size(), 2U);
  EXPECT_EQ(folder.Call("history merge --history team/all.db").status, 2);
  EXPECT_EQ(folder.Call("history merge a.db --history a.db").status, 2);
  EXPECT_EQ(folder.Call("history merge none.db --history team/all.db").status, 3);
  EXPECT_EQ(folder.Call("history fake/ok fake/ok").status, 2);
}

TEST_F(HistoryCliTest, SaysWhatCasesTook) {
  EXPECT_EQ(folder.Call("history costs").status, 3);  // there is no history
  folder.Call("run");
  const Called costs = folder.Call("history costs");
  EXPECT_EQ(costs.status, 0) << costs.output();
  const json file = json::parse(costs.out);
  EXPECT_EQ(file["schema"], "trainwreck/costs");
  EXPECT_GT(file["seconds"]["fake/ok"].get<double>(), 0);
  folder.Write("costs.json", costs.out);
  EXPECT_EQ(folder.Call("run --shard 1/2 --shard-costs costs.json --dry-run").status, 0);
  const Called wrong = folder.Call("run --shard 1/2 --shard-costs scenarios/fake/ok.yaml");
  EXPECT_EQ(wrong.status, 2);
  EXPECT_TRUE(Contains(wrong.err, "neither a verdicts.json nor what 'trainwreck history costs'"))
      << wrong.err;
}

TEST_F(HistoryCliTest, TheFileCanBeChosenAndMustBeUsableWhenItIs) {
  EXPECT_EQ(folder.Call("history").status, 3);  // there is none yet
  EXPECT_EQ(folder.Call("run --history none").status, 0);
  EXPECT_FALSE(folder.Has(".trainwreck/history.db"));
  EXPECT_EQ(folder.Call("run --history mine/h.db").status, 0);
  EXPECT_TRUE(folder.Has("mine/h.db"));
  EXPECT_EQ(folder.Call("run", "TRAINWRECK_HISTORY=mine/h.db").status, 0);
  EXPECT_TRUE(Contains(folder.Call("history --history mine/h.db").out, "\n2  "));
  EXPECT_EQ(folder.Call("history --history none").status, 2);
  folder.Write("diary.db", std::string(5000, 'x'));
  const Called refused = folder.Call("run --history diary.db --output out");
  EXPECT_EQ(refused.status, 3) << refused.output();
  EXPECT_TRUE(Contains(refused.err, "no history of trainwreck")) << refused.err;
  EXPECT_FALSE(folder.Has("out"));
  // Where nobody asked for it, a history that cannot be written takes nothing from the verdicts.
  folder.Write(".trainwreck/history.db", std::string(5000, 'x'));
  const Called warned = folder.Call("run");
  EXPECT_EQ(warned.status, 0) << warned.output();
  EXPECT_TRUE(Contains(warned.err, "warning: not in the history")) << warned.err;
}

TEST_F(HistoryCliTest, ConcurrentInvocationsAreAllRecorded) {
  const std::string run = "'" + folder.program() + "' run";
  const Called called =
      folder.Shell("{ " + run + " & " + run + " & " + run + " & " + run + " & wait; }");
  EXPECT_EQ(called.err, "");
  EXPECT_EQ(Listed()["runs"].size(), 4U) << called.output();
}

TEST_F(HistoryCliTest, TheSameProgramIsTheSameBitForBit) {
  folder.Call("run --output a");
  EXPECT_EQ(folder.Call("compare").status, 2);  // no baseline yet
  const Called set = folder.Call("baseline set latest");
  EXPECT_EQ(set.out, "baseline main: run 1\n");
  folder.Call("run --output b");
  const Called compared = folder.Call("compare --report json=c.json,markdown=c.md");
  EXPECT_EQ(compared.status, 0) << compared.output();
  EXPECT_TRUE(Contains(compared.out, "# the same\n")) << compared.out;
  EXPECT_TRUE(Contains(compared.out, "# bits: 4 arms compared, all the same\n")) << compared.out;
  const json report = json::parse(folder.Read("c.json"));
  EXPECT_EQ(report["schema"], "trainwreck/comparison");
  EXPECT_EQ(report["exit_status"], 0);
  EXPECT_TRUE(Contains(folder.Read("c.md"), "trainwreck: the same"));
  EXPECT_EQ(folder.Call("compare --report html=c.html").status, 0);
  EXPECT_TRUE(Contains(folder.Read("c.html"), "trainwreck compare: the same"));
  EXPECT_FALSE(Contains(folder.Read("c.html"), "Some curves are not shown"));
  EXPECT_EQ(folder.Call("report c.json --report html=d.html").status, 0);
  EXPECT_EQ(folder.Read("d.html"), folder.Read("c.html"));
  EXPECT_EQ(folder.Call("compare a b/verdicts.json --history none").status, 0);
  EXPECT_TRUE(Contains(folder.Call("baseline show").out, "main"));
  EXPECT_EQ(folder.Call("compare 1 2").status, 0);
}

// When a run is stopped early depends on what the machine does meanwhile: one side is stopped at
// once, the other never.
TEST_F(HistoryCliTest, TheSameProgramIsTheSameWhereverItsRunsWereStopped) {
  folder.Write("scenarios/fake/early.yaml",
               "apiVersion: trainwreck/v1\nkind: Scenario\nname: fake/early\n"
               "title: Decided after a few steps\n"
               "recipe: {steps: 400, optimizer.lr: 0.2, fake.step_ms: 1}\n"
               "inject:\n  slow: {fault: fake.slow_descent, with: {factor: 0.01}}\n"
               "symptoms:\n  stuck: {assert: \"always[2:20] loss > 1\"}\n"
               "remedies:\n  faster: {scale: {optimizer.lr: 50}}\n"
               "seeds: 3\n");
  ASSERT_EQ(folder.Call("run fake/early").status, 0);
  ASSERT_EQ(folder.Call("run fake/early --full").status, 0);
  const json cases = Listed("fake/early");
  auto ends = [&](int run) {
    int decided = 0;
    for (const json& training : cases["cases"][run]["trainings"]) {
      decided += training["end"] == "decided";
    }
    return decided;
  };
  ASSERT_GT(ends(1), 0);
  ASSERT_EQ(ends(0), 0);
  for (const char* sides : {"1 2", "2 1"}) {
    const Called compared = folder.Call(std::string("compare ") + sides);
    EXPECT_EQ(compared.status, 0) << compared.output();
    EXPECT_TRUE(Contains(compared.out, "\n# the same\n")) << compared.out;
  }
}

// A change so small that no margin tells: its bits do.
TEST_F(HistoryCliTest, AChangeOfBitsIsNamedArmByArm) {
  folder.Write("stack", "#!/bin/sh\nexec '" + folder.target() + "' \"$@\"\n");
  folder.Shell("chmod +x stack");
  folder.Call("run --target ./stack --output a");
  folder.Write("stack", "#!/bin/sh\nFAKE_RATE=1.000001 exec '" + folder.target() + "' \"$@\"\n");
  folder.Call("run --target ./stack --output b");
  for (const char* sides : {"1 2", "a b --history none"}) {
    const Called compared = folder.Call(std::string("compare ") + sides);
    EXPECT_EQ(compared.status, 8) << compared.output();
    EXPECT_TRUE(Contains(compared.out,
                         "# bits: 4 arms of 1 case have other bits\n"
                         "other bits  fake/ok: control (5 of 5 seeds, from step 1), faster"))
        << compared.out;
  }
  EXPECT_EQ(folder.Call("compare 1 2 --accept-changes").status, 0);
}

TEST_F(HistoryCliTest, ACaseThatIsGoneIsWorse) {
  folder.WritePassing("two", "", "5");
  folder.Call("run");
  folder.Call("run fake/ok");
  const Called compared = folder.Call("compare 1 2");
  EXPECT_EQ(compared.status, 1) << compared.output();
  EXPECT_TRUE(Contains(compared.out, "# 1 case is gone\n")) << compared.out;
  EXPECT_TRUE(Contains(compared.out, "gone, only in A: fake/two")) << compared.out;
  EXPECT_EQ(folder.Call("compare 1 2 --only-common").status, 0);
}

// Three seeds cannot tell; five can. A's program is made from its commit, B's is here.
TEST_F(HistoryCliTest, TheSeedsThatAreMissingAreAdded) {
  const std::string git = "git -c user.name=a -c user.email=a@b -c commit.gpgsign=false ";
  const std::string begin = "#!/bin/sh\n", end = "exec '" + folder.target() + "' \"$@\"\n";
  folder.WritePassing("ok", "", "3");
  folder.Write("stack", begin + end);
  ASSERT_EQ(folder
                .Shell("chmod +x stack && git init -q . && git add stack scenarios && " + git +
                       "commit -qm good")
                .status,
            0);
  ASSERT_EQ(folder.Call("run --target ./stack").status, 0);
  folder.Write("stack", begin + "FAKE_RATE=0.95 " + end);
  ASSERT_EQ(folder.Shell(git + "commit -qam slower").status, 0);
  ASSERT_EQ(folder.Call("run --target ./stack").status, 0);
  const Called unknown = folder.Call("compare 1 2");
  EXPECT_EQ(unknown.status, 5) << unknown.output();
  EXPECT_TRUE(Contains(unknown.out, "'trainwreck compare --more-seeds'")) << unknown.out;
  EXPECT_TRUE(Contains(unknown.out, "trainwreck run fake/ok --seeds ")) << unknown.out;
  const Called more = folder.Call("compare 1 2 --max-more-seeds 3");
  EXPECT_EQ(more.status, 1) << more.output();
  EXPECT_TRUE(Contains(more.out, "# A: running seeds 3 to 5 of fake/ok\n")) << more.out;
  EXPECT_TRUE(Contains(more.out, "# B: running seeds 3 to 5 of fake/ok\n")) << more.out;
  EXPECT_TRUE(Contains(more.out, "seeds 6 and 6")) << more.out;
  EXPECT_FALSE(folder.Has(".trainwreck/more-seeds/worktree"));
  // They are kept: nothing is run a second time.
  const Called again = folder.Call("compare 1 2 --max-more-seeds 3");
  EXPECT_EQ(again.status, 1) << again.output();
  EXPECT_FALSE(Contains(again.out, "running seeds")) << again.out;
  // A program that is nowhere any more cannot be run, and that is said.
  folder.Write("stack", begin + "FAKE_RATE=0.9 " + end);
  folder.Call("run --target ./stack --seeds 2");
  folder.Write("stack", begin + end);
  const Called gone = folder.Call("compare 1 3 --more-seeds");
  EXPECT_TRUE(Contains(gone.out, "# B: no more seeds of it: its program (")) << gone.output();
}

// A project with a training stack of its own, which one commit breaks.
TEST_F(HistoryCliTest, CommitsAreComparedAndTheBrokenOneIsFound) {
  const std::string git = "git -c user.name=a -c user.email=a@b -c commit.gpgsign=false ";
  const std::string stack = "#!/bin/sh\nexec '" + folder.target() + "' \"$@\"\n";
  const std::string broken = "#!/bin/sh\nFAKE_RATE=0.05 exec '" + folder.target() + "' \"$@\"\n";
  folder.Write("stack", stack);
  ASSERT_EQ(folder
                .Shell("chmod +x stack && git init -q . && git add stack scenarios && " + git +
                       "commit -qm good")
                .status,
            0);
  const std::string run = "run --target ./stack";
  EXPECT_EQ(folder.Call(run).status, 0);
  folder.Write("stack", broken);
  EXPECT_EQ(folder.Call(run).status, 1);  // not committed yet: no run of HEAD
  EXPECT_EQ(Listed()["runs"][0]["dirty"], true);
  EXPECT_EQ(folder.Shell(git + "commit -qam broken").status, 0);
  const Called missing = folder.Call("compare HEAD~1 HEAD");
  EXPECT_EQ(missing.status, 2);
  EXPECT_TRUE(Contains(missing.err, "without uncommitted changes")) << missing.err;
  EXPECT_EQ(folder.Call(run).status, 1);
  const Called compared = folder.Call("compare HEAD~1 HEAD");
  EXPECT_EQ(compared.status, 1) << compared.output();
  EXPECT_TRUE(Contains(compared.out,
                       "worse    fake/ok  pass -> fail/symptom_in_control  cause: "
                       "code"))
      << compared.out;
  EXPECT_TRUE(Contains(folder.Call("compare HEAD HEAD~1").out, "better   fake/ok"));
}

// The same program with other results, where its ranks say that the machine is another.
TEST_F(HistoryCliTest, DriftOfTheEnvironmentIsNoRegression) {
  folder.Call("run");
  folder.Call("run", "FAKE_RATE=0.05 FAKE_BLAS=other");
  const Called drift = folder.Call("compare 1 2");
  EXPECT_EQ(drift.status, 5) << drift.output();
  EXPECT_TRUE(Contains(drift.out, "# environment: blas none -> other")) << drift.out;
  EXPECT_TRUE(Contains(drift.out, "the environment did it, the code is the same")) << drift.out;
  // Both differ: a run of A's program in B's environment is looked for, and tells.
  folder.Write("stack", "#!/bin/sh\nexec '" + folder.target() + "' \"$@\"\n");
  folder.Shell("chmod +x stack");
  folder.Call("run --target ./stack", "FAKE_RATE=0.05 FAKE_BLAS=other");
  const Called both = folder.Call("compare 1 3");
  EXPECT_EQ(both.status, 5) << both.output();
  EXPECT_TRUE(
      Contains(both.out, "run 2 has A's program in B's environment: trainwreck compare 2 3"))
      << both.out;
  // Nothing differs that anybody knows of: the program is not repeatable.
  folder.Call("run", "FAKE_RATE=0.05");
  const Called chance = folder.Call("compare 1 4");
  EXPECT_EQ(chance.status, 1) << chance.output();
  EXPECT_TRUE(Contains(chance.out, "cause: neither code nor environment")) << chance.out;
}

TEST_F(HistoryCliTest, WhatCannotBeFoundIsSaid) {
  folder.Call("run");
  struct Wrong {
    const char* arguments;
    const char* message;
    int status;
  };
  folder.Write("not.json", "{}");
  for (const Wrong& wrong :
       {Wrong{"compare 9 1", "no run 9", 2}, Wrong{"compare nowhere 1", "no revision", 2},
        Wrong{"compare baseline:x 1", "no baseline 'x'", 2},
        Wrong{"compare not.json 1", "no verdicts of trainwreck", 3},
        Wrong{"compare 1 1 --report junit=x", "no junit", 2},
        Wrong{"compare 1 1 --report badge=x", "no badge", 2},
        Wrong{"history --html x.html", "say which SCENARIO", 2},
        Wrong{"history 'fake/*' --html no-such/../", "cannot be written", 3},
        Wrong{"compare 1 1 --confidence 2", "--confidence", 2},
        Wrong{"baseline set 7", "no run 7", 2}, Wrong{"baseline sit", "sit", 2},
        Wrong{"history --format xml", "xml", 2}}) {
    const Called called = folder.Call(wrong.arguments);
    EXPECT_EQ(called.status, wrong.status) << wrong.arguments << "\n" << called.output();
    EXPECT_TRUE(Contains(called.err, wrong.message)) << wrong.arguments << "\n" << called.err;
  }
}

// Two checkouts of a project count as one program until a file of one of them changes.
TEST(CopiesTest, EqualCopiesAreOneProgram) {
  const CliFolder folder;
  for (const std::string copy : {"one", "another/place"}) {
    folder.Write(copy + "/train.py",
                 "import sys, rate\nweight = 4.0\n"
                 "for step in range(5):\n"
                 "    print(f'{step} loss {weight * weight}', flush=True)\n"
                 "    weight -= rate.OF * float(sys.argv[1]) * weight\n");
    folder.Write(copy + "/rate.py", "OF = 2\n");
    folder.Write(copy + "/trainwreck.yaml",
                 "apiVersion: trainwreck/v1\nkind: Targets\ntargets:\n  line:\n"
                 "    command: [python3, train.py, \"{lr}\"]\n"
                 "    recipe: {steps: 5, lr: 0.1}\n    signals: {loss: {}}\n"
                 "    sources: [{stdout: '(?P<step>\\d+) loss (?P<loss>\\S+)'}]\n");
    folder.Write(copy + "/scenarios/a/slow.yaml",
                 "apiVersion: trainwreck/v1\nkind: Scenario\nname: a/slow\n"
                 "title: A rate that is too low learns nothing\nseeds: 1\n"
                 "inject:\n  slow: {fault: recipe.scale_lr, with: {factor: 0.001}}\n"
                 "symptoms:\n  stuck: at_end loss > 10\nno_remedy: an example\n");
  }
  const std::string environment =
      "TRAINWRECK_TARGET= TRAINWRECK_HISTORY='" + folder.path() + "/h.db'";
  const auto run_in = [&](const std::string& copy) {
    return folder.Shell("cd " + copy + " && '" + folder.program() + "' run --no-preflight",
                        environment);
  };
  const Called first = run_in("one");
  ASSERT_EQ(first.status, 0) << first.output();
  ASSERT_EQ(run_in("another/place").status, 0);
  Called compared = folder.Call("compare 1 2", environment);
  EXPECT_TRUE(Contains(compared.out, "# code: the same program")) << compared.output();
  // What it imports, and the file that declares it.
  for (const char* file : {"rate.py", "trainwreck.yaml"}) {
    folder.Shell("echo '# changed' >> another/place/" + std::string(file));
    ASSERT_EQ(run_in("another/place").status, 0);
    compared = folder.Call("compare 1 latest", environment);
    EXPECT_TRUE(Contains(compared.out, "# code: differs")) << file << compared.output();
    folder.Shell("sed -i '$d' another/place/" + std::string(file));
  }
}

}  // namespace
}  // namespace trainwreck
