#include "harness/spec/fuzz_target.h"

#include <cstdio>
#include <cstdlib>

#include "harness/spec/scenario.h"
#include "harness/spec/test_target.h"

namespace trainwreck {
namespace {

void Demand(bool holds, const char* what, const std::string& text) {
  if (holds) return;
  std::fprintf(stderr, "%s, for this input:\n%s\n", what, text.c_str());
  std::abort();
}

}  // namespace

void FuzzScenario(const std::string& text) {
  static const TargetDescription target = TestTarget();
  LoadOptions options;
  options.scenarios_root = "tests/bad_scenarios";
  options.check_name = false;
  const ScenarioFile file = ParseScenario(text, "fuzz.yaml", target, options);
  Demand(file.scenario.has_value() == file.errors.empty(), "neither valid nor wrong", text);
  for (const Diagnostic& error : file.errors) {
    Demand(!error.message.empty(), "an error without a message", text);
    Demand(error.position.line >= 0 && error.position.column >= 0, "a place outside", text);
    Demand(!Format(error, true).empty(), "an error that prints nothing", text);
  }
  if (!file.scenario) return;
  // Whoever is told that a scenario is valid goes on to this.
  const Scenario& scenario = *file.scenario;
  Demand(!scenario.points.empty() && !scenario.phases.empty(), "no point or phase", text);
  for (const Point& point : scenario.points) {
    const Recipe recipe = ResolveRecipe(target, scenario, point, {});
    for (const ParamInfo& info : target.recipe) {
      Demand(CheckValue(info, recipe.at(info.name)).empty(), "a value out of its range", text);
    }
  }
}

}  // namespace trainwreck
