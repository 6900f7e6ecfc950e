#include "harness/formula/test_support.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

namespace trainwreck::formula::testing {
namespace {

constexpr double kMissingMark = -987654321.0;

SignalInfo Signal(const std::string& name, Scale scale, bool exact, bool per_module, bool sparse) {
  SignalInfo info;
  info.name = name;
  info.scale = scale;
  info.exact = exact;
  info.per_module = per_module;
  info.sparse = sparse;
  return info;
}

TargetDescription MakeTarget() {
  TargetDescription target;
  target.name = "test";
  target.signals = {
      Signal("loss", Scale::kLog, false, false, false),
      Signal("grad_norm", Scale::kLog, false, true, false),
      Signal("lr", Scale::kLinear, false, false, false),
      Signal("param_norm", Scale::kLog, false, true, false),
      Signal("update_norm", Scale::kLog, false, true, false),
      Signal("updated", Scale::kLinear, true, true, false),
      Signal("param_digest", Scale::kLinear, true, true, false),
      Signal("act_nonfinite", Scale::kLinear, true, true, false),
      Signal("grad_zero_share", Scale::kLinear, false, true, false),
      Signal("sample_digest", Scale::kLinear, true, false, false),
      Signal("skipped", Scale::kLinear, true, false, false),
      Signal("tokens", Scale::kLog, true, false, false),
      Signal("eval_loss", Scale::kLog, false, false, true),
  };
  target.events = {{"sample_rejected", {"sample", "field", "why", "samples"}, ""},
                   {"nonfinite_batch", {"samples"}, ""}};
  AddHarnessVocabulary(target);
  return target;
}

}  // namespace

const double kMissing = kMissingMark;
const double kNan = std::numeric_limits<double>::quiet_NaN();
const double kInf = std::numeric_limits<double>::infinity();

const TargetDescription& TestTarget() {
  static const TargetDescription target = MakeTarget();
  return target;
}

TestRun::TestRun(int planned_steps, int world_size) {
  trace_.planned_steps = planned_steps;
  trace_.world_size = world_size;
  trace_.finished = true;
}

TestRun& TestRun::With(const std::string& signal, const std::vector<double>& values, int rank) {
  for (std::size_t step = 0; step < values.size(); ++step) {
    if (values[step] != kMissingMark) At(signal, static_cast<int>(step), values[step], rank);
  }
  return *this;
}

TestRun& TestRun::At(const std::string& signal, int step, double value, int rank) {
  trace_.series[{signal, rank}].Set(step, value);
  if (!trace_.time_s[rank].Has(step)) trace_.time_s[rank].Set(step, step);
  return *this;
}

TestRun& TestRun::Happened(const std::string& name, int step, Json fields, int rank,
                           double time_s) {
  Event event;
  event.name = name;
  event.step = step;
  event.rank = rank;
  event.time_s = time_s;
  event.fields = std::move(fields);
  trace_.events.push_back(event);
  return *this;
}

TestRun& TestRun::Times(const std::vector<double>& times, int rank) {
  trace_.time_s[rank] = {};
  for (std::size_t step = 0; step < times.size(); ++step) {
    if (times[step] != kMissingMark) trace_.time_s[rank].Set(static_cast<int>(step), times[step]);
  }
  return *this;
}

TestRun& TestRun::Unfinished() {
  trace_.finished = false;
  return *this;
}

RunTrace Prefix(const RunTrace& full, int steps) {
  RunTrace prefix = full;
  prefix.finished = false;
  auto cut = [&](Series& series) {
    if (static_cast<int>(series.values.size()) <= steps) return;
    series.values.resize(steps);
    series.present.resize(steps);
  };
  for (auto& [key, series] : prefix.series) cut(series);
  for (auto& [rank, series] : prefix.time_s) cut(series);
  auto& events = prefix.events;
  events.erase(std::remove_if(events.begin(), events.end(),
                              [&](const Event& event) { return event.step >= steps; }),
               events.end());
  return prefix;
}

Vocabulary TestVocabulary(int planned_steps, int world_size) {
  Vocabulary vocabulary;
  vocabulary.target = &TestTarget();
  vocabulary.arms = {"control", "reference"};
  vocabulary.planned_steps = planned_steps;
  vocabulary.world_size = world_size;
  vocabulary.has_rounding = true;
  vocabulary.fault_ids = {"hot_lr", "bad_sample"};
  return vocabulary;
}

Reading Read(const std::string& text, const RunTrace& self,
             const std::map<std::string, const RunTrace*>& arms) {
  const Formula::ParseResult parsed = Formula::Parse(text);
  if (!parsed.formula) {
    ADD_FAILURE() << text << ": " << parsed.errors.front().message;
    return {};
  }
  Runs runs;
  runs.self = &self;
  runs.arms = arms;
  return parsed.formula->Evaluate(runs, TestTarget());
}

Reading Read(const std::string& text, const TestRun& run) { return Read(text, run.trace()); }

std::string Errors(const std::string& text, const Vocabulary& vocabulary) {
  const Formula::ParseResult parsed = Formula::Parse(text);
  std::vector<FormulaError> errors = parsed.errors;
  if (parsed.formula) errors = parsed.formula->Check(vocabulary);
  std::string all;
  for (const FormulaError& error : errors) {
    all += std::to_string(error.begin) + "-" + std::to_string(error.end) + ": " + error.message;
    if (!error.hint.empty()) all += " (" + error.hint + ")";
    all += "\n";
  }
  return all;
}

}  // namespace trainwreck::formula::testing
