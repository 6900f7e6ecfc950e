// trainwreck check: formulas over the trace of a run that is over, without running anything.
#include <algorithm>
#include <array>
#include <iostream>
#include <map>

#include "harness/campaign/claims.h"
#include "harness/cli/verb.h"
#include "harness/formula/formula.h"
#include "harness/session/session.h"
#include "harness/session/storage.h"
#include "harness/session/stored_trace.h"

namespace trainwreck {
namespace {

struct CheckOptions {
  CommonOptions common;
  std::string trace;
  std::vector<std::string> formulas;
  std::vector<std::pair<std::string, std::string>> arms;  // name, folder
  std::string format = "text";
  bool all_steps = false;
  bool finished = false;  // a trace without its end is whole
  int steps = 0;          // that a trace without a plan was to have; 0: not known
};

using formula::Formula;
using formula::Truth;

void PrintErrors(const std::string& text, const std::vector<formula::FormulaError>& errors) {
  for (const formula::FormulaError& error : errors) {
    const std::size_t begin = std::min(error.begin, text.size());
    const std::size_t length = std::max<std::size_t>(std::max(error.end, begin) - begin, 1);
    std::cerr << "--assert:1:" << begin + 1 << ": error: " << error.message << "\n    " << text
              << "\n    " << std::string(begin, ' ') << "^" << std::string(length - 1, '~') << "\n";
    if (!error.hint.empty()) std::cerr << "  " << error.hint << "\n";
  }
}

std::vector<Formula> ParseAll(const std::vector<std::string>& texts) {
  std::vector<Formula> formulas;
  for (const std::string& text : texts) {
    Formula::ParseResult parsed = Formula::Parse(text);
    PrintErrors(text, parsed.errors);
    if (parsed.formula && parsed.errors.empty()) formulas.push_back(*parsed.formula);
  }
  if (formulas.size() != texts.size()) throw UsageError("--assert: no formula");
  return formulas;
}

TargetDescription DescriptionFor(const CheckOptions& options) {
  if (options.common.target.empty()) {
    if (auto stored = FindStoredDescription(options.trace)) return *stored;
  }
  return OpenSession(options.common).description;
}

const char* WordOf(Truth truth) {
  return truth == Truth::kTrue ? "true" : truth == Truth::kFalse ? "false" : "unknown";
}

const char* WordOf(const formula::StepReading& reading) {
  return reading.sampled ? WordOf(reading.truth) : "unsampled";
}

TraceFacts FactsOf(const CheckOptions& options, const std::vector<Formula>& formulas) {
  TraceFacts facts{.finished = options.finished, .steps = options.steps, .furthest_step = 0};
  for (const Formula& each : formulas) {
    facts.furthest_step = std::max(facts.furthest_step, each.furthest_step());
  }
  return facts;
}

// A formula, and what it is worth over the whole run and at its steps.
struct FormulaAnswer {
  const Formula* formula = nullptr;
  formula::Reading reading;
  std::vector<formula::StepReading> steps;  // with --all-steps
};

// The truth of a formula that is read at steps only: as `always` of it.
Truth TruthOfAll(const std::vector<formula::StepReading>& steps) {
  Truth truth = steps.empty() ? Truth::kUnknown : Truth::kTrue;
  bool any_sampled = false;
  for (const formula::StepReading& step : steps) {
    any_sampled = any_sampled || step.sampled;
    if (step.sampled) truth = std::min(truth, step.truth);
  }
  return any_sampled ? truth : Truth::kUnknown;
}

// The runs that formulas are read over, and what they may mention.
struct Traces {
  StoredTrace self;
  std::map<std::string, StoredTrace> arms;
  TargetDescription target;

  formula::Runs Runs() const {
    formula::Runs runs{.self = &self.trace, .arms = {}};
    for (const auto& [name, arm] : arms) runs.arms[name] = &arm.trace;
    return runs;
  }
  bool HasOpenEnd(const Formula& formula) const {
    bool open = self.has_open_end;
    for (const std::string& name : formula.arms()) {
      open = open || (arms.contains(name) && arms.at(name).has_open_end);
    }
    return open;
  }
};

FormulaAnswer AnswerOf(const Formula& formula, const Traces& traces, bool all_steps,
                       bool is_whole) {
  FormulaAnswer answer{.formula = &formula, .reading = {}, .steps = {}};
  if (formula.counts_from_end() && traces.HasOpenEnd(formula)) {
    answer.reading.seen = "it counts from the run's planned end, which is not known";
    return answer;
  }
  const formula::Runs runs = traces.Runs();
  if (all_steps) answer.steps = formula.EvaluateAtSteps(runs, traces.target);
  if (is_whole) {
    answer.reading = formula.Evaluate(runs, traces.target);
  } else {
    answer.reading.truth = TruthOfAll(answer.steps);
  }
  return answer;
}

Json MarginsJson(const std::array<std::optional<formula::Interval>, formula::kUnitCount>& margins) {
  Json json = Json::object();
  for (int unit = 0; unit < formula::kUnitCount; ++unit) {
    if (!margins[unit]) continue;
    json[NameOf(static_cast<formula::Unit>(unit))] = {{"lo", EncodeNumber(margins[unit]->lo)},
                                                      {"hi", EncodeNumber(margins[unit]->hi)}};
  }
  return json;
}

void PrintJson(const std::string& folder, const Traces& traces,
               const std::vector<FormulaAnswer>& answers) {
  const StoredTrace& self = traces.self;
  Json json = {{"schema", "trainwreck/check"},
               {"version", 1},
               {"trace", folder},
               {"finished", self.trace.finished},
               {"planned_steps", self.has_open_end ? Json() : Json(self.trace.planned_steps)},
               {"lost_ranks", self.trace.lost},
               {"problems", self.problems},
               {"readings", Json::array()}};
  for (const FormulaAnswer& answer : answers) {
    const formula::Reading& reading = answer.reading;
    Json one = {{"formula", answer.formula->text()},
                {"truth", WordOf(reading.truth)},
                {"margins", MarginsJson(reading.margins)},
                {"seen", reading.seen},
                {"step", reading.step < 0 ? Json() : Json(reading.step)}};
    for (std::size_t step = 0; step < answer.steps.size(); ++step) {
      one["steps"].push_back({{"step", step},
                              {"truth", WordOf(answer.steps[step])},
                              {"margins", MarginsJson(answer.steps[step].margins)}});
    }
    json["readings"].push_back(std::move(one));
  }
  std::cout << json.dump(1, ' ', false, Json::error_handler_t::replace) << "\n";
}

void PrintText(const FormulaAnswer& answer) {
  const formula::Reading& reading = answer.reading;
  std::cout << WordOf(reading.truth) << ": " << answer.formula->text() << "\n";
  const std::string margin = MarginText(reading);
  if (!margin.empty()) std::cout << "  margin " << margin << "\n";
  if (!reading.seen.empty()) std::cout << "  seen " << reading.seen << "\n";
  if (reading.step >= 0) std::cout << "  at step " << reading.step << "\n";
  for (std::size_t step = 0; step < answer.steps.size(); ++step) {
    formula::Reading here;
    here.margins = answer.steps[step].margins;
    here.main_unit = here.margins[static_cast<int>(formula::Unit::kOctave)] ? formula::Unit::kOctave
                                                                            : formula::Unit::kPlain;
    std::cout << "  step " << step << " " << WordOf(answer.steps[step]);
    const std::string text = answer.steps[step].sampled ? MarginText(here) : "";
    std::cout << (text.empty() ? "" : ", margin " + text) << "\n";
  }
}

int CheckVerb(const CheckOptions& options) {
  const std::vector<Formula> formulas = ParseAll(options.formulas);
  const TraceFacts facts = FactsOf(options, formulas);
  Traces traces;
  traces.self = LoadStoredTrace(options.trace, facts);
  if (traces.self.run && (options.finished || options.steps > 0)) {
    throw UsageError(
        "--finished and --steps are for traces that `run` did not store: of this one "
        "run.json says how long it was to be and how it ended");
  }
  traces.arms = LoadStoredArms(options.trace, options.arms, traces.self, formulas, facts);
  traces.target = DescriptionFor(options);
  const formula::Vocabulary vocabulary = VocabularyOf(traces.self, traces.arms, traces.target);

  bool has_errors = false;
  std::vector<FormulaAnswer> answers;
  for (const Formula& each : formulas) {
    std::vector<formula::FormulaError> errors = each.Check(vocabulary);
    const bool is_whole = errors.empty();
    if (!is_whole && options.all_steps) errors = each.Check(vocabulary, /*at_steps=*/true);
    PrintErrors(each.text(), errors);
    has_errors = has_errors || !errors.empty();
    if (errors.empty()) {
      answers.push_back(AnswerOf(each, traces, options.all_steps, is_whole));
    }
  }
  if (has_errors) throw UsageError("--assert: the formula does not fit this trace and target");

  if (options.format == "json") PrintJson(options.trace, traces, answers);
  int status = kExitPassed;
  for (const FormulaAnswer& answer : answers) {
    if (options.format == "text") PrintText(answer);
    if (answer.reading.truth == Truth::kFalse) status = kExitFailed;
    if (answer.reading.truth == Truth::kUnknown && status == kExitPassed) {
      status = kExitInconclusive;
    }
  }
  return status;
}

std::vector<std::pair<std::string, std::string>> ParseArms(const std::vector<std::string>& texts) {
  std::vector<std::pair<std::string, std::string>> arms;
  for (const std::string& text : texts) {
    std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
      throw BadValue("'" + text + "' is no arm: say NAME=FOLDER, as control=runs/7");
    }
    arms.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return arms;
}

void Declare(VerbArguments& arguments, CheckOptions& options) {
  arguments.Positional("TRACE", options.trace, "Folder of a run").Required();
  arguments.Option("--assert", options.formulas, "Formula; may be repeated", "FORMULA").Required();
  arguments.ParsedEach(
      "--arm",
      [&options](const std::vector<std::string>& texts) { options.arms = ParseArms(texts); },
      "Folder of a run that the formula calls NAME [control, reference: the stored ones]",
      "NAME=DIR");
  arguments.Option("--format", options.format, "text or json [text]", "FORMAT")
      .OneOf({"text", "json"});
  arguments.Flag("--all-steps", options.all_steps,
                 "Truth and margins at every step, as inside a temporal operator");
  arguments.Flag("--finished", options.finished,
                 "The run is over, though its trace has no `end` record");
  arguments
      .Option("--steps", options.steps,
              "Steps that the run plans [as stored, or as its `end` record says]", "N")
      .Between(1, 10000000);
  arguments.Common(options.common);
}

const VerbRegistration registration("check", "Read a formula over a stored trace", kStored, Declare,
                                    CheckVerb);

}  // namespace
}  // namespace trainwreck
