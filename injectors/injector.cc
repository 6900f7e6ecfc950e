#include "injectors/injector.h"

#include <algorithm>

#include "harness/text/glob.h"
#include "trainer/recipe/recipe.h"

namespace trainwreck {
namespace {

// `with` complete and checked against the fault's parameter table.
std::map<std::string, Json> Complete(const PlannedFault& fault, const FaultInfo& info) {
  const std::string where = "fault `" + fault.id + "` (" + fault.fault + "): ";
  std::map<std::string, Json> with = fault.with;
  for (const auto& [name, value] : fault.with) {
    const bool known =
        std::any_of(info.params.begin(), info.params.end(),
                    [&name = name](const ParamInfo& param) { return param.name == name; });
    if (!known) throw RecipeError(where + "unknown parameter `" + name + "`");
  }
  for (const ParamInfo& param : info.params) {
    const auto given = with.find(param.name);
    if (given == with.end()) {
      if (param.default_value.is_null()) {
        throw RecipeError(where + "parameter `" + param.name + "` must be given");
      }
      with[param.name] = param.default_value;
      continue;
    }
    const std::string problem = CheckValue(param, given->second);
    if (!problem.empty()) {
      throw RecipeError(where + "parameter `" + param.name + "`: " + problem);
    }
  }
  return with;
}

}  // namespace

bool Injector::ActsAt(int step) const {
  const Clock& clock = *context_.clock;
  return fault_.trigger.Matches(step, context_.rank, clock.phase, clock.attempt, context_.seed);
}

void Injector::Fired(Json fields) {
  fields["id"] = fault_.id;
  fields["fault"] = fault_.fault;
  context_.events->Report(events::kFired, std::move(fields));
}

bool Injector::AnyMatches(const std::vector<std::string>& globs, const std::string& text) {
  return std::any_of(globs.begin(), globs.end(),
                     [&](const std::string& glob) { return GlobMatches(glob, text); });
}

std::vector<std::unique_ptr<Injector>> MakeInjectors(const std::vector<PlannedFault>& faults,
                                                     const InjectorContext& context) {
  std::vector<std::unique_ptr<Injector>> injectors;
  for (const PlannedFault& planned : faults) {
    const auto registered = FaultRegistry().find(planned.fault);
    if (registered == FaultRegistry().end()) {
      throw RecipeError("fault `" + planned.id + "`: there is no fault `" + planned.fault + "`");
    }
    const auto& [info, make] = registered->second;
    if (make == nullptr) {
      throw RecipeError("fault `" + planned.id + "`: `" + planned.fault +
                        "` changes the recipe, which is done before the plan is written");
    }
    PlannedFault complete = planned;
    complete.with = Complete(planned, info);
    injectors.push_back(make(std::move(complete), context));
  }
  return injectors;
}

}  // namespace trainwreck
