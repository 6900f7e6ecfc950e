#include "harness/spec/claim_checks.h"

#include <algorithm>
#include <string>

#include "harness/protocol/recipe_view.h"

namespace trainwreck {
namespace {

constexpr int kSteps = 1000;  // of a run that only shows that the fault fired

// All that is known is that every fault fires at every step.
RunTrace OnlyFired(const Draft& draft) {
  RunTrace trace;
  trace.planned_steps = kSteps;
  for (const std::string& id : draft.fault_ids) {
    for (int step = 0; step < kSteps; ++step) {
      trace.events.push_back({"fired", step, 0, 0, Json{{"id", id}, {"rank", 0}}});
    }
  }
  return trace;
}

bool IsOnlyAboutFired(const formula::Formula& formula) {
  return formula.signals().empty() && formula.events() == std::set<std::string>{"fired"};
}

void CheckSymptoms(const Draft& draft, const TargetDescription& target, Errors& errors) {
  const RunTrace fired = OnlyFired(draft);
  for (const Check& symptom : draft.scenario.symptoms) {
    const bool says_no_more =
        IsOnlyAboutFired(symptom.formula) ||
        symptom.formula.Evaluate({&fired, {}}, target).truth == formula::Truth::kTrue;
    if (!says_no_more) continue;
    errors.Add(Locate(*draft.root, {"symptoms", symptom.name}),
               "symptom '" + symptom.name + "' holds as soon as the fault fires",
               "that it fires is checked in any case; say what the run shows then");
  }
}

void CheckRemedies(const Draft& draft, Errors& errors) {
  for (const Remedy& remedy : draft.scenario.remedies) {
    const auto is_steps = [](const auto& change) { return change.first == kStepsKey; };
    const Changes& changes = remedy.changes;
    if (changes.set.empty() && changes.scale.empty()) continue;  // it has had its error
    if (!std::all_of(changes.set.begin(), changes.set.end(), is_steps) ||
        !std::all_of(changes.scale.begin(), changes.scale.end(), is_steps) || !remedy.is_correct) {
      continue;
    }
    errors.Add(Locate(*draft.root, {"remedies", remedy.name}),
               "remedy '" + remedy.name + "' only changes how long the run is",
               "what has not happened yet is not cured; if stopping early is the prescription, "
               "say so with 'kind: mitigate'");
  }
}

// A seed is lost as a whole, so `require` is what all claims together rest on.
void CheckSeeds(const Draft& draft, Errors& errors) {
  const Scenario& scenario = draft.scenario;
  if (2 * scenario.seed_require > scenario.seed_count) return;
  errors.Add(Locate(*draft.root, {"seeds", "require"}),
             "'require' must be more than half of 'count', which is " +
                 std::to_string(scenario.seed_count),
             "a claim that fails in half of the seeds is no claim");
}

void CheckExpectation(const Draft& draft, Errors& errors) {
  const Expectation& expect = draft.scenario.expect;
  const YamlNode& node = Locate(*draft.root, {"expect"});
  if (expect.failure_class == FailureClass::kInfrastructure) {
    errors.Add(Locate(*draft.root, {"expect", "class"}),
               "'infrastructure' cannot be expected: it says nothing about the training");
  }
  const bool is_error = expect.verdict == VerdictKind::kError;
  const YamlNode* said = draft.root->Find("expect");
  const YamlNode* given = said == nullptr ? nullptr : said->Find("class");  // known or not
  if ((is_error || expect.verdict == VerdictKind::kInconclusive) &&
      (given == nullptr || given->text.empty())) {
    const std::string verdict = ToString(expect.verdict);
    const FailureClass example = is_error ? FailureClass::kTimeout : FailureClass::kUndecided;
    errors.Add(node, "'expect: " + verdict + "' needs a class",
               "such as {verdict: " + verdict + ", class: " + example.text() +
                   ", reason: ...}: not everything that goes wrong is the known limit");
  }
}

}  // namespace

void CheckClaims(const Draft& draft, const TargetDescription& target, Errors& errors) {
  CheckSymptoms(draft, target, errors);
  CheckRemedies(draft, errors);
  CheckSeeds(draft, errors);
  CheckExpectation(draft, errors);
}

}  // namespace trainwreck
