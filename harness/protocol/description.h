// A target's description of itself: `TARGET --describe` prints it as JSON. Validation,
// `list`, `explain` and the JSON Schema use it, so they work for any target.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/protocol/json.h"

namespace trainwreck {

inline constexpr int kProtocolVersion = 1;

enum class ValueType { kBool, kInt, kNumber, kString, kStringList, kIntList };

// One recipe key ("optimizer.lr") or one parameter of a fault ("factor").
struct ParamInfo {
  std::string name;
  ValueType type = ValueType::kNumber;
  Json default_value;  // null: must be given
  std::optional<double> min;
  std::optional<double> max;
  std::vector<std::string> choices;  // of a string
  std::string unit;
  std::string doc;
  std::string role;  // of a recipe key: what it is for, "learning_rate", see recipe_view.h
};

// Signals on a log scale are positive and span decades: they are compared in octaves.
enum class Scale { kLinear, kLog };

struct SignalInfo {
  std::string name;
  std::string unit;
  Scale scale = Scale::kLinear;
  bool exact = false;       // a count, a digest, an exit code: may be compared with ==
  bool per_module = false;  // may be followed by {module-glob}
  bool sparse = false;      // recorded at some steps only; slices read the present samples
  std::string doc;
  bool optional = false;  // a healthy run may have none of it
  // What the program calls a signal that has a role; its name is then that of the role. Empty: the
  // same.
  std::string own_name;
};
inline const std::string& OwnName(const SignalInfo& info) {
  return info.own_name.empty() ? info.name : info.own_name;
}

// The roles that a signal may have: the reference trainer's names for what portable scenarios and
// the tools read.
const std::vector<std::string>& SignalRoles();

struct EventInfo {
  std::string name;
  std::vector<std::string> fields;
  std::string doc;
  bool on_demand = false;  // written only where the plan's `record` names it
};

// One change that a fault makes to the recipe before anything is built. The harness applies it.
struct Amendment {
  enum class Op { kSet, kScale };
  std::string key;
  Op op = Op::kSet;
  std::string param;  // the fault's parameter that holds the value or the factor; empty: `value`
  Json value;
};

struct FaultInfo {
  std::string name;  // "site.fault"
  std::string doc;
  std::vector<ParamInfo> params;
  std::vector<Amendment> amends;  // not empty: a fault of the recipe, performed by the harness
  bool has_trigger = true;        // takes at, from, to, every, ranks, phase, attempt, probability
  int min_ranks = 1;
  std::vector<std::string> features;  // that the target must have
  std::string evidence;               // the content of its `fired` event
  // The hooks that it acts in: after the event `hook_failed` of one of them it is silent.
  std::vector<std::string> hooks;
};

// One device of the machine that a run can get.
struct DeviceInfo {
  std::string kind;  // "cpu", "cuda": what the recipe's `device` calls it
  std::string name;  // "NVIDIA H200"
  std::int64_t memory_bytes = 0;
};

// What `trainwreck calibrate` measured with a target. A target does not describe it: the harness
// adds it, and keeps it with the description of stored runs.
struct Calibration {
  std::map<std::string, double> strengths;  // scenario -> the strength of its fault
  std::string remark;                       // what has changed since then; empty: nothing
};

struct TargetDescription {
  int protocol = kProtocolVersion;
  std::string name;
  std::string version;
  // 2: the program describes itself and performs faults; 1: it writes the trace; 0: it does not
  // know the protocol.
  int level = 2;
  std::vector<ParamInfo> recipe;
  std::vector<SignalInfo> signals;
  std::vector<EventInfo> events;
  std::vector<FaultInfo> faults;
  std::vector<std::string> features;  // "device:cpu", "backend:gloo", ...
  // The devices of this machine, as the target sees them; may be empty when the target does not
  // say.
  std::vector<DeviceInfo> devices;
  Calibration calibration;

  const ParamInfo* FindRecipeKey(const std::string& key) const;
  const SignalInfo* FindSignal(const std::string& name) const;  // or what the program calls it
  const EventInfo* FindEvent(const std::string& name) const;
  const FaultInfo* FindFault(const std::string& name) const;
  bool HasFeature(const std::string& feature) const;
  int CountDevices(const std::string& kind) const;
};

const char* ToString(ValueType type);
Json ToJson(const TargetDescription& description);
// Throws std::runtime_error with the offending path when `json` is no description.
TargetDescription DescriptionFromJson(const Json& json);

// Empty when `value` fits `info`; else what is wrong with it ("must be >= 0", "one of sgd, adamw").
std::string CheckValue(const ParamInfo& info, const Json& value);

// Signals, events and recipe keys that the harness itself provides for every target: the events
// that the launcher writes (spawned, exited, stalled, killed, restarted, ...) and the supervisor's
// settings.
void AddHarnessVocabulary(TargetDescription& description);

// The events of the launcher itself.
const std::vector<EventInfo>& LauncherEvents();

// Throws std::logic_error where `events` do not describe the event and its fields.
void RequireDescribed(const std::string& name, const Json& fields,
                      const std::vector<EventInfo>& events);

}  // namespace trainwreck
