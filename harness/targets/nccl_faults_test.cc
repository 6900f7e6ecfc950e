// What the library before a program is told, and what its evidence becomes.
#include "harness/targets/nccl_faults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

namespace trainwreck {
namespace nccl_faults_test {

using testing::ElementsAre;
using testing::IsEmpty;

PlannedFault Delay(Trigger trigger = {}) {
  return {.id = "late",
          .fault = "nccl.delay",
          .with = {{"op", "all_reduce"}, {"call", 7}, {"calls", 1}, {"ms", 300}},
          .trigger = std::move(trigger)};
}

TEST(NcclFaults, TellTheRanksOwnProcess) {
  Plan plan;
  plan.faults = {Delay(), {.id = "other", .fault = "process.suspend", .with = {}, .trigger = {}}};
  EXPECT_EQ(NcclRuleText(plan, 0, LauncherKind::kOwn),
            "do=delay id=late call=7 calls=1 ms=300 op=all_reduce");
  plan.faults[0].trigger.ranks = {1};
  EXPECT_EQ(NcclRuleText(plan, 0, LauncherKind::kOwn), "");
  EXPECT_EQ(NcclRuleText(plan, 1, LauncherKind::kOwn),
            "do=delay id=late call=7 calls=1 ms=300 op=all_reduce");
}

TEST(NcclFaults, TellALauncherWhichRanksAreMeant) {
  Plan plan;
  plan.faults = {Delay({.ranks = {1, 3}}), Delay()};
  EXPECT_EQ(NcclRuleText(plan, 0, LauncherKind::kTorchrun),
            "do=delay id=late ranks=1,3 call=7 calls=1 ms=300 op=all_reduce; "
            "do=delay id=late call=7 calls=1 ms=300 op=all_reduce");
}

TEST(NcclFaults, ActInTheirPhaseAndAttemptAlone) {
  Plan plan;
  plan.faults = {Delay({.phase = "resume", .attempt = 0})};
  EXPECT_EQ(NcclRuleText(plan, 0, LauncherKind::kOwn), "");
  plan.phase = "resume";
  EXPECT_NE(NcclRuleText(plan, 0, LauncherKind::kOwn), "");
  plan.attempt = 1;
  EXPECT_EQ(NcclRuleText(plan, 0, LauncherKind::kOwn), "");
}

TEST(NcclFaults, LeaveAProgramAloneWithoutAFault) {
  Plan plan;
  std::map<std::string, std::string> environment;
  NcclFaults(plan, 0, LauncherKind::kOwn, "/nowhere", nullptr).ChangeEnvironment(environment);
  EXPECT_THAT(environment, IsEmpty());
}

TEST(NcclLog, IsKeptForRanksThatTheHarnessStarts) {
  unsetenv("NCCL_DEBUG");
  unsetenv("NCCL_DEBUG_FILE");
  using Variables = std::map<std::string, std::string>;
  const auto of = [](const TargetSpec& spec, Variables environment = {}) {
    KeepNcclLog(spec, "/run/7/nccl-rank1.log", environment);
    return environment;
  };
  TargetSpec spec;
  EXPECT_EQ(of(spec), Variables()) << "it may have no NCCL";
  spec.features = {"backend:nccl"};
  EXPECT_EQ(of(spec),
            Variables({{"NCCL_DEBUG", "WARN"}, {"NCCL_DEBUG_FILE", "/run/7/nccl-rank1.log"}}));
  EXPECT_EQ(of(spec, {{"NCCL_DEBUG", "INFO"}}).at("NCCL_DEBUG"), "INFO");
  setenv("NCCL_DEBUG_FILE", "/home/me/nccl.%p", 1);
  EXPECT_EQ(of(spec), Variables({{"NCCL_DEBUG", "WARN"}}));
  unsetenv("NCCL_DEBUG_FILE");
  spec.launcher = LauncherKind::kTorchrun;
  EXPECT_EQ(of(spec), Variables()) << "one environment for all of its ranks";
}

TEST(NcclFaults, RepeatTheEvidenceOfTheirOwnAlone) {
  const char* folder = std::getenv("TEST_TMPDIR");
  const std::string path = std::string(folder != nullptr ? folder : "/tmp") + "/nccl_evidence";
  std::ofstream(path) << R"({"id": "late", "call": 1})"
                      << "\n";
  Plan plan;
  plan.faults = {Delay()};
  std::vector<Json> fired;
  NcclFaults faults(plan, 0, LauncherKind::kOwn, path,
                    [&](Json fields) { fired.push_back(std::move(fields)); });
  faults.Read();
  EXPECT_THAT(fired, IsEmpty()) << "of an earlier attempt";
  std::ofstream file(path, std::ios::app);
  file << R"({"id": "late", "call": 7, "before": 0})"
       << "\n"
       << R"({"id": "unknown", "call": 8})"
       << "\nnot JSON\n"
       << R"({"id": "late", "ca)" << std::flush;
  faults.Read();
  ASSERT_EQ(fired.size(), 1U);
  EXPECT_EQ(fired[0]["fault"], "nccl.delay");
  EXPECT_EQ(fired[0]["call"], 7);
  file << R"(ll": 9})"
       << "\n"
       << std::flush;
  faults.Read();
  ASSERT_EQ(fired.size(), 2U);
  EXPECT_EQ(fired[1]["call"], 9);
}

TEST(NcclFaults, NeedTheLibrary) {
  for (const FaultInfo& fault : NcclFaultInfos()) {
    EXPECT_THAT(fault.features, ElementsAre(kNcclFeature)) << fault.name;
  }
}

}  // namespace nccl_faults_test
}  // namespace trainwreck
