#include "harness/protocol/digest.h"

#include "harness/plan/run.h"

namespace trainwreck {
namespace {

Json Encode(const Changes& changes) {
  Json json = {{"set", Json::array()}, {"scale", Json::array()}};
  for (const auto& [key, value] : changes.set) json["set"].push_back({key, value});
  for (const auto& [key, factor] : changes.scale) json["scale"].push_back({key, factor});
  return json;
}

template <typename T>
Json OrNull(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json Encode(const Trigger& trigger) {
  return {OrNull(trigger.at), OrNull(trigger.from), OrNull(trigger.to),      trigger.every,
          trigger.ranks,      trigger.phase,        OrNull(trigger.attempt), trigger.probability};
}

Json Encode(const InjectedFault& fault, const Point& point) {
  return {fault.id, fault.fault, ParametersAt(fault, point), Encode(fault.trigger)};
}

Json Encode(const Check& check) {
  Json margin;
  if (check.min_margin) {
    margin = {EncodeNumber(check.min_margin->value), ToString(check.min_margin->unit)};
  }
  return {check.name, check.formula.text(), margin};
}

Json Encode(const std::vector<Check>& checks, const Point& point) {
  Json json = Json::array();
  for (const Check& check : checks) {
    if (AppliesTo(check.when, point)) json.push_back(Encode(check));
  }
  return json;
}

Json Encode(const std::vector<Phase>& phases) {
  Json json = Json::array();
  for (const Phase& phase : phases) {
    json.push_back({phase.name, OrNull(phase.until)});
    if (phase.is_shared) json.back().push_back("shared");
  }
  return json;
}

// Beside the rest: a scenario without twins keeps its digest.
void AddTwins(const Scenario& scenario, const Point& point, Json& json) {
  json["twins"] = json["bugs"] = Json::array();
  json["agree"] = Encode(scenario.agree, point);
  for (const Twin& twin : scenario.twins) {
    if (!AppliesTo(twin.when, point)) continue;
    json["twins"].push_back({twin.name, Encode(twin.changes), Encode(twin.phases),
                             twin.fault ? Encode(*twin.fault, point) : Json()});
    if (!twin.waives.empty()) json["twins"].back().push_back(twin.waives);
  }
  for (const Bug& bug : scenario.bugs) {
    if (!AppliesTo(bug.when, point)) continue;
    json["bugs"].push_back({Encode(bug.fault, point), bug.twins});
  }
}

}  // namespace

std::string DigestOfClaims(const Scenario& scenario, const Point& point, const Changes& overrides) {
  Json json = {
      {"name", scenario.name},
      {"point", point.name},
      {"recipe", Encode(scenario.recipe)},
      {"changes", Encode(point.changes)},
      {"overrides", Encode(overrides)},
      {"faults", Json::array()},
      {"healthy", Encode(scenario.healthy, point)},
      {"symptoms", Encode(scenario.symptoms, point)},
      {"quality", scenario.quality ? Encode(*scenario.quality) : Json()},
      {"remedies", Json::array()},
      {"decoys", Json::array()},
      {"phases", Json::array()},
      {"reference", scenario.has_reference},
      {"expect", {ToString(scenario.expect.verdict), scenario.expect.failure_class.text()}}};
  if (scenario.repeats_seed) json["repeats_seed"] = true;
  if (!scenario.breaks.empty()) json["breaks"] = scenario.breaks;
  for (const InjectedFault& fault : scenario.faults) json["faults"].push_back(Encode(fault, point));
  for (const Remedy& remedy : scenario.remedies) {
    if (!AppliesTo(remedy.when, point)) continue;
    json["remedies"].push_back(
        {remedy.name, Encode(remedy.changes), remedy.resolves, remedy.waives});
  }
  for (const Decoy& decoy : scenario.decoys) {
    if (!AppliesTo(decoy.when, point)) continue;
    json["decoys"].push_back({decoy.name, Encode(decoy.changes), decoy.keeps});
  }
  json["phases"] = Encode(scenario.phases);
  if (!scenario.twins.empty()) AddTwins(scenario, point, json);
  return DigestText(json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace trainwreck
