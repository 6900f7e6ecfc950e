#include "harness/formula/fuzz_target.h"

#include <cstdio>
#include <cstdlib>

#include "harness/formula/formula.h"
#include "harness/formula/parser.h"
#include "harness/formula/test_support.h"

namespace trainwreck::formula::testing {
namespace {

void Require(bool holds, const char* promise, std::string_view text) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %s\nformula: %.*s\n", promise,
               static_cast<int>(text.size()), text.data());
  std::abort();
}

// Short runs, for speed; with NaN, holes, an early end, two ranks, modules and events.
const std::vector<RunTrace>& Runs() {
  static const std::vector<RunTrace> runs = [] {
    TestRun whole(12, 2);
    for (int rank = 0; rank < 2; ++rank) {
      whole.With("loss", {4, 3, 2, kNan, 2, kInf, 1, 1, 1, 1, 1, 1}, rank)
          .With("grad_norm", {1, 1, 9, 1, 1, 0, kMissing, 1, 1, 1, 1, 1}, rank)
          .With("lr", {1, 2, 3, 4, 5, 6, 7, 8, 9, 8, 7, 6}, rank)
          .With("updated{head.weight}", {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, rank)
          .With("update_norm{head.bias}", {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, rank);
    }
    whole.At("eval_loss", 5, 2)
        .Happened("fired", 3, {{"id", "hot_lr"}, {"samples", {1, 2}}}, 0, 3.5);
    whole.Happened("stalled", 7, {{"waiting_rank", 0}}, -1, 8);
    RunTrace odd = Prefix(whole.trace(), 5);
    odd.series[{"{", 0}].Set(1, 1);
    odd.series[{"loss{}", 0}].Set(1, 1);
    odd.time_s[0].Set(2, kNan);
    return std::vector<RunTrace>{whole.trace(), Prefix(whole.trace(), 6), odd, TestRun(0).trace(),
                                 TestRun(1, 2).trace()};
  }();
  return runs;
}

void RequireSound(const Reading& reading, std::string_view text) {
  for (const auto& margin : reading.margins) {
    if (!margin) continue;
    Require(margin->lo <= margin->hi, "the margin's lower end is not above its upper one", text);
    Require(!(margin->lo > 0) || reading.truth == Truth::kTrue, "a positive margin holds", text);
    Require(!(margin->hi < 0) || reading.truth == Truth::kFalse, "a negative margin fails", text);
  }
}

}  // namespace

void FuzzOne(std::string_view text) {
  const Formula::ParseResult parsed = Formula::Parse(text);
  Require(parsed.formula.has_value() == parsed.errors.empty(), "a formula or errors", text);
  for (const FormulaError& error : parsed.errors) {
    Require(error.begin <= error.end && error.end <= text.size(), "errors lie in the text", text);
    Require(!error.message.empty(), "errors have a message", text);
  }
  if (!parsed.formula) return;
  const std::string printed = ToText(*ParseTree(text).root);
  if (printed.size() <= kMaxFormulaBytes) {
    const ParsedTree again = ParseTree(printed);
    const bool deep =
        !again.errors.empty() && again.errors[0].message.find("deep") != std::string::npos;
    Require(deep || (again.root != nullptr && ToText(*again.root) == printed),
            "the printed formula parses to itself", text);
  }
  for (int steps : {0, 12}) {
    for (const FormulaError& error : parsed.formula->Check(TestVocabulary(steps, 2))) {
      Require(error.begin <= error.end && error.end <= text.size(), "errors lie in the text", text);
    }
  }
  for (const FormulaError& error : parsed.formula->FindVacuous(TestVocabulary(12, 2), "control")) {
    Require(error.begin <= error.end && error.end <= text.size(), "errors lie in the text", text);
  }
  // Unchecked formulas, too, must read as something.
  const std::vector<RunTrace>& runs = Runs();
  for (const RunTrace& run : runs) {
    formula::Runs over;
    over.self = &run;
    over.arms = {{"control", &runs[0]}, {"reference", &runs[2]}};
    RequireSound(parsed.formula->Evaluate(over, TestTarget()), text);
    const auto steps = parsed.formula->EvaluateAtSteps(over, TestTarget());
    Require(static_cast<int>(steps.size()) == run.planned_steps, "a reading for each step", text);
  }
}

}  // namespace trainwreck::formula::testing
