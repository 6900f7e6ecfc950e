// The program in a hostile or broken place: files that attack their reader, disks and folders that
// cannot be written, others who write, too. Whatever it is, the user is told, and what can go on
// goes on.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "harness/cli/tests/cli_testing.h"
#include "harness/protocol/json.h"

namespace trainwreck {
namespace {

namespace fs = std::filesystem;

constexpr int kDeep = 100'000;

std::string Nested(int depth) { return std::string(depth, '[') + std::string(depth, ']'); }

class HostileCliTest : public testing::Test {
 protected:
  // A program that does `script` before it is the fake target. The description is the fake one's.
  std::string WriteTarget(const std::string& name, const std::string& script) {
    folder.Write(name, "#!/bin/sh\n" + script + "\nexec '" + folder.target() + "' \"$@\"\n");
    fs::permissions(folder.path() + "/" + name, fs::perms::owner_all);
    return folder.path() + "/" + name;
  }
  Called Run(const std::string& target, const std::string& options = "") {
    return folder.Call("run --isolate exec --target '" + target + "' " + options);
  }

  CliFolder folder;
};

TEST_F(HostileCliTest, TextsThatAreNestedDeepAreRefused) {
  folder.WritePassing("ok");
  folder.Write("deep", Nested(kDeep) + "\n");
  folder.Write("deep-event", "{\"t\":\"event\",\"event\":\"e\",\"field\":" + Nested(kDeep) + "}\n");
  const std::string traces =
      WriteTarget("traces", "[ -z \"$TRAINWRECK_PLAN\" ] || cat '" + folder.path() +
                                "/deep-event' >> \"$TRAINWRECK_TRACE/rank0.jsonl\"");
  Called called = Run(traces, "--output out");
  EXPECT_EQ(called.status, 7) << called.output();
  EXPECT_TRUE(Contains(called.out, "rank0.jsonl:1: not a JSON object")) << called.output();

  const std::string describes =
      WriteTarget("describes", "[ \"$1\" != --describe ] || exec cat '" + folder.path() + "/deep'");
  called = folder.Call("validate --target '" + describes + "'");
  EXPECT_EQ(called.status, 3) << called.output();
  EXPECT_TRUE(Contains(called.err, "nested more than 128 deep")) << called.err;

  ASSERT_EQ(folder.Call("run --output out --keep all").status, 0);
  folder.Write("out/verdicts.json", Nested(kDeep));
  called = folder.Call("report out --report junit=j.xml");
  EXPECT_TRUE(Contains(called.err, "no verdicts of trainwreck")) << called.output();
  folder.Write("out/fake/ok/control/0/run.json", Nested(kDeep));
  called = folder.Call("rerun out/fake/ok/control/0");
  EXPECT_EQ(called.status, 3) << called.output();
  EXPECT_TRUE(Contains(called.err, "nested more than 128 deep")) << called.err;
  folder.Write("out/target.json", Nested(kDeep));
  called = folder.Call("check out/fake/ok/control/0 --assert 'at_end loss < 1'");
  EXPECT_EQ(called.status, 3) << called.output();
  // A damaged cache is made anew.
  for (const auto& entry : fs::directory_iterator(folder.path() + "/cache/descriptions")) {
    std::ofstream(entry.path()) << Nested(kDeep);
  }
  EXPECT_EQ(folder.Call("validate").status, 0);
}

TEST_F(HostileCliTest, OneFolderIsWrittenByOneInvocation) {
  folder.WritePassing("ok");
  ASSERT_EQ(folder.Call("run --output out").status, 0);
  // As another invocation holds it.
  const int other =
      open((folder.path() + "/out/.lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  ASSERT_EQ(flock(other, LOCK_EX), 0);
  const std::string before = folder.Read("out/verdicts.json");
  for (const char* verb :
       {"run --output out", "run --output ./out --arm control", "matrix --seeds 1 --output out"}) {
    const Called called = folder.Call(verb);
    EXPECT_EQ(called.status, 3) << verb << called.output();
    EXPECT_TRUE(Contains(called.err, "another trainwreck is writing to the output folder"))
        << called.err;
  }
  EXPECT_EQ(folder.Read("out/verdicts.json"), before);
  EXPECT_EQ(folder.Call("report out --report junit=j.xml").status, 0);  // reading is free
  close(other);
  EXPECT_EQ(folder.Call("run --output out").status, 0);
}

TEST_F(HostileCliTest, TheLockIsGoneWithItsHolder) {
  folder.WritePassing("hangs", "budget: {seconds: 100, stall_seconds: 100}\n");
  folder.Write("kill.sh",
               "\"$1\" run --output out --set fake.mode=hangs & pid=$!\n"
               "for i in $(seq 600); do\n"
               "  ls out/fake/hangs/*/*/rank0.jsonl >/dev/null 2>&1 && break; sleep 0.05\n"
               "done\n"
               "\"$1\" run --output out; echo busy $?\n"
               "kill -KILL $pid; wait $pid\n");
  const Called called = folder.Shell("sh kill.sh '" + folder.program() + "'");
  EXPECT_TRUE(Contains(called.out, "busy 3")) << called.output();
  EXPECT_EQ(folder.Call("run --output out").status, 0);
}

TEST_F(HostileCliTest, AHomeThatCannotBeWrittenCostsTheCacheAlone) {
  folder.WritePassing("ok");
  for (const char* home : {"/dev/null", "/proc/nowhere"}) {
    const Called called =
        folder.Call("run", "TMPDIR='" + folder.path() + "' HOME=" + home +
                               "; unset TRAINWRECK_CACHE XDG_CACHE_HOME; export X");
    EXPECT_EQ(called.status, 0) << called.output();
    const std::string warning = "warning: no cache: " + std::string(home);
    ASSERT_TRUE(Contains(called.err, warning)) << called.err;
    EXPECT_EQ(called.err.find(warning), called.err.rfind(warning)) << "said once";
  }
  for (const auto& entry : fs::directory_iterator(folder.path())) {
    EXPECT_NE(entry.path().filename().string().rfind("trainwreck-", 0), 0u) << entry.path();
  }
}

TEST_F(HostileCliTest, ACacheThatOthersCanWriteIsNotUsed) {
  folder.WritePassing("ok");
  ASSERT_EQ(folder.Call("validate").status, 0);
  const std::string cache = folder.path() + "/cache";
  EXPECT_EQ(fs::status(cache).permissions(), fs::perms::owner_all);
  // What a stranger put there says that the target has no faults.
  for (const auto& entry : fs::directory_iterator(cache + "/descriptions")) {
    Json planted = Json::parse(std::ifstream(entry.path()));
    planted["faults"] = Json::array();
    std::ofstream(entry.path()) << planted;
  }
  EXPECT_EQ(folder.Call("validate").status, 3);  // the planted one, while the cache is trusted
  fs::permissions(cache, fs::perms::all);
  Called called = folder.Call("validate");
  EXPECT_EQ(called.status, 0) << called.output();
  EXPECT_TRUE(Contains(called.err, "warning: no cache: " + cache)) << called.err;
  fs::permissions(cache, fs::perms::owner_all);
  // Not for everybody, nor in a sandbox that knows one user alone.
  if (chown(cache.c_str(), 12345, 12345) != 0) return;
  called = folder.Call("validate");
  EXPECT_EQ(called.status, 0) << called.output();
  EXPECT_TRUE(Contains(called.err, "belongs to another user")) << called.err;
}

// As on a full disk: the run's own record cannot be written.
TEST_F(HostileCliTest, VerdictsSurviveRunsThatCannotBeStored) {
  folder.WritePassing("one");
  folder.WritePassing("two");
  const std::string target = WriteTarget(
      "target", "[ -z \"$TRAINWRECK_PLAN\" ] || mkdir -p \"$TRAINWRECK_TRACE/run.json\"");
  const Called called = Run(target, "--keep all --output out");
  EXPECT_EQ(called.status, 0) << called.output();
  EXPECT_TRUE(Contains(called.out, "# 2 cases: 2 pass")) << called.out;
  EXPECT_EQ(Json::parse(folder.Read("out/verdicts.json")).at("verdicts").size(), 2u);
  const std::string warning = "warning: runs are not kept whole";
  ASSERT_TRUE(Contains(called.err, warning)) << called.err;
  EXPECT_EQ(called.err.find(warning), called.err.rfind(warning)) << "said once";
}

TEST_F(HostileCliTest, AReportThatCannotBeWrittenTakesNothingFromTheOthers) {
  folder.WritePassing("ok");
  const Called called =
      folder.Call("run --report junit=/dev/full,markdown=report.md --output out --history h.db");
  EXPECT_EQ(called.status, 7) << called.output();
  EXPECT_TRUE(Contains(called.err, "a report is missing: ")) << called.err;
  EXPECT_TRUE(Contains(called.err, "/dev/full")) << called.err;
  EXPECT_TRUE(Contains(called.out, "# 1 case: 1 pass")) << called.out;
  EXPECT_FALSE(Contains(called.out, "# report: /dev/full")) << called.out;
  EXPECT_TRUE(folder.Has("out/verdicts.json"));
  EXPECT_TRUE(Contains(folder.Read("report.md"), "fake/ok"));
  EXPECT_TRUE(folder.Has("h.db"));
}

TEST_F(HostileCliTest, PathsThatCannotBeWrittenAreFoundBeforeAnyRun) {
  folder.WritePassing("ok");
  fs::create_directories(folder.path() + "/a-folder");
  folder.Write("a-file", "x");
  fs::create_directories(folder.path() + "/taken/verdicts.json");
  for (const char* options :
       {"run --output out --report junit=/proc/nowhere/j.xml",
        "run --output out --report markdown=fine.md,junit=a-folder",
        "run --output out --report json=a-file/j.json", "run --output out/../a-file",
        "run --output taken", "run --output out --history a-folder",
        "run --output out --history a-file/h.db", "matrix --output a-file",
        "checkup fake/ok --report a-folder", "lr-range fake/ok --report /proc/nowhere/x"}) {
    const Called called = folder.Call(options);
    EXPECT_EQ(called.status, 3) << options << called.output();
    EXPECT_TRUE(Contains(called.err, "/proc/nowhere") || Contains(called.err, "a-f") ||
                Contains(called.err, "taken"))
        << options << called.err;
    EXPECT_FALSE(folder.Has("out/fake")) << options;
    EXPECT_FALSE(folder.Has("taken/fake")) << options;
  }
  EXPECT_FALSE(folder.Has("fine.md"));
}

TEST_F(HostileCliTest, ABadLinkDoesNotBlockTheSuite) {
  folder.WritePassing("ok");
  const std::string root = folder.path() + "/scenarios/fake";
  fs::create_symlink("circle.yaml", root + "/circle.yaml");
  fs::create_symlink("nowhere.yaml", root + "/dangling.yaml");
  fs::create_symlink("circle", root + "/circle");
  const Called called = folder.Call("list");
  EXPECT_EQ(called.status, 0) << called.output();
  EXPECT_TRUE(Contains(called.out, "fake/ok")) << called.out;
  EXPECT_TRUE(Contains(called.err, "scenarios/fake/circle.yaml is left out")) << called.err;
  EXPECT_TRUE(Contains(called.err, "scenarios/fake/dangling.yaml is left out")) << called.err;
  // Named by hand it is a mistake.
  EXPECT_EQ(folder.Call("list scenarios scenarios/fake/circle.yaml").status, 2);
  EXPECT_EQ(folder.Call("list scenarios " + std::string(5000, 'a')).status, 2);
}

TEST_F(HostileCliTest, AFolderThatCannotBeReadIsAnError) {
  // Root reads everything as long as it has these.
  prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE);
  prctl(PR_CAPBSET_DROP, CAP_DAC_READ_SEARCH);
  folder.WritePassing("ok");
  folder.Write("scenarios/closed/bad.yaml", "not a scenario");
  fs::permissions(folder.path() + "/scenarios/closed", fs::perms::none);
  for (const char* arguments : {"run", "list", "validate", "run scenarios", "run 'fake/*'"}) {
    const Called called = folder.Call(arguments);
    EXPECT_EQ(called.status, 3) << arguments << called.output();
    EXPECT_TRUE(Contains(called.err, "cannot read the folder 'scenarios/closed'")) << called.err;
  }
  EXPECT_EQ(folder.Call("run fake/ok").status, 0);  // nobody asked for the others
  fs::permissions(folder.path() + "/scenarios/closed", fs::perms::owner_all);
}

TEST_F(HostileCliTest, TerminalsAreSpared) {
  folder.Write("scenarios/fake/raw.yaml", "apiVersion: trainwreck/v1\nkind: \x1b[2J\x07\n");
  const Called wrong = folder.Call("validate");
  EXPECT_EQ(wrong.status, 3);
  EXPECT_EQ(wrong.err.find('\x1b'), std::string::npos) << wrong.err;
  EXPECT_TRUE(Contains(wrong.err, "\\x1b[2J")) << wrong.err;
  fs::remove(folder.path() + "/scenarios/fake/raw.yaml");
  // What YAML can write without a control character.
  folder.WritePassing("ok", "tags: [\"\\e[2J\"]\n");
  std::string text = folder.Read("scenarios/fake/ok.yaml");
  text.replace(text.find("title: A slow descent"), 21, "title: \"A \\e[2J\\x9b31m\\r descent\"");
  folder.Write("scenarios/fake/ok.yaml", text);
  Json description = Json::parse(folder.Shell("\"$TRAINWRECK_TARGET\" --describe").out);
  description["signals"][0]["doc"] = "The \x1b]0;owned\x07 loss";
  description["faults"][0]["doc"] = "\x1b[1mSlows";
  description["version"] = "1\x1b[31m";
  description["recipe"].push_back(
      {{"name", "fake.\x1b[2J"}, {"type", "string"}, {"default", "\x1b[2J"}, {"doc", "\x1b[2J"}});
  folder.Write("description.json", description.dump());
  const std::string target = WriteTarget(
      "target", "[ \"$1\" != --describe ] || exec cat '" + folder.path() + "/description.json'");
  for (const char* arguments :
       {"list", "list faults", "list signals", "list recipe", "list --format bazel",
        "list --format json", "explain fake/ok", "explain loss", "explain fake.slow_descent",
        "run --dry-run", "run --output out", "run --arm control --seed 0", "validate -v", "doctor",
        "schema", "explain 'fake\x1b[2J'", "run 'fake\x1b[2J'", "history", "matrix --seeds 1"}) {
    const Called called = folder.Call(std::string(arguments), "TRAINWRECK_TARGET='" + target + "'");
    for (const std::string& shown : {called.out, called.err}) {
      EXPECT_EQ(shown.find('\x1b'), std::string::npos) << arguments << "\n" << shown;
      EXPECT_EQ(shown.find('\x07'), std::string::npos) << arguments << "\n" << shown;
      EXPECT_EQ(shown.find('\r'), std::string::npos) << arguments << "\n" << shown;
      EXPECT_EQ(shown.find("\xc2\x9b"), std::string::npos) << arguments << "\n" << shown;
    }
    EXPECT_FALSE(called.output().empty()) << arguments;
  }
  const Called shown = folder.Call("list", "TRAINWRECK_TARGET='" + target + "'");
  EXPECT_TRUE(Contains(shown.out, "A \\x1b[2J\\u009b31m\\x0d descent")) << shown.output();
  // What programs read stays JSON.
  const Called json = folder.Call("list --format json", "TRAINWRECK_TARGET='" + target + "'");
  EXPECT_TRUE(Contains(Json::parse(json.out).at(0).at("title").get<std::string>(), "\x1b[2J"));
}

// A signal comes while a thousand runs' folders would have to be removed: the report comes first.
TEST_F(HostileCliTest, ASignalIsNotHeldUpByFoldersOfRuns) {
  folder.WritePassing("slow", "budget: {seconds: 100, stall_seconds: 100}\n", "20");
  std::string text = folder.Read("scenarios/fake/slow.yaml");
  text.replace(text.find("{scale: {optimizer.lr: 50}}"), 27,
               "{set: {optimizer.lr: 10, fake.mode: hangs}}");
  folder.Write("scenarios/fake/slow.yaml", text);
  folder.Write(
      "interrupt.sh",
      "\"$1\" run --output out -j 4 --full & pid=$!\n"
      "for i in $(seq 600); do\n"
      "  [ $(grep -l '\"end\"' out/fake/slow/*/*/rank0.jsonl 2>/dev/null | wc -l) -ge 20 ] "
      "&& break; sleep 0.05\n"
      "done\n"
      "kill -TERM $pid; wait $pid; exit $?\n");
  const Called called = folder.Shell("sh interrupt.sh '" + folder.program() + "'");
  EXPECT_EQ(called.status, 130) << called.output();
  EXPECT_TRUE(Contains(called.err, "the folders of runs were left in out")) << called.err;
  const Json report = Json::parse(folder.Read("out/verdicts.json"));
  EXPECT_TRUE(report["verdicts"].empty());
  EXPECT_GT(report["run"]["cpu_seconds"], 0) << "runs of a case without a verdict count, too";
  int left = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder.path() + "/out")) {
    left += entry.path().filename() == "rank0.jsonl";
  }
  EXPECT_GE(left, 20);
}

// Every page but the first, so that it can be opened.
void Damage(const std::string& path) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(0, std::ios::end);
  const auto size = static_cast<std::int64_t>(file.tellg());
  ASSERT_GT(size, 4096);
  file.seekp(4096);
  file << std::string(static_cast<std::size_t>(size - 4096), '\x5a');
}

TEST_F(HostileCliTest, ADamagedHistoryIsSaidAndTheWorkGoesOn) {
  folder.WritePassing("ok");
  ASSERT_EQ(folder.Call("run --output one").status, 0);
  ASSERT_EQ(folder.Call("run --output two").status, 0);
  Damage(folder.path() + "/.trainwreck/history.db");
  Called called = folder.Call("run --output three");
  EXPECT_EQ(called.status, 0) << called.output();
  EXPECT_TRUE(Contains(called.err, "warning: not in the history: ")) << called.err;
  EXPECT_TRUE(Contains(called.err, "the file is damaged")) << called.err;
  EXPECT_EQ(folder.Call("compare one two").status, 0);
  for (const char* arguments :
       {"history", "history fake/ok", "compare 1 2", "compare latest one", "baseline set 1"}) {
    called = folder.Call(arguments);
    EXPECT_EQ(called.status, 3) << arguments << called.output();
    EXPECT_TRUE(Contains(called.err, "history.db")) << arguments << called.err;
    EXPECT_TRUE(Contains(called.err, "the file is damaged")) << arguments << called.err;
  }
}

TEST_F(HostileCliTest, ADamagedRecordOfTheHistoryIsSaid) {
  folder.WritePassing("ok");
  ASSERT_EQ(folder.Call("run --output one").status, 0);
  for (const char* damage :
       {"UPDATE reading SET margins = '{\"zero\": 1}'", "UPDATE reading SET margins = '{\"0\":'",
        "UPDATE verdict SET environment = '[1]'"}) {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open((folder.path() + "/.trainwreck/history.db").c_str(), &database),
              SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(database, damage, nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(database);
    const Called called = folder.Call("compare 1 one");
    EXPECT_EQ(called.status, 3) << damage << called.output();
    EXPECT_TRUE(Contains(called.err, "a record of the history is damaged")) << called.err;
  }
}

}  // namespace
}  // namespace trainwreck
