// verdicts.json, schema version 1. Numbers that may be non-finite follow harness/protocol/json.h.
//
//   { "schema": "trainwreck/verdicts", "version": 1,
//     "run": {version, command_line, target, target_digest, commit, dirty,
//             environment: {"cpu": ..}, devices, isolation, started_utc, host, output_dir, selection_digest, cores,
//             runs, selected, unjudged, wall_seconds, cpu_seconds,
//             selected_cases: ["..", ..] (only where some of these have no verdict; of the first
//             10 shards alone)},
//     "counts": {"pass": 5, "fail": 1, ...},
//     "verdicts": [
//       { case, scenario, point, file, title, scenario_digest, environment: {"blas": "..", ..},
//         tags, devices, verdict, class, reason, expected_limit,
//         seen_verdict: "pass" (before `expect`), tolerated_seeds: [3], remarks: ["..", ..],
//         worst_margin: {value, unit} | null, undo_remedies, wall_seconds, cpu_seconds,
//         "checks": [ {check, formula, arm, expected, file, line, column, length, agree, disagree,
//                      unknown, worst_margin | null, unit, worst_seed, class, message, seen, rerun,
//                      evidence,
//                      readings: [ {truth, margins: {octaves: [lo, hi], ...}, unit, step, seen} ]}
//                   ],
//         "arms": [ {arm, kind, undo, note, status, ended, median_seed, final_loss,
//                    steps: [..], loss: [..]       (of the median seed, at most 200 points),
//                    runs: [ {end, detail, folder, restarts, wall_seconds, cpu_seconds,
//                             peak_memory_bytes, step_seconds, final_signals: {"loss": 0.1, ..},
//                             bits: {steps, digest, signals, every, marks} | absent, problems,
//                             exits: [ {rank, attempt, phase, code, signal, last_words} ]} ]} ]
//       } ] }
//
// Lists of readings and runs are by seed. Later versions add keys; a change of meaning counts up.
#include <array>
#include <stdexcept>

#include "harness/protocol/json.h"
#include "harness/protocol/parse_json.h"
#include "harness/report/report.h"
#include "harness/report/text.h"
#include "harness/text/files.h"

namespace trainwreck {
namespace {

using formula::Reading;
using formula::Unit;

constexpr int kSchemaVersion = 1;
constexpr const char* kSchemaName = "trainwreck/verdicts";

// A value of outcome.h, formula.h or launcher.h by its name.
template <typename T>
T Read(std::optional<T> (*find)(std::string_view), const Json& json) {
  const std::string name = json;
  const std::optional<T> found = find(name);
  if (!found) throw std::runtime_error("unknown name '" + name + "'");
  return *found;
}

Json NumberOrNull(const std::optional<double>& value) {
  return value ? EncodeNumber(*value) : Json();
}

double Number(const Json& value) {
  const std::optional<double> number = DecodeNumber(value);
  if (!number) throw std::runtime_error("'" + value.dump() + "' is no number");
  return *number;
}

Json EncodeNumbers(const std::vector<double>& values) {
  Json json = Json::array();
  for (double value : values) json.push_back(EncodeNumber(value));
  return json;
}

Json EncodeNamed(const std::map<std::string, double>& values) {
  Json json = Json::object();
  for (const auto& [name, value] : values) json[name] = EncodeNumber(value);
  return json;
}

Json Encode(const Reading& reading) {
  Json margins = Json::object();
  for (int unit = 0; unit < formula::kUnitCount; ++unit) {
    if (const auto& margin = reading.margins[unit]) {
      margins[NameOf(static_cast<Unit>(unit))] = {EncodeNumber(margin->lo),
                                                  EncodeNumber(margin->hi)};
    }
  }
  return {{"truth", ToString(reading.truth)},
          {"margins", margins},
          {"unit", NameOf(reading.main_unit)},
          {"step", reading.step},
          {"seen", reading.seen}};
}

Reading DecodeReading(const Json& json) {
  Reading reading;
  reading.truth = Read(formula::FindTruth, json.at("truth"));
  reading.main_unit = Read(formula::FindUnit, json.at("unit"));
  reading.step = json.at("step");
  reading.seen = json.at("seen");
  for (const auto& [unit, margin] : json.at("margins").items()) {
    const auto index = static_cast<std::size_t>(Read(formula::FindUnit, Json(unit)));
    reading.margins[index] = {Number(margin.at(0)), Number(margin.at(1))};
  }
  return reading;
}

Json Encode(const CheckResult& check) {
  Json readings = Json::array();
  for (const Reading& reading : check.readings) readings.push_back(Encode(reading));
  return {{"check", check.check},
          {"formula", check.formula},
          {"arm", check.arm},
          {"expected", check.expected},
          {"file", check.file},
          {"line", check.position.line},
          {"column", check.position.column},
          {"length", check.position.length},
          {"agree", check.agree},
          {"disagree", check.disagree},
          {"unknown", check.unknown},
          {"worst_margin", NumberOrNull(check.worst_margin)},
          {"unit", NameOf(check.unit)},
          {"worst_seed", check.worst_seed},
          {"class", check.failure_class.text()},
          {"message", check.message},
          {"seen", check.seen},
          {"rerun", check.rerun_command},
          {"evidence", check.evidence},
          {"place", check.place},
          {"suspects", check.suspects},
          {"readings", readings}};
}

CheckResult DecodeCheck(const Json& json) {
  CheckResult check;
  check.check = json.at("check");
  check.formula = json.at("formula");
  check.arm = json.at("arm");
  check.expected = json.at("expected");
  check.file = json.at("file");
  check.position = {json.at("line"), json.at("column"), json.at("length")};
  check.agree = json.at("agree");
  check.disagree = json.at("disagree");
  check.unknown = json.at("unknown");
  if (!json.at("worst_margin").is_null()) check.worst_margin = Number(json["worst_margin"]);
  check.unit = Read(formula::FindUnit, json.at("unit"));
  check.worst_seed = json.at("worst_seed");
  check.failure_class = Read(FailureClass::Find, json.at("class"));
  check.message = json.at("message");
  check.seen = json.at("seen");
  check.rerun_command = json.at("rerun");
  check.evidence = json.at("evidence");
  check.place = json.value("place", "");
  check.suspects = json.value("suspects", std::vector<std::string>{});
  for (const Json& reading : json.at("readings")) check.readings.push_back(DecodeReading(reading));
  return check;
}

Json Encode(const RunResult& run) {
  Json exits = Json::array();
  for (const RankExit& exit : run.exits) {
    exits.push_back({{"rank", exit.rank},
                     {"attempt", exit.attempt},
                     {"phase", exit.phase},
                     {"code", exit.code},
                     {"signal", exit.signal},
                     {"last_words", exit.last_words}});
  }
  Json json = {{"end", ToString(run.end)},
               {"detail", run.detail},
               {"folder", run.folder},
               {"restarts", run.restarts},
               {"wall_seconds", EncodeNumber(run.wall_seconds)},
               {"cpu_seconds", EncodeNumber(run.cpu_seconds)},
               {"peak_memory_bytes", run.peak_memory_bytes},
               {"step_seconds", EncodeNumber(run.step_seconds)},
               {"final_signals", EncodeNamed(run.final_signals)},
               {"problems", run.problems},
               {"exits", exits}};
  if (run.bits.steps > 0) {
    json["bits"] = {{"steps", run.bits.steps},
                    {"digest", run.bits.digest},
                    {"signals", run.bits.signals},
                    {"every", run.bits.every},
                    {"marks", run.bits.marks}};
  }
  return json;
}

RunResult DecodeRun(const Json& json) {
  RunResult run;
  run.end = Read(FindRunEnd, json.at("end"));
  run.detail = json.at("detail");
  run.folder = json.at("folder");
  run.restarts = json.at("restarts");
  run.wall_seconds = Number(json.at("wall_seconds"));
  run.cpu_seconds = Number(json.at("cpu_seconds"));
  run.peak_memory_bytes = json.at("peak_memory_bytes");
  if (json.contains("step_seconds")) run.step_seconds = Number(json["step_seconds"]);
  if (json.contains("final_signals")) {
    for (const auto& [signal, value] : json["final_signals"].items()) {
      run.final_signals[signal] = Number(value);
    }
  }
  if (json.contains("bits")) {
    const Json& bits = json["bits"];
    run.bits = {bits.at("steps"), bits.at("digest"), bits.at("signals"), bits.at("every"),
                bits.at("marks")};
  }
  run.problems = json.at("problems").get<std::vector<std::string>>();
  for (const Json& exit : json.at("exits")) {
    run.exits.push_back({exit.at("rank"), exit.at("attempt"), exit.at("phase"), exit.at("code"),
                         exit.at("signal"), exit.at("last_words")});
  }
  return run;
}

Json EncodeArm(const ArmSummary& arm, const Verdict& verdict) {
  Json runs = Json::array();
  if (auto found = verdict.runs.find(arm.arm); found != verdict.runs.end()) {
    for (const RunResult& run : found->second) runs.push_back(Encode(run));
  }
  return {{"arm", arm.arm},
          {"kind", ToString(arm.kind)},
          {"undo", arm.is_undo},
          {"note", arm.note},
          {"status", ToString(arm.status)},
          {"ended", arm.ended},
          {"median_seed", arm.median_seed},
          {"final_loss", EncodeNumber(arm.final_loss)},
          {"steps", arm.steps},
          {"loss", EncodeNumbers(arm.loss)},
          {"runs", runs}};
}

Json Encode(const Note& note) {
  return {{"arm", note.arm},     {"kind", ToString(note.kind)}, {"seed", note.seed},
          {"seeds", note.seeds}, {"step", note.step},           {"text", note.text}};
}

Json Encode(const InvariantCount& count) {
  return {{"name", count.name},
          {"held", count.held},
          {"broken", count.broken},
          {"open", count.open},
          {"excused", count.excused}};
}

InvariantCount DecodeInvariant(const Json& json) {
  return {.name = json.at("name"),
          .held = json.at("held"),
          .broken = json.at("broken"),
          .open = json.at("open"),
          .excused = json.at("excused")};
}

Note DecodeNote(const Json& json) {
  return {.arm = json.at("arm"),
          .kind = Read(FindArmKind, json.at("kind")),
          .seed = json.at("seed"),
          .seeds = json.at("seeds"),
          .step = json.at("step"),
          .text = json.at("text")};
}

void DecodeArm(const Json& json, Verdict& verdict) {
  ArmSummary arm;
  arm.arm = json.at("arm");
  arm.kind = Read(FindArmKind, json.at("kind"));
  arm.is_undo = json.at("undo");
  arm.note = json.at("note");
  arm.status = Read(FindArmStatus, json.at("status"));
  arm.ended = json.value("ended", "");
  arm.median_seed = json.at("median_seed");
  arm.final_loss = Number(json.at("final_loss"));
  arm.steps = json.at("steps").get<std::vector<int>>();
  for (const Json& loss : json.at("loss")) arm.loss.push_back(Number(loss));
  for (const Json& run : json.at("runs")) verdict.runs[arm.arm].push_back(DecodeRun(run));
  verdict.arms.push_back(std::move(arm));
}

Json Encode(const Verdict& verdict) {
  Json json = {{"case", verdict.case_name},
               {"scenario", verdict.scenario},
               {"point", verdict.point},
               {"file", verdict.file},
               {"title", verdict.title},
               {"scenario_digest", verdict.scenario_digest},
               {"environment", verdict.environment},
               {"tags", verdict.tags},
               {"devices", verdict.devices},
               {"verdict", ToString(verdict.verdict)},
               {"class", verdict.failure_class.text()},
               {"reason", verdict.reason},
               {"expected_limit", verdict.expected_limit},
               {"seen_verdict", ToString(verdict.seen_verdict)},
               {"tolerated_seeds", verdict.tolerated_seeds},
               {"remarks", verdict.remarks},
               {"worst_margin", nullptr},
               {"undo_remedies", verdict.undo_remedies},
               {"wall_seconds", EncodeNumber(verdict.wall_seconds)},
               {"cpu_seconds", EncodeNumber(verdict.cpu_seconds)},
               {"checks", Json::array()},
               {"arms", Json::array()},
               {"notes", Json::array()},
               {"invariants", Json::array()}};
  for (const Note& note : verdict.notes) json["notes"].push_back(Encode(note));
  for (const InvariantCount& count : verdict.invariants) {
    json["invariants"].push_back(Encode(count));
  }
  if (verdict.worst_margin) {
    json["worst_margin"] = {{"value", EncodeNumber(*verdict.worst_margin)},
                            {"unit", NameOf(verdict.worst_margin_unit)}};
  }
  for (const CheckResult& check : verdict.checks) json["checks"].push_back(Encode(check));
  for (const ArmSummary& arm : verdict.arms) json["arms"].push_back(EncodeArm(arm, verdict));
  return json;
}

Verdict DecodeVerdict(const Json& json) {
  Verdict verdict;
  verdict.case_name = json.at("case");
  verdict.scenario = json.at("scenario");
  verdict.point = json.at("point");
  verdict.file = json.at("file");
  verdict.title = json.at("title");
  verdict.tags = json.at("tags").get<std::vector<std::string>>();
  verdict.scenario_digest = json.value("scenario_digest", "");
  verdict.environment = json.value("environment", verdict.environment);
  verdict.devices = json.value("devices", std::vector<std::string>{});
  verdict.verdict = Read(FindVerdict, json.at("verdict"));
  verdict.failure_class = Read(FailureClass::Find, json.at("class"));
  verdict.reason = json.at("reason");
  verdict.expected_limit = json.at("expected_limit");
  verdict.seen_verdict =
      json.contains("seen_verdict") ? Read(FindVerdict, json["seen_verdict"]) : verdict.verdict;
  verdict.tolerated_seeds = json.value("tolerated_seeds", std::vector<int>{});
  verdict.remarks = json.value("remarks", std::vector<std::string>{});
  verdict.undo_remedies = json.at("undo_remedies").get<std::vector<std::string>>();
  verdict.wall_seconds = Number(json.at("wall_seconds"));
  verdict.cpu_seconds = Number(json.at("cpu_seconds"));
  if (const Json& margin = json.at("worst_margin"); !margin.is_null()) {
    verdict.worst_margin = Number(margin.at("value"));
    verdict.worst_margin_unit = Read(formula::FindUnit, margin.at("unit"));
  }
  for (const Json& check : json.at("checks")) verdict.checks.push_back(DecodeCheck(check));
  for (const Json& arm : json.at("arms")) DecodeArm(arm, verdict);
  if (json.contains("notes")) {
    for (const Json& note : json["notes"]) verdict.notes.push_back(DecodeNote(note));
  }
  if (json.contains("invariants")) {
    for (const Json& count : json["invariants"]) {
      verdict.invariants.push_back(DecodeInvariant(count));
    }
  }
  return verdict;
}

Json Encode(const RunInfo& info) {
  return {{"version", info.version},
          {"command_line", info.command_line},
          {"target", info.target},
          {"target_digest", info.target_digest},
          {"commit", info.commit},
          {"dirty", info.is_dirty},
          {"environment", info.environment},
          {"devices", info.devices},
          {"isolation", info.isolation},
          {"started_utc", info.started_utc},
          {"host", info.host},
          {"output_dir", info.output_dir},
          {"selection_digest", info.selection_digest},
          {"cores", info.cores},
          {"runs", info.runs},
          {"selected", info.selected},
          {"unjudged", info.unjudged},
          {"wall_seconds", EncodeNumber(info.wall_seconds)},
          {"cpu_seconds", EncodeNumber(info.cpu_seconds)}};
}

RunInfo DecodeInfo(const Json& json) {
  RunInfo info;
  info.version = json.at("version");
  info.command_line = json.at("command_line");
  info.target = json.at("target");
  info.target_digest = json.value("target_digest", "");
  info.commit = json.value("commit", "");
  info.is_dirty = json.value("dirty", false);
  info.environment = json.value("environment", info.environment);
  info.devices = json.value("devices", "");
  info.isolation = json.at("isolation");
  info.started_utc = json.at("started_utc");
  info.host = json.at("host");
  info.output_dir = json.at("output_dir");
  info.selection_digest = json.value("selection_digest", "");
  info.cores = json.at("cores");
  info.runs = json.at("runs");
  info.selected = json.value("selected", 0);
  info.selected_cases = json.value("selected_cases", info.selected_cases);
  info.unjudged = json.value("unjudged", 0);
  info.wall_seconds = Number(json.at("wall_seconds"));
  info.cpu_seconds = Number(json.at("cpu_seconds"));
  return info;
}

}  // namespace

std::string JsonReport(const std::vector<Verdict>& verdicts, const RunInfo& info) {
  Json json = {{"schema", kSchemaName},
               {"version", kSchemaVersion},
               {"run", Encode(info)},
               {"counts", Json::object()},
               {"verdicts", Json::array()}};
  if (info.selected_cases.size() > verdicts.size()) {
    json["run"]["selected_cases"] = info.selected_cases;
  }
  Json& counts = json["counts"];
  for (const VerdictInfo& info : AllVerdicts()) counts[info.name] = 0;
  for (const Verdict& verdict : verdicts) {
    Json& count = counts[ToString(verdict.verdict)];
    count = count.get<int>() + 1;
    json["verdicts"].push_back(Encode(verdict));
  }
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

StoredReport ReadJsonReport(const std::string& path) {
  const std::optional<std::string> text = ReadFile(path);
  if (!text) throw std::runtime_error(path + ": cannot be read");
  const Json json = TryParseJson(*text);
  if (!json.is_object() || json.value("schema", Json()) != Json(kSchemaName)) {
    throw std::runtime_error(path + ": no verdicts of trainwreck");
  }
  if (json.value("version", Json()) != Json(kSchemaVersion)) {
    throw std::runtime_error(path + ": schema version " + json.value("version", Json()).dump() +
                             ", this program reads " + std::to_string(kSchemaVersion));
  }
  try {
    StoredReport report;
    report.info = DecodeInfo(json.at("run"));
    for (const Json& verdict : json.at("verdicts")) {
      report.verdicts.push_back(DecodeVerdict(verdict));
    }
    return report;
  } catch (const std::exception& error) {
    throw std::runtime_error(path + ": " + error.what());
  }
}

namespace {
const ReportRegistration registration(1, {.name = "json", .text = JsonReport});
}  // namespace

}  // namespace trainwreck
