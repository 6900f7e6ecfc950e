#include "harness/history/record_rows.h"

#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "harness/history/history.h"
#include "harness/protocol/json.h"
#include "harness/protocol/parse_json.h"

namespace trainwreck {
namespace {

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string EncodeSignals(const std::map<std::string, double>& signals) {
  Json json = Json::object();
  for (const auto& [name, value] : signals) json[name] = EncodeNumber(value);
  return Dump(json);
}

// What one column of a record holds as JSON.
template <typename Value>
Value Decode(const std::string& text, Value (*decode)(const Json&)) {
  try {
    return decode(ParseJson(text));
  } catch (const std::exception& error) {
    throw HistoryError(std::string("a record of the history is damaged: ") + error.what());
  }
}

std::map<std::string, double> NumbersFrom(const Json& json) {
  std::map<std::string, double> numbers;
  for (const auto& [name, value] : json.items()) {
    if (const auto number = DecodeNumber(value)) numbers[name] = *number;
  }
  return numbers;
}

std::map<int, double> SeedsFrom(const Json& json) {
  std::map<int, double> by_seed;
  for (const auto& [seed, value] : NumbersFrom(json)) by_seed[std::stoi(seed)] = value;
  return by_seed;
}

std::map<std::string, std::string> TextsFrom(const Json& json) {
  return json.get<std::map<std::string, std::string>>();
}

template <typename T>
T Named(std::optional<T> (*find)(std::string_view), const std::string& name) {
  const std::optional<T> found = find(name);
  if (!found) throw std::runtime_error("it holds an unknown name, '" + name + "'");
  return *found;
}

}  // namespace

std::string EncodeSeeds(const std::map<int, double>& by_seed) {
  Json json = Json::object();
  for (const auto& [seed, value] : by_seed) json[std::to_string(seed)] = EncodeNumber(value);
  return Dump(json);
}

std::map<int, double> DecodeSeeds(const std::string& text) { return Decode(text, SeedsFrom); }

void AddTrainings(Database& database, std::int64_t verdict_id,
                  const std::vector<TrainingRecord>& trainings) {
  RowsToAdd training(database, "training"), bits(database, "bits");
  for (const TrainingRecord& one : trainings) {
    training.Add(verdict_id, one.arm, one.seed, one.end, one.step_seconds, one.peak_memory_bytes,
                 EncodeSignals(one.final_signals));
    if (one.bits.steps <= 0) continue;
    bits.Add(verdict_id, one.arm, one.seed, one.bits.steps, one.bits.digest, one.bits.signals,
             one.bits.every, one.bits.marks);
  }
  training.Finish();
  bits.Finish();
}

void AddCase(Database& database, std::int64_t run_id, const CaseRecord& record) {
  Statement verdict(
      database,
      "INSERT INTO verdict(run_id, case_name, scenario, scenario_digest, "
      "environment, verdict, class, reason) VALUES(?, ?, ?, ?, ?, ?, ?, ?) RETURNING id");
  verdict.Bind(run_id).Bind(record.name).Bind(record.scenario).Bind(record.scenario_digest);
  verdict.Bind(Dump(record.environment)).Bind(ToString(record.verdict));
  verdict.Bind(record.failure_class.text());
  verdict.Bind(record.reason);
  const std::int64_t verdict_id = verdict.Insert();
  if (record.wall_seconds > 0) {
    RowsToAdd cost(database, "cost");
    cost.Add(verdict_id, record.wall_seconds, record.cpu_seconds);
    cost.Finish();
  }
  RowsToAdd reading(database, "reading");
  for (const MarginRecord& margin : record.margins) {
    reading.Add(verdict_id, margin.arm, margin.check, margin.formula, margin.expected ? 1 : 0,
                margin.unit, margin.agree, margin.seeds, EncodeSeeds(margin.by_seed));
  }
  reading.Finish();
  AddTrainings(database, verdict_id, record.trainings);
}

CaseRecord CaseFrom(const Statement& row, int first) {
  CaseRecord record;
  record.name = row.Text(first + 1);
  record.scenario = row.Text(first + 2);
  record.scenario_digest = row.Text(first + 3);
  record.environment = Decode(row.Text(first + 4), TextsFrom);
  record.verdict = Named(FindVerdict, row.Text(first + 5));
  record.failure_class = Named(FailureClass::Find, row.Text(first + 6));
  record.reason = row.Text(first + 7);
  return record;
}

void ReadMargins(Database& database, std::int64_t verdict_id, CaseRecord& record) {
  Statement row(database,
                "SELECT arm, check_name, formula, expected, unit, agree, seeds, margins FROM "
                "reading WHERE verdict_id = ? ORDER BY rowid");
  row.Bind(verdict_id);
  while (row.Step()) {
    MarginRecord margin{.arm = row.Text(0),
                        .check = row.Text(1),
                        .formula = row.Text(2),
                        .expected = row.Integer(3) != 0,
                        .unit = row.Text(4),
                        .by_seed = Decode(row.Text(7), SeedsFrom),
                        .agree = static_cast<int>(row.Integer(5)),
                        .seeds = static_cast<int>(row.Integer(6))};
    record.margins.push_back(std::move(margin));
  }
}

void ReadTrainings(Database& database, std::int64_t verdict_id, CaseRecord& record) {
  Statement row(database,
                "SELECT arm, seed, \"end\", step_seconds, peak_memory_bytes, final_signals FROM "
                "training WHERE verdict_id = ? ORDER BY rowid");
  row.Bind(verdict_id);
  while (row.Step()) {
    record.trainings.push_back({.arm = row.Text(0),
                                .seed = static_cast<int>(row.Integer(1)),
                                .end = row.Text(2),
                                .step_seconds = row.Number(3),
                                .peak_memory_bytes = row.Number(4),
                                .final_signals = Decode(row.Text(5), NumbersFrom),
                                .bits = {}});
  }
}

void ReadCost(Database& database, std::int64_t verdict_id, CaseRecord& record) {
  Statement row(database, "SELECT wall_seconds, cpu_seconds FROM cost WHERE verdict_id = ?");
  row.Bind(verdict_id);
  if (!row.Step()) return;
  record.wall_seconds = row.Number(0);
  record.cpu_seconds = row.Number(1);
}

void ReadBits(Database& database, std::int64_t verdict_id, CaseRecord& record) {
  Statement row(database,
                "SELECT arm, seed, steps, digest, signals, every, marks FROM bits WHERE "
                "verdict_id = ?");
  row.Bind(verdict_id);
  while (row.Step()) {
    for (TrainingRecord& training : record.trainings) {
      if (training.arm != row.Text(0) || training.seed != row.Integer(1)) continue;
      training.bits = {.steps = static_cast<int>(row.Integer(2)),
                       .digest = row.Text(3),
                       .signals = row.Text(4),
                       .every = static_cast<int>(row.Integer(5)),
                       .marks = row.Text(6)};
    }
  }
}

}  // namespace trainwreck
