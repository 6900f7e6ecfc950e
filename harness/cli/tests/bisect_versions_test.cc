// bisect --versions: releases of a small Python package, from an index in a folder. No network.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "harness/cli/tests/cli_testing.h"
#include "harness/protocol/json.h"

namespace trainwreck {
namespace {

// Writes a wheel of one module: FOLDER PACKAGE VERSION SOURCE.
constexpr char kWheel[] = R"(
import sys, zipfile
folder, package, version, source = sys.argv[1:]
info = f"{package}-{version}.dist-info"
files = {
    f"{package}/__init__.py": source,
    f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n",
    f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\n"
                     "Tag: py3-none-any\n",
}
files[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"])
with zipfile.ZipFile(f"{folder}/{package}-{version}-py3-none-any.whl", "w") as wheel:
    for name, text in files.items():
        wheel.writestr(name, text)
)";

// A training program whose loss comes from the package.
constexpr char kProgram[] = R"(
import sys, toyloss
options = dict(word.split("=") for word in sys.argv[1:])
for step in range(int(options["--steps"])):
    loss = toyloss.mean(int(options["--parts"])) * (1 - float(options["--rate"])) ** step
    print(f"step {step}: loss {loss:.17g}", flush=True)
)";

constexpr char kTargets[] = R"(
apiVersion: trainwreck/v1
kind: Targets
targets:
  toy:
    command: [python3, train.py, "--steps={steps}", "--rate={rate}", "--parts={parts}"]
    recipe: {steps: 4, rate: 0.1, parts: 1}
    signals: {loss: {scale: log}}
    sources:
      - {stdout: 'step (?P<step>\d+): loss (?P<loss>\S+)'}
)";

constexpr char kScenario[] = R"(
apiVersion: trainwreck/v1
kind: Scenario
name: parts
title: The mean of two parts is the mean
seeds: 1
twins:
  halves: {set: {parts: 2}}
agree:
  loss: always abs(loss - control.loss) <= 0.001 * abs(control.loss)
must_notice:
  slower: {fault: recipe.scale_rate, with: {factor: 0.5}, only_in_twins: true}
)";

constexpr char kSound[] = "def mean(parts): return 2.0\n";

class BisectVersions : public testing::Test {
 protected:
  BisectVersions() {
    folder.Write("wheel.py", kWheel);
    folder.Write("train.py", kProgram);
    folder.Write("trainwreck.yaml", kTargets);
    folder.Write("scenarios/parts.yaml", kScenario);
    folder.Shell("mkdir index && unset TRAINWRECK_TARGET");
  }

  void Publish(const std::string& version, const std::string& source,
               const std::string& package = "toyloss") const {
    folder.Write("source", source);
    const Called made =
        folder.Shell("python3 wheel.py index " + package + " " + version + " \"$(cat source)\"");
    EXPECT_EQ(made.status, 0) << made.output();
  }

  // The mean of means is wrong by this share.
  static std::string Wrong(const std::string& share) {
    return "def mean(parts): return 2.0 + (parts - 1) * " + share + "\n";
  }

  // 1.0 to 1.12: 1.10 is the culprit. The search looks at those first that cannot be judged.
  void PublishHistory() const {
    for (int minor = 0; minor <= 12; ++minor) {
      const std::string version = "1." + std::to_string(minor);
      Publish(version, minor == 6    ? "raise ImportError('no such symbol')\n"
                       : minor == 8  ? Wrong("0.004")
                       : minor >= 10 ? Wrong("0.9")
                                     : kSound);
    }
    Publish("1.11rc1", kSound);
  }

  Called Bisect(const std::string& arguments) const {
    return folder.Call("bisect " + arguments, Environment());
  }
  std::string Environment() const {
    return "TRAINWRECK_TARGET= PIP_CONFIG_FILE=/dev/null PIP_NO_INDEX=1 "
           "PIP_INDEX_URL= PIP_FIND_LINKS='" +
           folder.path() + "/index'";
  }
  Json Result() const { return Json::parse(folder.Read("result.json")); }
  std::vector<Json> Log() const {
    std::istringstream lines(folder.Shell("cat .trainwreck/bisect/*/log.jsonl").out);
    std::vector<Json> records;
    for (std::string line; std::getline(lines, line);) records.push_back(Json::parse(line));
    return records;
  }

  CliFolder folder;
};

TEST_F(BisectVersions, FindsTheReleaseAmongOthersThatFailOtherwise) {
  PublishHistory();
  const Called called = Bisect("parts --versions toyloss 1.0..1.12 --json result.json");
  EXPECT_EQ(called.status, 0) << called.output();
  for (const char* line :
       {"# 12 releases after toyloss 1.0\n",
        "# 1 pre-release is left out, --pre takes them: 1.11rc1\n",
        "toyloss 1.6: cannot be imported: ImportError: no such symbol, see ",
        "\nculprit: the first bad release\n  toyloss 1.10\nfirst bad  toyloss 1.10\n"
        "last good  toyloss 1.9\n",
        "\nskipped    toyloss 1.6: cannot be imported: ImportError: no such symbol\n",
        "\nskipped    toyloss 1.8: fails otherwise: twins_differ ('loss' in halves) by ",
        "\ncompare    diff -r "}) {
    EXPECT_TRUE(Contains(called.out, line)) << line << "\n" << called.output();
  }
  EXPECT_FALSE(Contains(called.out, "commit")) << called.out;
  EXPECT_FALSE(folder.Has(".trainwreck/history.db"));  // these are no runs of the user's stack
  const Json result = Result();
  EXPECT_EQ(result.at("of"), "release");
  EXPECT_EQ(result.at("package"), "toyloss");
  EXPECT_EQ(result.at("first_bad"), "1.10");
  EXPECT_EQ(result.at("last_good"), "1.9");
  EXPECT_EQ(result.at("culprits")[0].at("subject"), "toyloss 1.10");
  EXPECT_EQ(result.at("candidates"), 12);
  EXPECT_EQ(result.at("skipped").size(), 2u) << result.dump(1);
  const std::string log = result.at("log");
  const Called replayed = folder.Call("bisect --replay " + log);
  EXPECT_TRUE(Contains(replayed.out, "release 1.12")) << replayed.output();
  EXPECT_TRUE(Contains(replayed.out, "culprit 1.10\n")) << replayed.output();
}

TEST_F(BisectVersions, GoesOnAfterAKill) {
  for (int minor = 0; minor <= 4; ++minor) {
    Publish("1." + std::to_string(minor), minor >= 3 ? Wrong("0.9") : kSound);
  }
  // The program ends bisect when it first meets a release that is no end.
  folder.Write("train.py", std::string("import os, signal, sys, toyloss\n") +
                               "if os.environ['TRAINWRECK_RELEASE'] == os.environ.get('KILL'):\n"
                               "    os.kill(int(open('bisect.pid').read()), signal.SIGKILL)\n" +
                               kProgram);
  const std::string command = " bisect parts --versions toyloss 1.0..1.4 --json result.json";
  const Called killed =
      folder.Shell("echo $$ >bisect.pid; exec '" + folder.program() + "'" + command,
                   Environment() + " KILL=1.2");
  EXPECT_NE(killed.status, 0) << killed.output();
  const std::vector<Json> before = Log();
  ASSERT_GT(before.size(), 3u);
  EXPECT_NE(before.back().at("t"), "end");
  const Called called = folder.Shell("'" + folder.program() + "'" + command, Environment());
  EXPECT_EQ(called.status, 0) << called.output();
  const auto is_run = [](const Json& record) { return record.at("t") == "run"; };
  const auto runs = std::count_if(before.begin(), before.end(), is_run);
  EXPECT_TRUE(Contains(called.out, "# goes on after " + std::to_string(runs) + " runs: "))
      << called.out;
  EXPECT_EQ(Result().at("first_bad"), "1.3");
  const std::vector<Json> after = Log();
  EXPECT_EQ(Result().at("runs"), std::count_if(after.begin(), after.end(), is_run));
  for (std::size_t i = 0; i < before.size(); ++i) EXPECT_EQ(after.at(i), before[i]) << i;
}

// Each partner is an overlay as well, and a target's own PYTHONPATH stands behind them.
TEST_F(BisectVersions, PutsPartnersBeforeTheTarget) {
  const std::string needs = "import partner\nassert partner.VERSION == 2\n";
  for (int minor = 0; minor <= 3; ++minor) {
    Publish("1." + std::to_string(minor), needs + (minor >= 2 ? Wrong("0.9") : kSound));
  }
  for (int major : {1, 2}) {
    Publish(std::to_string(major) + ".0", "VERSION = " + std::to_string(major) + "\n", "partner");
  }
  folder.Write("own/partner.py", "VERSION = 1\n");
  folder.Write("own/toyloss.py", "raise ImportError('the installed one')\n");
  folder.Write("trainwreck.yaml", std::string(kTargets) + "    environment: {PYTHONPATH: own}\n");
  const Called called =
      Bisect("parts --versions toyloss 1.0..1.3 --with partner==2.0 --json result.json");
  EXPECT_EQ(called.status, 0) << called.output();
  EXPECT_EQ(Result().at("first_bad"), "1.2");
  const Called other = Bisect("parts --versions toyloss 1.0..1.3 --with partner==1.0");
  EXPECT_EQ(other.status, 1) << other.output();
  EXPECT_TRUE(Contains(other.out, "cannot be imported: AssertionError")) << other.output();
}

TEST_F(BisectVersions, TakesPreReleasesWhenAsked) {
  for (const char* version : {"1.0", "1.1a1", "1.1", "1.2.dev1"}) Publish(version, kSound);
  for (const char* version : {"1.2rc1", "1.2"}) Publish(version, Wrong("0.9"));
  const std::string test = "--test 'python3 -c \"import toyloss; assert toyloss.mean(2) == 2\"' ";
  Called called = Bisect(test + "--versions toyloss 1..1.2 --pre --json result.json");
  EXPECT_EQ(called.status, 0) << called.output();
  EXPECT_TRUE(Contains(called.out, "# 5 releases after toyloss 1.0\n")) << called.out;
  EXPECT_EQ(Result().at("first_bad"), "1.2rc1");
  EXPECT_EQ(Result().at("last_good"), "1.2.dev1");
  // An end is asked for.
  called = Bisect(test + "--versions toyloss 1.0..1.2rc1 --skip 1.1");
  EXPECT_TRUE(Contains(called.out, "# 2 releases after toyloss 1.0\n")) << called.output();
  EXPECT_TRUE(Contains(called.out, "skipped    toyloss 1.1: skipped by hand\n")) << called.output();
}

// The bad end may be the older one.
TEST_F(BisectVersions, FindsWhereItWasRepaired) {
  for (const char* version : {"1.0", "1.1", "1.2"}) Publish(version, Wrong("0.9"));
  for (const char* version : {"1.3rc1", "1.3", "1.4"}) Publish(version, kSound);
  const Called called = Bisect(
      "--test 'python3 -c \"import toyloss; assert toyloss.mean(2) == 2\"' "
      "--versions toyloss 1.4..1.0 --json result.json");
  EXPECT_EQ(called.status, 0) << called.output();
  EXPECT_TRUE(Contains(called.out,
                       "# 4 releases before toyloss 1.4\n# 1 pre-release is left out, --pre takes "
                       "them: 1.3rc1\n"))
      << called.out;
  EXPECT_TRUE(Contains(called.out,
                       "\nculprit: the last bad release\n  toyloss 1.2\nlast bad   toyloss "
                       "1.2\ngood from  toyloss 1.3\n"))
      << called.out;
  EXPECT_EQ(Result().at("last_bad"), "1.2");
  EXPECT_EQ(Result().at("first_good"), "1.3");
}

// `pip --python` takes no name that is found on PATH.
TEST_F(BisectVersions, TakesThePipOfPython3WhereTheTargetsHasNone) {
  Publish("1.0", kSound);
  Publish("1.1", Wrong("0.9"));
  folder.Shell("python3 -m venv --without-pip bare && ln -s python3 bare/bin/bare");
  const Called called = folder.Call(
      "bisect --test 'bare -c \"import toyloss; assert toyloss.mean(2) == 2\"' --python bare "
      "--versions toyloss 1.0..1.1 --json result.json",
      "PATH=\"$PATH:" + folder.path() + "/bare/bin\" " + Environment());
  EXPECT_EQ(called.status, 0) << called.output();
  EXPECT_EQ(Result().at("first_bad"), "1.1");
}

// pip lists no yanked releases, but installs one that is named.
TEST_F(BisectVersions, TakesAYankedReleaseWhenAsked) {
  Publish("1.0", kSound);
  Publish("1.1", Wrong("0.9"));
  Publish("1.2", Wrong("0.9"));
  folder.Shell("mkdir -p simple/toyloss && cp index/* simple/toyloss");
  std::string page;
  for (const std::string version : {"1.0", "1.1", "1.2"}) {
    const std::string file = "toyloss-" + version + "-py3-none-any.whl";
    page += "<a href='" + file + "'" + (version == "1.1" ? " data-yanked='broken'" : "") + ">" +
            file + "</a>\n";
  }
  folder.Write("simple/toyloss/index.html",
               "<!DOCTYPE html><html><body>" + page + "</body></html>");
  auto bisect = [&](const std::string& more) {
    return folder.Call(
        "bisect --test 'python3 -c \"import toyloss; assert toyloss.mean(2) == 2\"' --versions "
        "toyloss 1.0..1.2 --json result.json " +
            more,
        "TRAINWRECK_TARGET= PIP_CONFIG_FILE=/dev/null PIP_NO_INDEX= PIP_FIND_LINKS= "
        "PIP_INDEX_URL='file://" +
            folder.path() + "/simple'");
  };
  const Called without = bisect("");
  EXPECT_EQ(without.status, 0) << without.output();
  EXPECT_EQ(Result().at("first_bad"), "1.2");
  const Called with = bisect("--also 1.1");
  EXPECT_EQ(with.status, 0) << with.output();
  EXPECT_EQ(Result().at("first_bad"), "1.1");
}

TEST_F(BisectVersions, RefusesWhatIsNoRange) {
  for (const char* version : {"1.0", "1.1", "1.2"}) Publish(version, kSound);
  const std::pair<const char*, const char*> wrong[] = {
      {"--versions nosuch 1.0..1.1", "pip lists no releases: No matching distribution found"},
      {"--versions 'toy loss' 1.0..1.1", "'toy loss' is no name of a package"},
      {"--versions toyloss 1.0", "'1.0' is no range: say the good release and the bad one, as "},
      {"--versions toyloss 1.0..main", "'main' is no version, as 1.2.0 is"},
      {"--versions toyloss 1.0..1.0.0", "nothing lies between 1.0 and 1.0.0"},
      {"--versions toyloss 1.0..1.3", "pip lists no release 1.3 for python3"},
      {"--versions toyloss 1.0..1.2 --with toyloss==1.1", "whose releases are tried"},
      {"--versions toyloss 1.0..1.2 --with other", "say PACKAGE==VERSION"},
      {"--versions toyloss 1.0..1.2 --with other==1.0", "No matching distribution found for other"},
      {"--versions toyloss 1.0..1.2 --build make", "--build is about commits"},
      {"--versions toyloss 1.0..1.2 --python /bin/false", "'/bin/false' is no Python"},
      {"--versions toyloss 1.0..1.2 --skip 2.0", "is not between the ends"},
      {"--good a --bad b --pre", "--pre goes with --versions"}};
  for (const auto& [arguments, message] : wrong) {
    const Called called = Bisect("parts " + std::string(arguments));
    EXPECT_EQ(called.status, 2) << arguments << "\n" << called.output();
    EXPECT_TRUE(Contains(called.err, message)) << arguments << "\n" << called.output();
  }
  folder.Shell("sed -i 's/python3, train/python3, -I, train/' trainwreck.yaml");
  const Called deaf = Bisect("parts --versions toyloss 1.0..1.2");
  EXPECT_EQ(deaf.status, 2) << deaf.output();
  EXPECT_TRUE(Contains(deaf.err, "-I, which ignores PYTHONPATH")) << deaf.output();
}

// Nothing is said of a package because the network is down.
TEST_F(BisectVersions, StopsWhereTheIndexIsOutOfReach) {
  const Called called = folder.Call(
      "bisect parts --versions toyloss 1.0..1.2",
      "TRAINWRECK_TARGET= PIP_CONFIG_FILE=/dev/null PIP_NO_INDEX= PIP_FIND_LINKS= PIP_RETRIES=1 "
      "PIP_INDEX_URL=http://127.0.0.1:9/simple");
  EXPECT_EQ(called.status, 7) << called.output();
  EXPECT_TRUE(Contains(called.err, "pip does not reach an index")) << called.output();
}

}  // namespace
}  // namespace trainwreck
