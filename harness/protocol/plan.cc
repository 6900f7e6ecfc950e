#include "harness/protocol/plan.h"

#include <algorithm>
#include <stdexcept>

#include "harness/protocol/digest.h"

namespace trainwreck {
namespace {

template <typename T>
T Required(const Json& json, const char* key) {
  auto found = json.find(key);
  if (found == json.end())
    throw std::runtime_error(std::string("plan: missing field '") + key + "'");
  try {
    return found->get<T>();
  } catch (const Json::exception& error) {
    throw std::runtime_error(std::string("plan: field '") + key + "': " + error.what());
  }
}

template <typename T>
T Optional(const Json& json, const char* key, T fallback) {
  return json.contains(key) && !json[key].is_null() ? Required<T>(json, key) : fallback;
}

std::optional<int> OptionalInt(const Json& json, const char* key) {
  if (!json.contains(key) || json[key].is_null()) return std::nullopt;
  return Required<int>(json, key);
}

void PutOptional(Json& json, const char* key, const std::optional<int>& value) {
  if (value) json[key] = *value;
}

Json ToJson(const Trigger& trigger) {
  Json json = Json::object();
  PutOptional(json, "at", trigger.at);
  PutOptional(json, "from", trigger.from);
  PutOptional(json, "to", trigger.to);
  PutOptional(json, "attempt", trigger.attempt);
  if (trigger.every != 1) json["every"] = trigger.every;
  if (!trigger.ranks.empty()) json["ranks"] = trigger.ranks;
  if (!trigger.phase.empty()) json["phase"] = trigger.phase;
  if (trigger.probability != 1.0) json["probability"] = trigger.probability;
  return json;
}

Trigger TriggerFromJson(const Json& json) {
  Trigger trigger;
  trigger.at = OptionalInt(json, "at");
  trigger.from = OptionalInt(json, "from");
  trigger.to = OptionalInt(json, "to");
  trigger.attempt = OptionalInt(json, "attempt");
  trigger.every = Optional<int>(json, "every", 1);
  trigger.ranks = Optional<std::vector<int>>(json, "ranks", {});
  trigger.phase = Optional<std::string>(json, "phase", "");
  trigger.probability = Optional<double>(json, "probability", 1.0);
  return trigger;
}

}  // namespace

bool Trigger::Matches(int step, int rank, const std::string& phase_name, int attempt_number,
                      std::uint64_t seed) const {
  if (at && step != *at) return false;
  const int first = from.value_or(0);
  if (step < first || (to && step > *to)) return false;
  if (every > 1 && (step - first) % every != 0) return false;
  if (!ranks.empty() && std::find(ranks.begin(), ranks.end(), rank) == ranks.end()) return false;
  if (!phase.empty() && phase != phase_name) return false;
  if (attempt && *attempt != attempt_number) return false;
  if (probability >= 1.0) return true;
  // The same draw on every rank and in every repetition of the step.
  const std::uint64_t draw = Digest(std::to_string(step), seed);
  return static_cast<double>(draw >> 11) * 0x1.0p-53 < probability;
}

Json ToJson(const Plan& plan) {
  Json faults = Json::array();
  for (const PlannedFault& fault : plan.faults) {
    faults.push_back({{"id", fault.id},
                      {"fault", fault.fault},
                      {"with", fault.with},
                      {"trigger", ToJson(fault.trigger)}});
  }
  Json json = {{"protocol", plan.protocol},
               {"run", plan.run},
               {"scenario", plan.scenario},
               {"point", plan.point},
               {"arm", plan.arm},
               {"seed", plan.seed},
               {"recipe", plan.recipe},
               {"faults", faults},
               {"phase", plan.phase},
               {"attempt", plan.attempt},
               {"resume", plan.resume},
               {"checkpoint_dir", plan.checkpoint_dir},
               {"rendezvous", plan.rendezvous},
               {"record", plan.record}};
  PutOptional(json, "until", plan.until);
  return json;
}

Plan PlanFromJson(const Json& json) {
  if (!json.is_object()) throw std::runtime_error("plan: not a JSON object");
  Plan plan;
  plan.protocol = Required<int>(json, "protocol");
  if (plan.protocol != 1) {
    throw std::runtime_error("plan: protocol " + std::to_string(plan.protocol) +
                             " is not spoken here (1 is)");
  }
  plan.run = Required<std::string>(json, "run");
  plan.scenario = Optional<std::string>(json, "scenario", "");
  plan.point = Optional<std::string>(json, "point", "");
  plan.arm = Optional<std::string>(json, "arm", "");
  plan.seed = Required<std::uint64_t>(json, "seed");
  plan.recipe = Required<Recipe>(json, "recipe");
  for (const Json& entry : Optional<Json>(json, "faults", Json::array())) {
    PlannedFault fault;
    fault.id = Required<std::string>(entry, "id");
    fault.fault = Required<std::string>(entry, "fault");
    fault.with = Optional<std::map<std::string, Json>>(entry, "with", {});
    fault.trigger = TriggerFromJson(Optional<Json>(entry, "trigger", Json::object()));
    plan.faults.push_back(std::move(fault));
  }
  plan.phase = Optional<std::string>(json, "phase", "train");
  plan.attempt = Optional<int>(json, "attempt", 0);
  plan.until = OptionalInt(json, "until");
  plan.resume = Optional<bool>(json, "resume", false);
  plan.checkpoint_dir = Optional<std::string>(json, "checkpoint_dir", "");
  plan.rendezvous = Optional<std::string>(json, "rendezvous", "");
  plan.record = Optional<std::vector<std::string>>(json, "record", {});
  return plan;
}

}  // namespace trainwreck
