// A small scenario, its target and synthetic runs, for tests of the code behind the launcher.
// Unchanged, they fulfil every claim of the scenario; a test changes one thing and looks at the
// result.
#pragma once

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "harness/judge/verdict.h"

namespace trainwreck::testing {

inline constexpr int kSteps = 20;
inline constexpr int kSeeds = 3;
inline constexpr int kBlowUpStep = 5;

inline TargetDescription TestTarget() {
  TargetDescription target;
  target.name = "test-target";
  auto key = [&](const char* name, ValueType type, Json value) {
    ParamInfo info;
    info.name = name;
    info.type = type;
    info.default_value = std::move(value);
    target.recipe.push_back(std::move(info));
  };
  key("optimizer.lr", ValueType::kNumber, 0.1);
  key("optimizer.weight_decay", ValueType::kNumber, 0.0);
  key("optimizer.clip_norm", ValueType::kNumber, 0.0);
  key("steps", ValueType::kInt, kSteps);
  key("parallel.ranks", ValueType::kInt, 1);
  auto signal = [&](const char* name, Scale scale, bool per_module) {
    SignalInfo info;
    info.name = name;
    info.scale = scale;
    info.per_module = per_module;
    target.signals.push_back(std::move(info));
  };
  signal("loss", Scale::kLog, false);
  signal("grad_norm", Scale::kLog, true);
  signal("step_s", Scale::kLog, false);
  target.features = {"device:cpu"};
  FaultInfo high_lr;
  high_lr.name = "recipe.high_lr";
  high_lr.amends = {{"optimizer.lr", Amendment::Op::kScale, "factor", Json()}};
  target.faults.push_back(high_lr);
  FaultInfo corrupt;
  corrupt.name = "data.corrupt_sample";
  target.faults.push_back(corrupt);
  AddHarnessVocabulary(target);
  return target;
}

inline Check MakeCheck(const std::string& name, const std::string& text,
                       const std::string& min_margin = "") {
  auto parsed = formula::Formula::Parse(text);
  if (!parsed.formula) throw std::runtime_error("bad formula " + text);
  Check check{name, *parsed.formula, std::nullopt, "", {}, {7, 11, 5}, ""};
  if (!min_margin.empty()) check.min_margin = formula::ParseAmount(min_margin).value();
  return check;
}

inline Scenario TestScenario() {
  Scenario scenario;
  scenario.file = "scenarios/nan/test.yaml";
  scenario.name = "nan/test";
  scenario.title = "A test";
  scenario.seed_count = scenario.seed_require = kSeeds;
  scenario.faults.push_back({"hot", "recipe.high_lr", {{"factor", 15.0}}, {}, {3, 3, 3}, ""});
  scenario.healthy.push_back(MakeCheck("learns", "mean(loss[-5:]) < 0.8 * mean(loss[:5])"));
  scenario.symptoms.push_back(MakeCheck("blows_up", "eventually[:10] nonfinite(loss)", "2 steps"));
  scenario.quality = MakeCheck("quality", "mean(loss[-5:]) <= 1.25 * control.mean(loss[-5:])");
  Remedy remedy;
  remedy.name = "lower_lr";
  remedy.changes.scale = {{"optimizer.lr", 0.1}};
  scenario.remedies.push_back(remedy);
  Decoy decoy;
  decoy.name = "decay";
  decoy.changes.set = {{"optimizer.weight_decay", 0.1}};
  scenario.decoys.push_back(decoy);
  scenario.points.emplace_back();
  scenario.phases = {{"train", std::nullopt}};
  return scenario;
}

// A loss that falls from 4 to `final_loss` in a straight line.
inline std::vector<double> LearningLoss(double final_loss) {
  std::vector<double> loss;
  for (int step = 0; step < kSteps; ++step) {
    loss.push_back(4 + (final_loss - 4) * step / (kSteps - 1));
  }
  return loss;
}

inline std::vector<double> ExplodingLoss(int step) {
  std::vector<double> loss = LearningLoss(4);
  for (int i = step; i < kSteps; ++i) loss[i] = std::numeric_limits<double>::quiet_NaN();
  return loss;
}

inline RunResult MakeRun(const std::vector<double>& loss) {
  RunResult run;
  run.end = RunEnd::kCompleted;
  run.wall_seconds = 0.5;
  run.cpu_seconds = 0.4;
  run.trace.planned_steps = kSteps;
  run.trace.finished = true;
  for (int step = 0; step < static_cast<int>(loss.size()); ++step) {
    run.trace.series[{"loss", 0}].Set(step, loss[step]);
    run.trace.series[{"step_s", 0}].Set(step, 0.01);
    run.trace.time_s[0].Set(step, 0.01 * step);
  }
  return run;
}

inline void AddEvent(RunResult& run, const std::string& name, int step, Json fields) {
  Event event;
  event.name = name;
  event.step = step;
  fields["event"] = name;
  if (fields.contains("rank")) event.rank = fields["rank"];
  event.fields = std::move(fields);
  run.trace.events.push_back(std::move(event));
}

inline void AddFired(RunResult& run, const Json& before = 0.1, const Json& after = 1.5) {
  AddEvent(run, "fired", -1,
           {{"id", "hot"}, {"fault", "recipe.high_lr"}, {"before", before}, {"after", after}});
}

// The runs of every arm, as the scenario claims them to be.
inline RunResult RunOf(const ArmPlan& arm) {
  RunResult run = MakeRun(arm.kind == ArmKind::kFault || arm.kind == ArmKind::kDecoy
                              ? ExplodingLoss(kBlowUpStep)
                              : LearningLoss(arm.kind == ArmKind::kRemedy ? 1.05 : 1.0));
  if (arm.kind != ArmKind::kControl && arm.kind != ArmKind::kReference) AddFired(run);
  return run;
}

// Everything between a scenario and its verdict, with places to interfere.
struct Bench {
  TargetDescription target = TestTarget();
  std::vector<Scenario> scenarios = {TestScenario()};
  PlanOptions options;
  std::vector<Case> cases;
  CaseResults results;
  // Called for every run once it is made.
  std::function<void(const Run&, RunResult&)> meddle;

  Scenario& scenario() { return scenarios.front(); }

  void MakeRuns() {
    cases = PlanCases(scenarios, target, options);
    results.plan = &cases.front();
    results.runs.clear();
    for (const ArmPlan& arm : cases.front().arms) {
      for (const Run& run : arm.runs) {
        RunResult result = RunOf(arm);
        if (meddle) meddle(run, result);
        results.runs[arm.name][run.seed] = std::move(result);
      }
    }
  }

  Verdict Judged() {
    MakeRuns();
    return Judge(results, target);
  }

  // Changes the runs of one arm; of one seed, or of all (-1).
  void In(const std::string& arm, int seed, std::function<void(RunResult&)> change) {
    auto before = meddle;
    meddle = [=](const Run& run, RunResult& result) {
      if (before) before(run, result);
      if (run.arm == arm && (seed < 0 || run.seed == seed)) change(result);
    };
  }
};

// Gives a run another loss and leaves the rest.
inline std::function<void(RunResult&)> WithLoss(std::vector<double> loss) {
  return [loss = std::move(loss)](RunResult& run) {
    RunResult other = MakeRun(loss);
    run.trace.series = std::move(other.trace.series);
    run.trace.time_s = std::move(other.trace.time_s);
  };
}

inline std::string Outcome(const Verdict& verdict) {
  return OutcomeText(verdict.verdict, verdict.failure_class);
}

inline std::function<void(RunResult&)> EndingWith(RunEnd end) {
  return [end](RunResult& run) { run.end = end; };
}

// The launcher's record of a rank that ended badly.
inline void Crash(RunResult& run, int code, int signal, int rank = 0, double time_s = 1) {
  run.end = RunEnd::kFailed;
  AddEvent(run, "exited", 10, {{"rank", rank}, {"code", code}, {"signal", signal}});
  run.trace.events.back().time_s = time_s;
}

inline std::function<void(RunResult&)> Crashing(int code, int signal) {
  return [=](RunResult& run) { Crash(run, code, signal); };
}

}  // namespace trainwreck::testing
