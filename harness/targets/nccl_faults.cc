#include "harness/targets/nccl_faults.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <utility>

#include "harness/protocol/parse_json.h"

namespace trainwreck {
namespace {

namespace fs = std::filesystem;

// From the program's folder: as ci/install.sh installs it and in a wheel, and in Bazel's output
// tree.
constexpr const char* kFolders[] = {"../lib/trainwreck", "../../preload"};

struct Kind {
  const char* fault;
  const char* action;  // of the library's rules
  const char* doc;
  std::vector<ParamInfo> params;
};

ParamInfo Whole(const char* name, int value, double min, double max, const char* unit,
                const char* doc) {
  return {.name = name,
          .type = ValueType::kInt,
          .default_value = value,
          .min = min,
          .max = max,
          .unit = unit,
          .doc = doc};
}

constexpr double kMany = 1e9;

const std::vector<Kind>& Kinds() {
  static const std::vector<Kind> kinds = {
      {"nccl.delay",
       "delay",
       "Holds a rank's NCCL call back.",
       {Whole("ms", 1000, 0, kMany, "ms", "For how long.")}},
      {"nccl.drop", "drop", "Leaves a rank's NCCL call out, and says that it succeeded.", {}},
      {"nccl.fail",
       "error",
       "Lets a rank's NCCL call fail.",
       {Whole("code", 3, 1, 100, "",
              "The ncclResult_t: 2 a system error, 3 an internal one, 6 a "
              "remote one.")}},
      {"nccl.reorder", "reorder", "Makes a rank's NCCL call after the one that follows it.", {}},
      {"nccl.fewer_elements",
       "fewer",
       "Lets a rank take part in an NCCL call with fewer elements than its peers.",
       {Whole("elements", 1, 1, kMany, "elements", "How many fewer.")}},
      {"nccl.other_type",
       "retype",
       "Lets a rank take part in an NCCL call with another type; with fewer elements, where that "
       "type is wider.",
       {Whole("datatype", 6, 0, 11, "",
              "The ncclDataType_t: 6 half, 7 float, 8 double, 9 "
              "bfloat16.")}},
  };
  return kinds;
}

std::vector<ParamInfo> WithCommon(std::vector<ParamInfo> params) {
  params.insert(
      params.begin(),
      {{.name = "op",
        .type = ValueType::kString,
        .default_value = "any",
        .choices = {"any", "all_reduce", "broadcast", "reduce", "all_gather", "reduce_scatter",
                    "all_to_all", "send", "recv"},
        .doc = "The calls that count."},
       Whole("call", 0, 0, kMany, "calls", "The first to act on; each process counts from 0."),
       Whole("calls", 1, 0, kMany, "calls", "On how many to act; 0: on all that follow.")});
  return params;
}

std::string TextOf(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string JoinRanks(const std::vector<int>& ranks) {
  std::string text;
  for (const int rank : ranks) text += (text.empty() ? "" : ",") + std::to_string(rank);
  return text;
}

}  // namespace

std::string FindNcclShim() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  for (const char* folder : kFolders) {
    const fs::path file =
        (program.parent_path() / folder / "libtrainwreck_nccl.so").lexically_normal();
    if (fs::is_regular_file(file, error)) return file.string();
  }
  return "";
}

std::vector<FaultInfo> NcclFaultInfos() {
  std::vector<FaultInfo> faults;
  for (const Kind& kind : Kinds()) {
    faults.push_back({.name = kind.fault,
                      .doc = std::string(kind.doc) +
                             " Counts calls, not steps: of the trigger only `phase`, `attempt` "
                             "and `ranks` make sense.",
                      .params = WithCommon(kind.params),
                      .features = {kNcclFeature},
                      .evidence = "the call, its number, the rank, before and after"});
  }
  return faults;
}

std::string NcclRuleText(const Plan& plan, int rank, LauncherKind launcher) {
  std::string text;
  for (const PlannedFault& fault : plan.faults) {
    const auto kind = std::find_if(Kinds().begin(), Kinds().end(),
                                   [&](const Kind& one) { return one.fault == fault.fault; });
    if (kind == Kinds().end()) continue;
    Trigger trigger = fault.trigger;
    std::string ranks;
    if (launcher != LauncherKind::kOwn) {  // one environment for all of them
      ranks = JoinRanks(trigger.ranks);
      trigger.ranks.clear();
    }
    if (!trigger.Matches(0, rank, plan.phase, plan.attempt, plan.seed)) continue;
    text += (text.empty() ? "" : "; ") + ("do=" + std::string(kind->action)) + " id=" + fault.id;
    if (!ranks.empty()) text += " ranks=" + ranks;
    for (const auto& [name, value] : fault.with) text += " " + name + "=" + TextOf(value);
  }
  return text;
}

NcclFaults::NcclFaults(const Plan& plan, int rank, LauncherKind launcher, std::string evidence_path,
                       std::function<void(Json)> fire)
    : plan_(plan),
      rules_(NcclRuleText(plan, rank, launcher)),
      evidence_path_(std::move(evidence_path)),
      fire_(std::move(fire)) {
  if (rules_.empty()) return;
  // What an earlier attempt did is told already.
  evidence_ = std::make_unique<GrowingFile>(evidence_path_, /*skip_existing=*/true);
}

void KeepNcclLog(const TargetSpec& spec, const std::string& path,
                 std::map<std::string, std::string>& environment) {
  const bool uses_nccl =
      std::find(spec.features.begin(), spec.features.end(), "backend:nccl") != spec.features.end();
  if (!uses_nccl || spec.launcher != LauncherKind::kOwn) return;
  for (const auto& [name, value] :
       {std::pair<const char*, std::string>("NCCL_DEBUG", "WARN"), {"NCCL_DEBUG_FILE", path}}) {
    if (std::getenv(name) == nullptr) environment.emplace(name, value);
  }
}

void NcclFaults::ChangeEnvironment(std::map<std::string, std::string>& environment) const {
  if (rules_.empty()) return;
  const std::string shim = FindNcclShim();
  if (shim.empty()) throw std::runtime_error("libtrainwreck_nccl.so is not installed");
  if (shim.find_first_of(" :") != std::string::npos) {
    throw std::runtime_error(shim + ": LD_PRELOAD takes no path with a space or a colon");
  }
  const char* inherited = std::getenv("LD_PRELOAD");
  std::string& preload =
      environment.try_emplace("LD_PRELOAD", inherited != nullptr ? inherited : "").first->second;
  preload = preload.empty() ? shim : shim + ":" + preload;
  environment["TRAINWRECK_NCCL"] = rules_;
  environment["TRAINWRECK_NCCL_LOG"] = evidence_path_;
}

void NcclFaults::Read() {
  bool begun_anew = false;
  if (!evidence_ || !evidence_->Read(tail_, begun_anew)) return;
  std::size_t begin = 0;
  for (std::size_t end; (end = tail_.find('\n', begin)) != std::string::npos; begin = end + 1) {
    Json fields = TryParseJson(tail_.substr(begin, end - begin));
    if (!fields.is_object()) continue;
    const auto id = fields.find("id");
    const auto fault = std::find_if(
        plan_.faults.begin(), plan_.faults.end(),
        [&](const PlannedFault& one) { return id != fields.end() && *id == Json(one.id); });
    if (fault == plan_.faults.end()) continue;  // the program can write there, too
    fields["fault"] = fault->fault;
    fire_(std::move(fields));
  }
  tail_.erase(0, begin);
}

}  // namespace trainwreck
