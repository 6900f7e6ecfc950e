#include "harness/session/doctor.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "harness/session/fake_suite.h"

namespace trainwreck {
namespace doctor_test {

namespace fs = std::filesystem;

constexpr double kGibibyte = 1 << 30;

Machine GoodMachine() {
  Machine machine;
  machine.usable_cores = 2;
  machine.all_cores = 4;
  machine.available_memory = 2 * kGibibyte;
  machine.folder = "/here";
  machine.is_writable = true;
  machine.free_disk = kGibibyte;
  machine.open_files = 512;
  machine.has_death_signal = machine.has_subreaper = machine.has_proc = true;
  return machine;
}

// "warn disk; fail /proc": what is not ok, each with a fix.
std::string Ills(const std::vector<Finding>& findings) {
  std::string ills;
  for (const Finding& finding : findings) {
    if (finding.health == Health::kOk) continue;
    ills += (ills.empty() ? "" : "; ") +
            std::string(finding.health == Health::kWarn ? "warn " : "fail ") + finding.what;
    EXPECT_NE(finding.fix, "") << finding.what;
  }
  return ills;
}

TEST(CheckMachine, EachThingThatIsMissingIsNamed) {
  EXPECT_EQ(Ills(CheckMachine(GoodMachine())), "");
  const auto ills_with = [](auto change) {
    Machine machine = GoodMachine();
    change(machine);
    return Ills(CheckMachine(machine));
  };
  EXPECT_EQ(ills_with([](Machine& m) { m.usable_cores = 1; }), "warn cores");
  EXPECT_EQ(ills_with([](Machine& m) { m.available_memory = kGibibyte; }), "warn memory");
  EXPECT_EQ(ills_with([](Machine& m) { m.available_memory = 0.4 * kGibibyte; }), "fail memory");
  EXPECT_EQ(ills_with([](Machine& m) { m.free_disk = 0.9 * kGibibyte; }), "warn disk");
  EXPECT_EQ(ills_with([](Machine& m) { m.is_writable = false; }), "fail disk");
  EXPECT_EQ(ills_with([](Machine& m) { m.open_files = 256; }), "warn open files");
  EXPECT_EQ(ills_with([](Machine& m) { m.has_death_signal = false; }), "fail death signal");
  EXPECT_EQ(ills_with([](Machine& m) { m.has_subreaper = false; }), "fail subreaper");
  EXPECT_EQ(ills_with([](Machine& m) { m.has_proc = false; }), "fail /proc");
}

TEST(CheckMachine, ThisOneIsSeen) {
  const Machine machine = ThisMachine();
  EXPECT_EQ(machine.usable_cores, UsableCores());
  EXPECT_GT(machine.available_memory, 1e6);
  EXPECT_GT(machine.free_disk, 0);
  EXPECT_GT(machine.open_files, 0U);
  EXPECT_TRUE(machine.has_death_signal && machine.has_subreaper && machine.has_proc);
  EXPECT_TRUE(machine.is_writable);
  EXPECT_EQ(machine.folder, fs::current_path().string());
}

TEST(CheckDevices, ADriverThatTheTargetDoesNotUseIsWorthAWarning) {
  TargetDescription target;
  target.devices = {{.kind = "cpu"}};
  EXPECT_EQ(Ills(CheckDevices(target, {0}, /*has_driver=*/false)), "");
  EXPECT_EQ(CheckDevices(target, {0}, false).back().what, "CUDA");
  EXPECT_EQ(Ills(CheckDevices(target, {0}, /*has_driver=*/true)), "warn CUDA");
  target.devices.push_back({.kind = "cuda", .name = "A GPU", .memory_bytes = 3LL << 30});
  const std::vector<Finding> findings = CheckDevices(target, {0, 0}, true);
  EXPECT_EQ(Ills(findings), "");
  EXPECT_EQ(findings.back().seen, "cuda, A GPU, 3.0 GiB");
}

TEST(CheckDevices, AGpuThatOthersUseIsWorthAWarning) {
  TargetDescription target;
  target.devices = {{.kind = "cuda", .name = "A GPU", .memory_bytes = 3LL << 30}};
  const std::vector<Finding> findings = CheckDevices(target, {2LL << 30}, true);
  EXPECT_EQ(Ills(findings), "warn device");
  EXPECT_EQ(findings.back().seen, "cuda, A GPU, 3.0 GiB: other programs use 2.0 of its 3.0 GiB");
}

TEST(CheckedPreflight, IsAsBadAsTheWorstThatWasFound) {
  PreflightResult result;
  EXPECT_EQ(CheckedPreflight(result).finding.seen, "no case that is to pass");
  result.run = "control of nan/x";
  result.signals = "loss";
  result.wall_seconds = 0.25;
  EXPECT_EQ(CheckedPreflight(result).finding.health, Health::kOk);
  EXPECT_EQ(CheckedPreflight(result).finding.seen, "control of nan/x in 0.250 s; read: loss");
  result.findings.push_back({.diagnostic = {}, .lines = {"a line"}, .is_error = false});
  EXPECT_EQ(CheckedPreflight(result).finding.health, Health::kWarn);
  result.findings.push_back({.diagnostic = {}, .lines = {}, .is_error = true});
  result.signals.clear();
  const Checked ill = CheckedPreflight(result);
  EXPECT_EQ(ill.finding.health, Health::kFail);
  EXPECT_EQ(ill.finding.seen, "control of nan/x; read: nothing");
  EXPECT_EQ(ill.details.size(), 2U);
}

class CheckTargetTest : public ::testing::Test {
 protected:
  // "ok target; fail description"
  std::string Seen(const CommonOptions& options) {
    findings_.clear();
    CheckTarget(options, [this](const Checked& checked) { findings_.push_back(checked.finding); });
    std::string seen;
    for (const Finding& finding : findings_) {
      if (finding.what == "device" || finding.what == "CUDA") continue;  // this machine's
      constexpr const char* kWords[] = {"ok ", "warn ", "fail "};
      seen += (seen.empty() ? "" : "; ") + std::string(kWords[static_cast<int>(finding.health)]) +
              finding.what;
    }
    return seen;
  }

  std::string Script(const std::string& text) const {
    const std::string path = suite_.folder() + "/program";
    std::ofstream(path) << "#!/bin/sh\n" << text;
    fs::permissions(path, fs::perms::owner_all);
    return path;
  }

  testing::FakeSuite suite_;
  std::vector<Finding> findings_;
};

TEST_F(CheckTargetTest, OneThatTrainsIsWell) {
  suite_.WriteSlow("slow");
  EXPECT_EQ(Seen(suite_.common()),
            "ok target; ok description; ok fork server; ok train by fork; ok train by exec");
  EXPECT_EQ(findings_.back().seen.rfind("two steps in ", 0), 0U) << findings_.back().seen;
}

TEST_F(CheckTargetTest, EndsWhereNothingMoreCanBeSeen) {
  CommonOptions options = suite_.common();
  options.target = suite_.folder() + "/nothing";
  EXPECT_EQ(Seen(options), "fail target");
  suite_.WriteSlow("slow");
  options.target = Script("exit 0\n");
  EXPECT_EQ(Seen(options), "ok target; fail description");
}

TEST_F(CheckTargetTest, OneThatDescribesItselfAndDoesNotTrainIsIll) {
  suite_.WriteSlow("slow");
  CommonOptions options = suite_.common();
  options.target =
      Script("case \"$*\" in *--describe*) '" + FakeTargetPath() +
             "' \"$@\" | sed 's/\"fork-server\"/\"other\"/';; *) echo out of luck >&2; "
             "exit 3;; esac\n");
  EXPECT_EQ(Seen(options), "ok target; ok description; warn fork server; fail train by exec");
  EXPECT_NE(findings_.back().seen.find("out of luck"), std::string::npos) << findings_.back().seen;
  EXPECT_NE(findings_.back().fix.find("TRAINWRECK_PLAN="), std::string::npos);
}

TEST_F(CheckTargetTest, ScenariosAreCounted) {
  EXPECT_EQ(CheckScenarios(suite_.common()).health, Health::kWarn) << "there is no folder yet";
  suite_.WriteSlow("one");
  suite_.WriteSlow("two");
  const Finding finding = CheckScenarios(suite_.common());
  EXPECT_EQ(finding.health, Health::kOk);
  EXPECT_EQ(finding.seen, "2 files under " + suite_.folder() + "/scenarios");
}

}  // namespace doctor_test
}  // namespace trainwreck
