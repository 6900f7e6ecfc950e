// A comparison for programs. Later versions add keys; a change of meaning counts up `version`.
#include "harness/history/comparison.h"

namespace trainwreck {
namespace {

constexpr int kSchemaVersion = 1;

Json Encode(const Record& record) {
  return {{"run", record.id > 0 ? Json(record.id) : Json()},
          {"started_utc", record.started_utc},
          {"commit", record.commit},
          {"dirty", record.is_dirty},
          {"target", record.target},
          {"target_digest", record.target_digest},
          {"output_dir", record.output_dir}};
}

Json Encode(const VerdictChange& change) {
  return {{"case", change.case_name},        {"before", change.before},
          {"after", change.after},           {"direction", ToString(change.direction)},
          {"cause", ToString(change.cause)}, {"scenario_changed", change.scenario_changed},
          {"checks", change.checks}};
}

Json Encode(const BitsChange& change) {
  return {{"case", change.case_name},
          {"arm", change.arm},
          {"cause", ToString(change.cause)},
          {"seeds_compared", change.compared},
          {"seeds", change.seeds},
          {"first_step", change.first >= 0 ? Json({change.first, change.last}) : Json()},
          {"other_signals", change.other_signals},
          {"ends", change.ends}};
}

Json Encode(const MarginChange& change) {
  const ShiftResult& result = change.result;
  Json json = {{"case", change.case_name},
               {"arm", change.arm},
               {"check", change.check},
               {"formula", change.formula},
               {"expected", change.expected},
               {"unit", change.unit},
               {"answer", ToString(result.answer)},
               {"identical", result.identical},
               {"worse", change.is_worse()},
               {"by_clock", change.by_clock},
               {"counts", change.counts()},
               {"more_seeds", result.more_seeds},
               {"median_a", EncodeNumber(result.median_a)},
               {"median_b", EncodeNumber(result.median_b)},
               {"noise", EncodeNumber(result.noise)},
               {"superiority", result.test.superiority},
               {"p", result.test.p},
               {"adjusted_p", result.adjusted_p},
               {"seeds_a", change.seeds_a},
               {"seeds_b", change.seeds_b},
               {"cause", ToString(change.cause)},
               {"shift", nullptr}};
  if (result.shift) {
    json["shift"] = {
        {"estimate", result.shift->estimate}, {"lo", result.shift->lo}, {"hi", result.shift->hi}};
  }
  return json;
}

Json Encode(const std::optional<RatioInterval>& ratio) {
  if (!ratio) return nullptr;
  return {{"ratio", ratio->ratio},
          {"lo", EncodeNumber(ratio->lo)},
          {"hi", EncodeNumber(ratio->hi)},
          {"pairs", ratio->pairs}};
}

Json Encode(Gate gate) {
  switch (gate) {
    case Gate::kWithin:
      return "within";
    case Gate::kExceeded:
      return "exceeded";
    case Gate::kUnknown:
      return "unknown";
    case Gate::kNone:
      break;
  }
  return nullptr;
}

}  // namespace

Json ToJson(const Comparison& comparison) {
  Json json = {{"schema", "trainwreck/comparison"},
               {"version", kSchemaVersion},
               {"a", Encode(comparison.a)},
               {"b", Encode(comparison.b)},
               {"confidence", comparison.options.shift.confidence},
               {"relevant_shift", comparison.options.shift.relevant_shift},
               {"exit_status", ExitCode(comparison)},
               {"summary", Summary(comparison)},
               {"same_code", comparison.same_code},
               {"environment", Json::object()},
               {"cases", comparison.cases},
               {"bits", Json::array()},
               {"arms_compared", comparison.arms_compared},
               {"arms_without_bits", comparison.arms_without_bits},
               {"lost_checks", Json::array()},
               {"verdicts", Json::array()},
               {"margins", Json::array()},
               {"margins_without_numbers", comparison.margins_without_numbers},
               {"speed", Json::array()},
               {"speed_note", comparison.speed_note},
               {"only_in_a", comparison.only_in_a},
               {"only_in_b", comparison.only_in_b},
               {"changed_scenarios", comparison.changed_scenarios},
               {"hint", comparison.hint}};
  for (const auto& [key, values] : comparison.environment) {
    json["environment"][key] = {values.first, values.second};
  }
  for (const BitsChange& change : comparison.bits) json["bits"].push_back(Encode(change));
  for (const LostChecks& lost : comparison.lost_checks) {
    json["lost_checks"].push_back({{"case", lost.case_name}, {"checks", lost.checks}});
  }
  for (const VerdictChange& change : comparison.verdicts) {
    json["verdicts"].push_back(Encode(change));
  }
  for (const MarginChange& change : comparison.margins) json["margins"].push_back(Encode(change));
  for (const SpeedChange& change : comparison.speed) {
    json["speed"].push_back({{"case", change.case_name},
                             {"step_time", Encode(change.step_time)},
                             {"memory", Encode(change.memory)},
                             {"step_time_gate", Encode(change.step_time_gate)},
                             {"memory_gate", Encode(change.memory_gate)}});
  }
  return json;
}

}  // namespace trainwreck
