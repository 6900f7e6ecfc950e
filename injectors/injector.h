// One fault = one file under injectors/<site>/ that registers itself:
//
//   FaultInfo Info() { return {.name = "data.corrupt_sample", .doc = "...", .params = {...}}; }
//   class CorruptSample : public Injector { ... std::unique_ptr<Dataset> Wrap(...) override; };
//   REGISTER_FAULT(Info, CorruptSample);
//
// An injector wraps parts of the loop (PartWrapper) or acts at a hook, asks
// `Acts()` whether its trigger says so now. It reports every act with what it changed: Fired({{"before", ...}, {"after", ...}}). Wrappers and hooks may keep a reference to the injector: it outlives the parts. A fault that only changes the recipe has `amends`
// and no class (registry.h).
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "harness/protocol/description.h"
#include "harness/protocol/plan.h"
#include "injectors/registry.h"
#include "trainer/parts.h"

namespace trainwreck {

class Injector : public PartWrapper {
 public:
  using PartWrapper::Wrap;

  Injector(PlannedFault fault, InjectorContext context)
      : fault_(std::move(fault)), context_(context) {}

  // Whether the trigger says to act at the step in progress (of a sample that is fetched ahead: the
  // step that it is for), on this rank, in this phase and attempt. Asking changes nothing: every
  // sample of a step gets the same answer.
  bool Acts() const { return ActsAt(StepOfThread(*context_.clock)); }
  // The same with `step` in place of the clock's, for parts that count otherwise.
  bool ActsAt(int step) const;
  // Writes the evidence: event `fired` with id, fault and `fields` (before, after, ...).
  void Fired(Json fields);

 protected:
  const Json& param(const std::string& name) const { return fault_.with.at(name); }
  // Whether any of a parameter's globs matches.
  static bool AnyMatches(const std::vector<std::string>& globs, const std::string& text);
  const PlannedFault& fault() const { return fault_; }
  const InjectorContext& context() const { return context_; }

 private:
  PlannedFault fault_;
  InjectorContext context_;
};

// Throws RecipeError, naming the scenario's id, for an unknown fault, a fault of the recipe,
// and parameters that are unknown, missing or unfit. Defaults are filled in.
std::vector<std::unique_ptr<Injector>> MakeInjectors(const std::vector<PlannedFault>& faults,
                                                     const InjectorContext& context);

#define REGISTER_FAULT(info, Type)                                                           \
  [[maybe_unused]] static const bool registered_fault = ::trainwreck::RegisterFault(         \
      info(),                                                                                \
      [](::trainwreck::PlannedFault fault,                                                   \
         ::trainwreck::InjectorContext context) -> std::unique_ptr<::trainwreck::Injector> { \
        return std::make_unique<Type>(std::move(fault), context);                            \
      })

}  // namespace trainwreck
