#include "harness/protocol/description.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>

namespace trainwreck {
namespace {

struct TypeName {
  ValueType type;
  const char* name;
};
constexpr TypeName kTypeNames[] = {
    {ValueType::kBool, "bool"},          {ValueType::kInt, "int"},
    {ValueType::kNumber, "number"},      {ValueType::kString, "string"},
    {ValueType::kStringList, "strings"}, {ValueType::kIntList, "ints"},
};

ValueType TypeFromName(const std::string& name) {
  for (const TypeName& entry : kTypeNames) {
    if (name == entry.name) return entry.type;
  }
  throw std::runtime_error("description: unknown type '" + name + "'");
}

template <typename T>
const T* FindByName(const std::vector<T>& entries, const std::string& name) {
  auto found = std::find_if(entries.begin(), entries.end(),
                            [&](const T& entry) { return entry.name == name; });
  return found == entries.end() ? nullptr : &*found;
}

Json ToJson(const ParamInfo& info) {
  Json json = {{"name", info.name}, {"type", ToString(info.type)}, {"doc", info.doc}};
  if (!info.default_value.is_null()) json["default"] = info.default_value;
  if (info.min) json["min"] = *info.min;
  if (info.max) json["max"] = *info.max;
  if (!info.choices.empty()) json["choices"] = info.choices;
  if (!info.unit.empty()) json["unit"] = info.unit;
  if (!info.role.empty()) json["role"] = info.role;
  return json;
}

ParamInfo ParamFromJson(const Json& json) {
  ParamInfo info;
  info.name = json.at("name").get<std::string>();
  info.type = TypeFromName(json.at("type").get<std::string>());
  info.doc = json.value("doc", "");
  info.unit = json.value("unit", "");
  info.role = json.value("role", "");
  if (json.contains("default")) info.default_value = json["default"];
  if (json.contains("min")) info.min = json["min"].get<double>();
  if (json.contains("max")) info.max = json["max"].get<double>();
  info.choices = json.value("choices", std::vector<std::string>{});
  return info;
}

Json ToJson(const Amendment& amendment) {
  Json json = {{"key", amendment.key},
               {"op", amendment.op == Amendment::Op::kSet ? "set" : "scale"}};
  if (amendment.param.empty()) {
    json["value"] = amendment.value;
  } else {
    json["param"] = amendment.param;
  }
  return json;
}

Amendment AmendmentFromJson(const Json& json) {
  Amendment amendment;
  amendment.key = json.at("key").get<std::string>();
  amendment.op =
      json.at("op").get<std::string>() == "scale" ? Amendment::Op::kScale : Amendment::Op::kSet;
  amendment.param = json.value("param", "");
  if (json.contains("value")) amendment.value = json["value"];
  return amendment;
}

Json ToJson(const SignalInfo& info) {
  Json json = {{"name", info.name},
               {"unit", info.unit},
               {"scale", info.scale == Scale::kLog ? "log" : "linear"},
               {"exact", info.exact},
               {"per_module", info.per_module},
               {"sparse", info.sparse},
               {"optional", info.optional},
               {"doc", info.doc}};
  if (!info.own_name.empty()) json["own_name"] = info.own_name;
  return json;
}

SignalInfo SignalFromJson(const Json& json) {
  SignalInfo info;
  info.name = json.at("name").get<std::string>();
  info.unit = json.value("unit", "");
  info.scale = json.value("scale", "linear") == "log" ? Scale::kLog : Scale::kLinear;
  info.exact = json.value("exact", false);
  info.per_module = json.value("per_module", false);
  info.sparse = json.value("sparse", false);
  info.optional = json.value("optional", false);
  info.doc = json.value("doc", "");
  info.own_name = json.value("own_name", "");
  return info;
}

Json ToJson(const EventInfo& info) {
  Json json = {{"name", info.name}, {"fields", info.fields}, {"doc", info.doc}};
  if (info.on_demand) json["on_demand"] = true;
  return json;
}

EventInfo EventFromJson(const Json& json) {
  return {json.at("name").get<std::string>(), json.value("fields", std::vector<std::string>{}),
          json.value("doc", ""), json.value("on_demand", false)};
}

Json ToJson(const DeviceInfo& info) {
  return {{"kind", info.kind}, {"name", info.name}, {"memory_bytes", info.memory_bytes}};
}

DeviceInfo DeviceFromJson(const Json& json) {
  return {json.at("kind").get<std::string>(), json.value("name", ""),
          json.value("memory_bytes", std::int64_t{0})};
}

Json ToJson(const FaultInfo& info) {
  Json params = Json::array();
  for (const ParamInfo& param : info.params) params.push_back(ToJson(param));
  Json amends = Json::array();
  for (const Amendment& amendment : info.amends) amends.push_back(ToJson(amendment));
  Json json = {{"name", info.name},
               {"doc", info.doc},
               {"params", params},
               {"amends", amends},
               {"trigger", info.has_trigger},
               {"min_ranks", info.min_ranks},
               {"features", info.features},
               {"evidence", info.evidence}};
  if (!info.hooks.empty()) json["hooks"] = info.hooks;
  return json;
}

FaultInfo FaultFromJson(const Json& json) {
  FaultInfo info;
  info.name = json.at("name").get<std::string>();
  info.doc = json.value("doc", "");
  for (const Json& param : json.value("params", Json::array())) {
    info.params.push_back(ParamFromJson(param));
  }
  for (const Json& amendment : json.value("amends", Json::array())) {
    info.amends.push_back(AmendmentFromJson(amendment));
  }
  info.has_trigger = json.value("trigger", true);
  info.min_ranks = json.value("min_ranks", 1);
  info.features = json.value("features", std::vector<std::string>{});
  info.evidence = json.value("evidence", "");
  info.hooks = json.value("hooks", std::vector<std::string>{});
  return info;
}

template <typename T>
Json ListToJson(const std::vector<T>& entries) {
  Json list = Json::array();
  for (const T& entry : entries) list.push_back(ToJson(entry));
  return list;
}

// Calls `from` on each element and puts the element's path before its error.
template <typename T>
std::vector<T> ListFromJson(const Json& json, const char* key, T (*from)(const Json&)) {
  std::vector<T> entries;
  if (!json.contains(key)) return entries;
  if (!json[key].is_array()) {
    throw std::runtime_error(std::string("description: '") + key + "' must be a list");
  }
  for (std::size_t i = 0; i < json[key].size(); ++i) {
    try {
      entries.push_back(from(json[key][i]));
    } catch (const std::exception& error) {
      throw std::runtime_error(std::string("description: ") + key + "[" + std::to_string(i) +
                               "]: " + error.what());
    }
  }
  return entries;
}

std::string Join(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

// "1", not "1.0", for a bound that is whole.
std::string BoundText(double bound) {
  const bool is_whole = bound == std::floor(bound) && std::fabs(bound) < 1e15;
  return is_whole ? std::to_string(static_cast<std::int64_t>(bound)) : Json(bound).dump();
}

std::string CheckRange(const ParamInfo& info, double value) {
  if (!std::isfinite(value)) return "must be finite";
  if (info.min && value < *info.min) return "must be >= " + BoundText(*info.min);
  if (info.max && value > *info.max) return "must be <= " + BoundText(*info.max);
  return "";
}

}  // namespace

const char* ToString(ValueType type) {
  for (const TypeName& entry : kTypeNames) {
    if (type == entry.type) return entry.name;
  }
  return "?";
}

const std::vector<std::string>& SignalRoles() {
  static const std::vector<std::string> roles = {
      "loss",    "eval_loss", "grad_norm", "param_norm", "update_norm",
      "updated", "lr",        "step_s",    "data_s",     "memory_bytes"};
  return roles;
}

const ParamInfo* TargetDescription::FindRecipeKey(const std::string& key) const {
  return FindByName(recipe, key);
}
const SignalInfo* TargetDescription::FindSignal(const std::string& signal) const {
  if (const SignalInfo* named = FindByName(signals, signal)) return named;
  const auto own = std::find_if(signals.begin(), signals.end(), [&](const SignalInfo& info) {
    return !signal.empty() && info.own_name == signal;
  });
  return own == signals.end() ? nullptr : &*own;
}
const EventInfo* TargetDescription::FindEvent(const std::string& event) const {
  return FindByName(events, event);
}
const FaultInfo* TargetDescription::FindFault(const std::string& fault) const {
  return FindByName(faults, fault);
}

bool TargetDescription::HasFeature(const std::string& feature) const {
  return std::find(features.begin(), features.end(), feature) != features.end();
}

int TargetDescription::CountDevices(const std::string& kind) const {
  return static_cast<int>(std::count_if(devices.begin(), devices.end(),
                                        [&](const DeviceInfo& info) { return info.kind == kind; }));
}

Json ToJson(const TargetDescription& description) {
  Json json = {
      {"protocol", description.protocol},         {"name", description.name},
      {"version", description.version},           {"level", description.level},
      {"recipe", ListToJson(description.recipe)}, {"signals", ListToJson(description.signals)},
      {"events", ListToJson(description.events)}, {"faults", ListToJson(description.faults)},
      {"features", description.features},         {"devices", ListToJson(description.devices)}};
  const Calibration& calibration = description.calibration;
  if (!calibration.strengths.empty()) {
    json["calibration"] = {{"strengths", calibration.strengths}, {"remark", calibration.remark}};
  }
  return json;
}

TargetDescription DescriptionFromJson(const Json& json) {
  if (!json.is_object()) throw std::runtime_error("description: not a JSON object");
  TargetDescription description;
  if (!json.contains("protocol") || !json["protocol"].is_number_integer()) {
    throw std::runtime_error("description: 'protocol' must be a whole number");
  }
  description.protocol = json["protocol"].get<int>();
  if (description.protocol != kProtocolVersion) {
    throw std::runtime_error("description: protocol " + std::to_string(description.protocol) +
                             " is not spoken here (" + std::to_string(kProtocolVersion) + " is)");
  }
  description.name = json.value("name", "");
  description.version = json.value("version", "");
  description.level = json.value("level", 2);
  description.recipe = ListFromJson<ParamInfo>(json, "recipe", ParamFromJson);
  description.signals = ListFromJson<SignalInfo>(json, "signals", SignalFromJson);
  description.events = ListFromJson<EventInfo>(json, "events", EventFromJson);
  description.faults = ListFromJson<FaultInfo>(json, "faults", FaultFromJson);
  description.features = json.value("features", std::vector<std::string>{});
  description.devices = ListFromJson<DeviceInfo>(json, "devices", DeviceFromJson);
  if (const auto found = json.find("calibration"); found != json.end()) {
    description.calibration = {found->at("strengths").get<std::map<std::string, double>>(),
                               found->at("remark").get<std::string>()};
  }
  return description;
}

std::string CheckValue(const ParamInfo& info, const Json& value) {
  switch (info.type) {
    case ValueType::kBool:
      return value.is_boolean() ? "" : "must be true or false";
    case ValueType::kInt:
      if (!value.is_number_integer()) return "must be a whole number";
      return CheckRange(info, value.get<double>());
    case ValueType::kNumber:
      if (!value.is_number()) return "must be a number";
      return CheckRange(info, value.get<double>());
    case ValueType::kString: {
      if (!value.is_string()) return "must be a string";
      if (info.choices.empty()) return "";
      const auto& text = value.get_ref<const std::string&>();
      const bool known =
          std::find(info.choices.begin(), info.choices.end(), text) != info.choices.end();
      return known ? "" : "must be one of " + Join(info.choices);
    }
    case ValueType::kStringList:
    case ValueType::kIntList: {
      const bool strings = info.type == ValueType::kStringList;
      if (!value.is_array())
        return strings ? "must be a list of strings" : "must be a list of whole numbers";
      for (const Json& element : value) {
        if (strings ? !element.is_string() : !element.is_number_integer()) {
          return strings ? "must be a list of strings" : "must be a list of whole numbers";
        }
        if (strings) continue;
        if (std::string wrong = CheckRange(info, element.get<double>()); !wrong.empty())
          return wrong;
      }
      return "";
    }
  }
  return "";
}

const std::vector<EventInfo>& LauncherEvents() {
  static const std::vector<EventInfo> events = {
      {"fired",
       {"id", "fault", "key", "before", "after"},
       "a fault acted; what it changed, and of a recipe fault which key"},
      {"spawned", {"rank", "pid", "attempt", "phase"}, "a rank's process was started"},
      {"phase_shared",
       {"phase", "run"},
       "the first phase was made by another run, and its traces and checkpoints were copied"},
      {"exited",
       {"rank", "pid", "code", "signal", "attempt", "phase", "last_words", "peak_memory_bytes",
        "cpu_s"},
       "a rank's process ended by itself, or by a signal that was not the launcher's"},
      {"put_down",
       {"rank", "code", "signal", "attempt", "phase", "last_words", "peak_memory_bytes", "cpu_s"},
       "a rank's process was killed by the launcher, after a stall or another rank's death"},
      {"ended_early",
       {"rank", "steps_done", "steps_planned"},
       "all ranks exited with code 0, but not all planned steps were done"},
      {"ended", {"rank", "why"}, "a rank said that it was done, and why"},
      {"stalled",
       {"waiting_rank", "waiting_op", "waiting_call", "waiting_step", "lagging_rank", "lagging_op",
        "lagging_call", "lagging_step", "lagging_state", "dead_link", "idle_s"},
       "no rank made progress: who waits in which call, and who is behind"},
      {"collective_mismatch",
       {"call", "rank_a", "op_a", "step_a", "shape_a", "dtype_a", "rank_b", "op_b", "step_b",
        "shape_b", "dtype_b"},
       "two ranks made different collective calls at the same place of their sequence"},
      {"killed", {"why"}, "the launcher killed the run's processes"},
      {"restarted",
       {"attempt", "from_step", "lost_steps", "dead_rank", "why", "waited_s"},
       "the supervisor started all ranks again; lost_steps are done once more; dead_rank is left "
       "out where the ranks only "
       "complain "
       "of each other"},
      {"began_anew", {"rank"}, "a rank made step 0 again: it did not go on from a checkpoint"},
      {"last_call",
       {"rank", "call", "op", "shape", "dtype", "call_step", "began_s", "state"},
       "a rank's last collective call before a stall or a failure: state is waits, ended or "
       "failed"},
      {"device_assert",
       {"rank", "stage", "op", "within", "kernel", "assertion"},
       "a run ended with a device-side assert of CUDA, which a later call reports, and was made "
       "once more with CUDA_LAUNCH_BLOCKING=1: where the assertion failed then, as far as the "
       "program says (fields of its event exception) and the kernel"},
      {"timeout", {"seconds"}, "the run used up its budget of time"},
      {"leaked", {"pid", "command"}, "a process outlived its run and was killed"},
  };
  return events;
}

void RequireDescribed(const std::string& name, const Json& fields,
                      const std::vector<EventInfo>& events) {
  const auto info = std::find_if(events.begin(), events.end(),
                                 [&](const EventInfo& event) { return event.name == name; });
  if (info == events.end()) throw std::logic_error("event '" + name + "' is not described");
  for (const auto& [field, value] : fields.items()) {
    if (std::count(info->fields.begin(), info->fields.end(), field) == 0) {
      throw std::logic_error("event '" + name + "': field '" + field + "' is not described");
    }
  }
}

void AddHarnessVocabulary(TargetDescription& description) {
  auto add_key = [&](ParamInfo info) {
    if (description.FindRecipeKey(info.name) == nullptr)
      description.recipe.push_back(std::move(info));
  };
  add_key({.name = "supervisor.max_restarts",
           .type = ValueType::kInt,
           .default_value = 0,
           .min = 0,
           .max = 100,
           .doc = "how often the supervisor may abort all ranks after a death or a stall and "
                  "restart them from the last checkpoint"});
  add_key({.name = "supervisor.backoff_s",
           .type = ValueType::kNumber,
           .default_value = 0.0,
           .min = 0.0,
           .max = 60.0,
           .unit = "s",
           .doc = "seconds that the supervisor waits before its first restart, doubled for each "
                  "restart that counts, at most 60"});
  add_key({.name = "supervisor.window_s",
           .type = ValueType::kNumber,
           .default_value = 0.0,
           .min = 0.0,
           .max = 86400.0,
           .unit = "s",
           .doc = "only restarts within the last so many seconds count against max_restarts; 0: "
                  "all do"});
  add_key({.name = "supervisor.stall_s",
           .type = ValueType::kNumber,
           .default_value = 0.0,
           .min = 0.0,
           .max = 86400.0,
           .unit = "s",
           .doc = "seconds without progress of any rank that count as a stall; 0: "
                  "budget.stall_seconds of the scenario"});
  if (description.FindRecipeKey("checkpoint.elastic") != nullptr) {
    add_key({.name = "supervisor.resume_ranks",
             .type = ValueType::kInt,
             .default_value = 0,
             .min = 0,
             .max = 64,
             .unit = "ranks",
             .doc = "ranks of each start but the first, in later phases and after restarts; 0: "
                    "parallel.ranks"});
  }
  for (const EventInfo& event : LauncherEvents()) {
    if (description.FindEvent(event.name) == nullptr) description.events.push_back(event);
  }
}

}  // namespace trainwreck
