// Faults of NCCL's calls, for any program with a shared libnccl: a library that is loaded before it
// (preload/nccl_shim.cc) does them, and writes what it did.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "harness/protocol/description.h"
#include "harness/protocol/plan.h"
#include "harness/targets/growing_file.h"
#include "harness/targets/target_spec.h"

namespace trainwreck {

// What a target needs for them: the library lies beside this program.
inline constexpr char kNcclFeature[] = "preload:nccl";

// Its path; empty where it is not installed.
std::string FindNcclShim();
// The faults that it can do.
std::vector<FaultInfo> NcclFaultInfos();
// The library's rules, as its preload/nccl_rules.h has them, for the faults that are due in this
// process; with a launcher, for all ranks that it starts. Empty: none.
std::string NcclRuleText(const Plan& plan, int rank, LauncherKind launcher);

// Lets NCCL write its warnings to `path`, for the report of a failure: of a target with the feature
// backend:nccl whose ranks the harness starts. What the user or the target has set stays.
void KeepNcclLog(const TargetSpec& spec, const std::string& path,
                 std::map<std::string, std::string>& environment);

class NcclFaults {
 public:
  // `fire` writes an event with the fields of what was done.
  NcclFaults(const Plan& plan, int rank, LauncherKind launcher, std::string evidence_path,
             std::function<void(Json)> fire);
  // Adds what makes the program load the library. Nothing, without a fault.
  void ChangeEnvironment(std::map<std::string, std::string>& environment) const;
  // Reports what was done since the last call.
  void Read();

 private:
  const Plan& plan_;
  const std::string rules_;
  const std::string evidence_path_;
  const std::function<void(Json)> fire_;
  std::unique_ptr<GrowingFile> evidence_;
  std::string tail_;
};

}  // namespace trainwreck
