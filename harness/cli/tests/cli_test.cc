// The program from outside: verbs, options, exit statuses, output folders.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>

#include "harness/cli/tests/cli_testing.h"

namespace trainwreck {
namespace {

class CliTest : public testing::Test {
 protected:
  CliFolder folder;
};

TEST_F(CliTest, HelpNamesEveryVerbAndEveryVerbHasHelp) {
  const Called help = folder.Call("help");
  EXPECT_EQ(help.status, 0);
  for (const char* verb :
       {"run", "list", "validate", "explain", "doctor", "check", "judge", "report", "rerun", "new",
        "schema", "history", "baseline", "compare", "version", "help"}) {
    EXPECT_TRUE(Contains(help.out, verb)) << verb;
    const Called own = folder.Call(std::string(verb) + " --help");
    EXPECT_EQ(own.status, 0) << verb;
    EXPECT_TRUE(Contains(own.out, "Usage")) << verb << own.output();
  }
  EXPECT_TRUE(Contains(folder.Call("help run").out, "--verify-determinism"));
  EXPECT_TRUE(Contains(folder.Call("version").out, "trainwreck 0."));
}

TEST_F(CliTest, WrongCommandLinesGiveTwoAndTheNearestName) {
  struct Wrong {
    const char* arguments;
    const char* message;
  };
  const Wrong wrongs[] = {
      {"", "Usage"},
      {"rnu", "did you mean 'run'"},
      {"run --fail-fats", "did you mean '--fail-fast'"},
      {"run --shard 3/2", "--shard"},
      {"run --shard x", "--shard"},
      {"run --report junt=x", "did you mean 'junit'"},
      {"run --report junit", "KIND=FILE"},
      {"run --seeds 0", "--seeds"},
      {"run --isolate spoon", "--isolate"},
      {"run fake/okk", "did you mean 'fake/ok'"},
      {"run -k 'a and'", "-k"},
      {"run -t '(a'", "')' is missing"},
      {"run --set optimizer.lrr=1", "did you mean 'optimizer.lr'"},
      {"run --set optimizer.lr=fast", "--set"},
      {"run --set steps", "KEY=VALUE"},
      {"run --point nowhere", "no point"},
      {"run --arm fautl", "did you mean 'fault'"},
      {"explain nothing_like_it", "nothing is called"},
      {"list fautls", "fautls"},
      {"check nowhere --assert 'at_end loss < 1'", "no folder"},
      {"check . --assert 'at_end loss <'", "error"},
      {"rerun nowhere", "no stored run"},
      {"report nowhere --report junit=x", "no folder"},
      {"new scenario Bad", "family/name"},
      {"new fault nodot", "site.fault"},
  };
  folder.WritePassing("ok");
  for (const Wrong& wrong : wrongs) {
    const Called called = folder.Call(wrong.arguments);
    EXPECT_EQ(called.status, 2) << wrong.arguments << "\n" << called.output();
    EXPECT_TRUE(Contains(called.err, wrong.message)) << wrong.arguments << "\n" << called.err;
  }
  EXPECT_FALSE(folder.Has(".trainwreck"));
}

TEST_F(CliTest, PassingRunGivesZeroReportsAndNoRunFolders) {
  folder.WritePassing("ok");
  const Called called = folder.Call("run --report junit=out/j.xml,markdown=out/m.md");
  ASSERT_EQ(called.status, 0) << called.output();
  EXPECT_TRUE(Contains(called.out, "fake/ok"));
  EXPECT_TRUE(Contains(folder.Read("out/j.xml"), "<testsuite"));
  EXPECT_TRUE(Contains(folder.Read("out/m.md"), "fake/ok"));
  EXPECT_TRUE(folder.Has(".trainwreck/runs/latest/verdicts.json"));
  EXPECT_TRUE(folder.Has(".trainwreck/runs/latest/target.json"));
  EXPECT_FALSE(folder.Has(".trainwreck/runs/latest/fake"));
}

TEST_F(CliTest, APageIsWrittenLeftOutAndMadeAgainWithItsCurves) {
  folder.WritePassing("ok");
  ASSERT_EQ(folder.Call("run --output out").status, 0);
  const std::string page = folder.Read("out/report.html");
  EXPECT_TRUE(Contains(page, "the case passed"));
  EXPECT_TRUE(Contains(page, "\"seed\":0")) << "no curves";
  ASSERT_EQ(folder.Call("run --no-html --output plain").status, 0);
  EXPECT_FALSE(folder.Has("plain/report.html"));
  ASSERT_EQ(folder.Call("report plain --report html=again.html").status, 0);
  EXPECT_TRUE(Contains(folder.Read("again.html"), "\"seed\":0"));
  EXPECT_EQ(folder.Call("report out --report html=out/report.html").status, 0);
  EXPECT_EQ(folder.Read("out/report.html"), page);
  // An older invocation has no file of curves: the losses of verdicts.json are shown.
  ASSERT_EQ(folder.Shell("rm plain/pictures.jsonl", "").status, 0);
  ASSERT_EQ(folder.Call("report plain --report html=losses.html").status, 0);
  EXPECT_TRUE(Contains(folder.Read("losses.html"), "\"curves\":{\"loss\":"));
}

TEST_F(CliTest, FailureGivesOneAndKeepsItsRuns) {
  folder.WritePassing("fails", "quality: at_end loss < 0.0001\n");
  const Called called = folder.Call("run");
  EXPECT_EQ(called.status, 1) << called.output();
  EXPECT_TRUE(Contains(called.out, "remedy_costly")) << called.out;
  EXPECT_TRUE(folder.Has(".trainwreck/runs/latest/fake/fails/fault/0/run.json"));
}

TEST_F(CliTest, InvalidScenarioGivesThreeWithAllErrorsAndRunsNothing) {
  folder.WritePassing("ok");
  folder.WritePassing("bad", "colour: blue\nflavour: sour\n");
  const Called called = folder.Call("run");
  EXPECT_EQ(called.status, 3);
  EXPECT_TRUE(Contains(called.err, "colour")) << called.err;
  EXPECT_TRUE(Contains(called.err, "flavour"));
  EXPECT_FALSE(folder.Has(".trainwreck"));
  EXPECT_EQ(folder.Call("validate").status, 3);
  EXPECT_EQ(folder.Call("validate fake/ok").status, 0);
}

TEST_F(CliTest, UnusableTargetGivesThree) {
  folder.WritePassing("ok");
  EXPECT_EQ(folder.Call("run --target nowhere").status, 3);
  EXPECT_EQ(folder.Call("run --target /bin/true").status, 3);
  EXPECT_EQ(folder.Call("doctor --target /bin/true").status, 3);
}

TEST_F(CliTest, NothingExecutedGivesFour) {
  folder.WritePassing("ok");
  folder.WritePassing("cuda", "requires: {devices: [cuda]}\n");
  EXPECT_EQ(folder.Call("run -k nothing").status, 4);
  const Called skipped = folder.Call("run fake/cuda");
  EXPECT_EQ(skipped.status, 4) << skipped.output();
  EXPECT_TRUE(Contains(skipped.out, "requires:device:cuda")) << skipped.out;
}

TEST_F(CliTest, TooFewSeedsGivesFive) {
  folder.WritePassing("ok");
  const Called called = folder.Call("run --seeds 1");
  EXPECT_EQ(called.status, 5) << called.output();
  EXPECT_TRUE(Contains(called.out, "too_few_seeds"));
}

TEST_F(CliTest, ViolatedRequirementsGiveSix) {
  folder.WritePassing("ok");
  folder.WritePassing("cuda", "requires: {devices: [cuda]}\n");
  EXPECT_EQ(folder.Call("run").status, 0);
  EXPECT_EQ(folder.Call("run --require fake/ok").status, 0);
  EXPECT_EQ(folder.Call("run --require fake/cuda").status, 6);
  EXPECT_EQ(folder.Call("run -k ok --require fake/cuda").status, 6);
  EXPECT_EQ(folder.Call("run --max-skips 1").status, 0);
  EXPECT_EQ(folder.Call("run --max-skips 0").status, 6);
}

TEST_F(CliTest, CrashGivesSeven) {
  folder.WritePassing("ok");
  const Called called = folder.Call("run --set fake.mode=crashes");
  EXPECT_EQ(called.status, 7) << called.output();
  EXPECT_TRUE(Contains(called.out, "crash")) << called.out;
}

TEST_F(CliTest, UnwritableReportsAndOutputGiveThree) {
  folder.WritePassing("ok");
  const Called called = folder.Call("run --report junit=/proc/nowhere/j.xml");
  EXPECT_EQ(called.status, 3) << called.output();  // before any run
  EXPECT_TRUE(Contains(called.err, "/proc/nowhere")) << called.err;
  EXPECT_FALSE(folder.Has(".trainwreck/runs"));
  EXPECT_EQ(folder.Call("run --output /proc/nowhere").status, 3);
}

TEST_F(CliTest, InterruptGives130AndAReport) {
  folder.WritePassing("quick");
  folder.WritePassing("slow", "budget: {seconds: 100, stall_seconds: 100}\n");
  std::string text = folder.Read("scenarios/fake/slow.yaml");
  text.replace(text.find("steps: 20"), 9, "fake.mode: hangs, steps: 20");
  folder.Write("scenarios/fake/slow.yaml", text);
  // Interrupted as soon as the quick one is judged.
  folder.Write(
      "interrupt.sh",
      "\"$1\" run --output out -j 2 >run.out 2>run.err & pid=$!\n"
      "for i in $(seq 600); do grep -q 'PASS.*fake/quick' run.out && break; sleep 0.05; done\n"
      "kill -TERM $pid; wait $pid; exit $?\n");
  const Called called = folder.Shell("sh interrupt.sh '" + folder.program() + "'");
  EXPECT_EQ(called.status, 130) << called.output() << folder.Read("run.out");
  EXPECT_TRUE(Contains(folder.Read("out/verdicts.json"), "fake/quick"));
  EXPECT_TRUE(Contains(folder.Read("run.err"), "1 case was cut off")) << folder.Read("run.err");
}

TEST_F(CliTest, KeywordTagsAndShardsPartition) {
  for (const char* name : {"a1", "a2", "b1", "b2", "b3"}) folder.WritePassing(name);
  folder.WritePassing("tagged", "tags: [smoke]\n");
  auto names = [&](const std::string& arguments) {
    std::multiset<std::string> found;
    const Called called = folder.Call("run --dry-run " + arguments);
    std::istringstream lines(called.out);
    for (std::string line; std::getline(lines, line);) {
      if (line.rfind("fake/", 0) == 0) found.insert(line.substr(0, line.find(' ')));
    }
    return found;
  };
  EXPECT_EQ(names("").size(), 6U);
  EXPECT_EQ(names("-k a1"), (std::multiset<std::string>{"fake/a1"}));
  EXPECT_EQ(names("-k 'b and not (b1 or b2)'"), (std::multiset<std::string>{"fake/b3"}));
  EXPECT_EQ(names("-t smoke"), (std::multiset<std::string>{"fake/tagged"}));
  EXPECT_EQ(names("-t 'not smoke'").size(), 5U);
  EXPECT_EQ(names("'fake/a*'").size(), 2U);
  std::multiset<std::string> all;
  for (const char* shard : {"1/4", "2/4", "3/4", "4/4"}) {
    const auto part = names(std::string("--shard ") + shard);
    EXPECT_GE(part.size(), 1U) << shard;
    all.insert(part.begin(), part.end());
  }
  EXPECT_EQ(all, names(""));
}

TEST_F(CliTest, DryRunShowsTheArmsAndRunsNothing) {
  folder.WritePassing("ok",
                      "matrix: {pace: {slow: {set: {steps: 20}}, long: {set: {steps: 30}}}}\n");
  const Called called = folder.Call("run --dry-run 'fake/ok[long]' --set fake.step_ms=1");
  ASSERT_EQ(called.status, 0) << called.output();
  EXPECT_TRUE(Contains(called.out, "fake/ok[long]"));
  EXPECT_FALSE(Contains(called.out, "fake/ok[slow]"));
  EXPECT_TRUE(Contains(called.out, "optimizer.lr 0.2 -> 0.002")) << called.out;
  EXPECT_TRUE(Contains(called.out, "optimizer.lr: 0.2 -> 0.1")) << called.out;
  EXPECT_TRUE(Contains(called.out, "must not hold: stuck"));
  EXPECT_FALSE(folder.Has(".trainwreck"));
}

TEST_F(CliTest, ArmAndSeedGiveReadingsNotVerdicts) {
  folder.WritePassing("ok");
  Called called = folder.Call("run fake/ok --arm fault --seed 1");
  EXPECT_EQ(called.status, 0) << called.output();
  EXPECT_TRUE(Contains(called.out, "fake/ok/fault/1")) << called.out;
  EXPECT_TRUE(Contains(called.out, "as claimed"));
  EXPECT_TRUE(Contains(called.out, "fired")) << called.out;
  EXPECT_FALSE(Contains(called.out, "fake/ok/fault/0"));
  folder.WritePassing("fails", "quality: at_end loss < 0.0001\n");
  called = folder.Call("run fake/fails --arm faster");
  EXPECT_EQ(called.status, 1) << called.output();
  EXPECT_TRUE(Contains(called.out, "NOT AS CLAIMED")) << called.out;
  // `latest` is for invocations with verdicts.
  EXPECT_FALSE(folder.Has(".trainwreck/runs/latest"));
}

TEST_F(CliTest, StoredRunsCanBeCheckedAndRunAgain) {
  folder.WritePassing("ok");
  ASSERT_EQ(folder.Call("run --keep all --full").status, 0);
  const std::string run = ".trainwreck/runs/latest/fake/ok/fault/0";
  ASSERT_TRUE(folder.Has(run + "/run.json"));
  EXPECT_EQ(
      folder.Call("check " + run + " --assert 'at_end loss > 1'", "TRAINWRECK_TARGET=").status, 0);
  EXPECT_EQ(folder.Call("check " + run + " --assert 'at_end loss < 1'").status, 1);
  const Called against =
      folder.Call("check " + run + " --assert 'last(loss[-1:]) > control.last(loss[-1:])'");
  EXPECT_EQ(against.status, 0) << against.output();
  EXPECT_EQ(folder.Call("check " + run + " --assert 'at_end los > 1'").status, 2);
  for (const char* how : {"fork", "exec"}) {
    const Called again = folder.Call("rerun fake/ok/fault/0 --isolate " + std::string(how));
    EXPECT_EQ(again.status, 0) << again.output();
    EXPECT_TRUE(Contains(again.out, "same bits")) << again.output();
  }
}

TEST_F(CliTest, RerunTellsOtherBitsAndOtherEnds) {
  folder.WritePassing("ok");
  ASSERT_EQ(folder.Call("run --keep all --full --output out --set fake.mode=drifts").status, 0);
  const Called drifted = folder.Call("rerun out/fake/ok/control/0");
  EXPECT_EQ(drifted.status, 1) << drifted.output();
  EXPECT_TRUE(Contains(drifted.out, "not the same bits: loss")) << drifted.out;
  std::string stored = folder.Read("out/fake/ok/control/0/run.json");
  for (std::size_t at; (at = stored.find("drifts")) != std::string::npos;) {
    stored.replace(at, 6, "exits_7");
  }
  folder.Write("out/fake/ok/control/0/run.json", stored);
  const Called ended = folder.Call("rerun out/fake/ok/control/0");
  EXPECT_EQ(ended.status, 1) << ended.output();
  EXPECT_TRUE(Contains(ended.out, "ended otherwise")) << ended.out;
  EXPECT_EQ(folder.Call("rerun out/fake/ok/control/0 --output out").status, 2);
}

TEST_F(CliTest, ChecksTracesOfAnyOrigin) {
  folder.Write(
      "foreign/rank0.jsonl",
      "{\"t\":\"step\",\"step\":0,\"loss\":4}\n{\"t\":\"step\",\"step\":1,\"loss\":\"nan\"}\n");
  EXPECT_EQ(folder.Call("check foreign --assert 'eventually nonfinite(loss)'").status, 0);
  EXPECT_EQ(folder.Call("check foreign --assert 'never nonfinite(loss)'").status, 1);
  EXPECT_EQ(folder.Call("check foreign --assert 'mean(loss[:]) < 5'").status, 5);
  folder.Write("other/rank0.jsonl", "{\"t\":\"step\",\"step\":0,\"loss\":2}\n");
  EXPECT_EQ(
      folder
          .Call("check foreign --arm twin=other --assert 'first(loss[:1]) > twin.first(loss[:1])'")
          .status,
      0);
}

TEST_F(CliTest, ReportsCanBeMadeLater) {
  folder.WritePassing("ok");
  ASSERT_EQ(folder.Call("run").status, 0);
  const Called called = folder.Call("report latest --report junit=later.xml");
  EXPECT_EQ(called.status, 0) << called.output();
  EXPECT_TRUE(Contains(folder.Read("later.xml"), "fake/ok"));
}

TEST_F(CliTest, NondeterminismIsFoundWhenLookedFor) {
  folder.WritePassing("ok");
  EXPECT_EQ(folder.Call("run --verify-determinism").status, 0);
  EXPECT_EQ(folder.Call("run --set fake.mode=drifts").status, 0);
  const Called called = folder.Call("run --verify-determinism --set fake.mode=drifts");
  EXPECT_EQ(called.status, 1) << called.output();
  EXPECT_TRUE(Contains(called.out, "nondeterministic")) << called.out;
}

TEST_F(CliTest, FailFastLeavesTheRestUnjudged) {
  for (const char* name : {"f1", "f2", "f3"}) {
    folder.WritePassing(name, "quality: at_end loss < 0.0001\n");
  }
  const Called called = folder.Call("run --fail-fast -j 1");
  EXPECT_EQ(called.status, 1);
  EXPECT_TRUE(Contains(called.err, "cut off")) << called.output();
}

TEST_F(CliTest, RepeatRunsAllAgain) {
  folder.WritePassing("ok");
  const Called called = folder.Call("run --repeat 3 --keep all --output out");
  EXPECT_EQ(called.status, 0) << called.output();
  EXPECT_TRUE(folder.Has("out/repeat-3/fake/ok/control/0/run.json"));
}

TEST_F(CliTest, TwoInvocationsInOneSecondHaveTwoFolders) {
  folder.WritePassing("ok");
  const std::string run = "'" + folder.program() + "' run";
  const Called called = folder.Shell("{ " + run + " & " + run + " & wait; }");
  const std::filesystem::path runs = folder.path() + "/.trainwreck/runs";
  int folders = 0;
  for (const auto& entry : std::filesystem::directory_iterator(runs)) {
    if (entry.is_symlink()) {
      EXPECT_EQ(entry.path().filename(), "latest");
    } else {
      EXPECT_TRUE(std::filesystem::exists(entry.path() / "verdicts.json"));
      ++folders;
    }
  }
  EXPECT_EQ(folders, 2) << called.output();
}

TEST_F(CliTest, ListsAndExplains) {
  folder.WritePassing("ok", "tags: [smoke]\n");
  EXPECT_TRUE(Contains(folder.Call("list").out, "fake/ok"));
  EXPECT_TRUE(Contains(folder.Call("list faults").out, "fake.slow_descent"));
  EXPECT_TRUE(Contains(folder.Call("list signals").out, "loss"));
  EXPECT_TRUE(Contains(folder.Call("list recipe").out, "optimizer.lr"));
  EXPECT_TRUE(Contains(folder.Call("list events").out, "exited"));
  const Called bazel = folder.Call("list --format bazel");
  EXPECT_TRUE(Contains(bazel.out, "name = \"fake/ok\"")) << bazel.out;
  EXPECT_TRUE(Contains(bazel.out, "file = \"fake/ok.yaml\"")) << bazel.out;
  EXPECT_TRUE(Contains(bazel.out, "extended = [],")) << bazel.out;
  for (const char* what : {"scenarios", "faults", "signals", "recipe", "events"}) {
    const Called json = folder.Call("list " + std::string(what) + " --format json");
    EXPECT_EQ(json.status, 0);
    EXPECT_TRUE(nlohmann::json::accept(json.out)) << what;
  }
  for (const char* name : {"fake/ok", "fake.slow_descent", "loss", "exited", "optimizer.lr",
                           "symptom_weak", "pass", "7", "exit-codes", "requires:cuda"}) {
    const Called called = folder.Call("explain " + std::string(name));
    EXPECT_EQ(called.status, 0) << name << called.output();
    EXPECT_FALSE(called.out.empty());
  }
  EXPECT_TRUE(nlohmann::json::accept(folder.Call("schema").out));
}

TEST_F(CliTest, DoctorTrainsTwoStepsBothWays) {
  folder.WritePassing("ok");
  const Called called = folder.Call("doctor");
  EXPECT_EQ(called.status, 0) << called.output();
  EXPECT_TRUE(Contains(called.out, "ok    train by fork")) << called.out;
  EXPECT_TRUE(Contains(called.out, "ok    train by exec")) << called.out;
}

TEST_F(CliTest, NewRecipeFaultIsAFileThatEveryVerbKnows) {
  folder.WritePassing("ok");
  EXPECT_EQ(folder.Call("new fault recipe.wild_rate").status, 0);
  EXPECT_TRUE(Contains(folder.Read("scenarios/faults/wild_rate.yaml"), "kind: Fault"));
  EXPECT_TRUE(Contains(folder.Call("list faults").out, "recipe.wild_rate"));
  EXPECT_TRUE(Contains(folder.Call("explain recipe.wild_rate").out, "optimizer.lr times factor"));
  EXPECT_TRUE(Contains(folder.Call("schema").out, "recipe.wild_rate"));
  EXPECT_EQ(folder.Call("validate").status, 0) << "a fault is no scenario";
  EXPECT_FALSE(Contains(folder.Call("list").out, "wild_rate"));
  EXPECT_EQ(folder.Call("new fault recipe.wild_rate").status, 2);
}

TEST_F(CliTest, NewFaultWritesSourceAndTestOnce) {
  folder.Write("injectors/injector.h", "// here\n");
  EXPECT_EQ(folder.Call("new fault optimizer.stale_rate").status, 0);
  EXPECT_TRUE(Contains(folder.Read("injectors/optimizer/stale_rate.cc"), "class StaleRate"));
  EXPECT_TRUE(
      Contains(folder.Read("injectors/optimizer/stale_rate_test.cc"), "optimizer.stale_rate"));
  EXPECT_EQ(folder.Call("new fault optimizer.stale_rate").status, 2);
}

}  // namespace
}  // namespace trainwreck
