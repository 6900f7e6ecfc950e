// trainwreck check: formulas over the trace of a run that is over, without running anything.
#include <algorithm>
#include <iostream>
#include <map>

#include "harness/cli/claims.h"
#include "harness/cli/session.h"
#include "harness/cli/storage.h"
#include "harness/cli/stored_trace.h"
#include "harness/cli/verbs.h"
#include "harness/formula/formula.h"

namespace trainwreck {
namespace {

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

TargetDescription DescriptionFor(const Options& options) {
  if (options.common.target.empty()) {
    if (auto stored = FindStoredDescription(options.check.trace)) return *stored;
  }
  return OpenSession(options.common).description;
}

}  // namespace

int CheckVerb(const Options& options) {
  const std::vector<Formula> formulas = ParseAll(options.check.formulas);
  const StoredTrace self = LoadStoredTrace(options.check.trace);
  const std::map<std::string, StoredTrace> arms =
      LoadStoredArms(options.check.trace, options.check.arms, self, formulas);
  const TargetDescription target = DescriptionFor(options);
  const formula::Vocabulary vocabulary = VocabularyOf(self, arms, target);
  formula::Runs runs{.self = &self.trace, .arms = {}};
  for (const auto& [name, arm] : arms) runs.arms[name] = &arm.trace;

  bool has_errors = false;
  for (const Formula& each : formulas) {
    std::vector<formula::FormulaError> errors = each.Check(vocabulary);
    PrintErrors(each.text(), errors);
    has_errors = has_errors || !errors.empty();
  }
  if (has_errors) throw UsageError("--assert: the formula does not fit this trace and target");

  int status = kExitPassed;
  for (const Formula& each : formulas) {
    const formula::Reading reading = each.Evaluate(runs, target);
    const char* truth = reading.truth == Truth::kTrue    ? "true"
                        : reading.truth == Truth::kFalse ? "false"
                                                         : "unknown";
    const std::string margin = MarginText(reading);
    std::cout << truth << ": " << each.text() << "\n";
    if (!margin.empty()) std::cout << "  margin " << margin << "\n";
    if (!reading.seen.empty()) std::cout << "  seen " << reading.seen << "\n";
    if (reading.step >= 0) std::cout << "  at step " << reading.step << "\n";
    if (reading.truth == Truth::kFalse) status = kExitFailed;
    if (reading.truth == Truth::kUnknown && status == kExitPassed) status = kExitInconclusive;
  }
  return status;
}

}  // namespace trainwreck
