// One fault = one file under injectors/<site>/ that registers itself:
//
//   FaultInfo Info() { return {.name = "data.corrupt_sample", .doc = "...", .params = {...}}; }
//   class CorruptSample : public Injector { ... std::unique_ptr<Dataset> Wrap(...) override; };
//   REGISTER_FAULT(Info, CorruptSample);
//
// An injector wraps parts of the loop (PartWrapper) or acts at a hook, asks `Acts()` whether its
// trigger says so now, and reports every act with what it changed: Fired({{"before", ...},
// {"after", ...}}). A fault that only changes the recipe has `amends` and no class:
// REGISTER_RECIPE_FAULT(Info).
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "harness/protocol/description.h"
#include "harness/protocol/plan.h"
#include "harness/trainer/parts.h"

namespace trainwreck {

// What an injector may know of the run it acts in; outlives it.
struct InjectorContext {
  const Clock* clock = nullptr;
  EventSink* events = nullptr;
  int rank = 0;
  int world_size = 1;
  std::uint64_t seed = 0;
};

class Injector : public PartWrapper {
 public:
  Injector(PlannedFault fault, InjectorContext context)
      : fault_(std::move(fault)), context_(context) {}

 protected:
  using PartWrapper::Wrap;
  // Whether the trigger says to act at the loop's current step, on this rank, in this phase and
  // attempt.
  bool Acts() const;
  // Writes the evidence: event `fired` with id, fault and `fields` (before, after, ...).
  void Fired(Json fields);

  const Json& param(const std::string& name) const { return fault_.with.at(name); }
  const PlannedFault& fault() const { return fault_; }
  const InjectorContext& context() const { return context_; }

 private:
  PlannedFault fault_;
  InjectorContext context_;
};

using InjectorFactory = std::unique_ptr<Injector> (*)(PlannedFault, InjectorContext);

struct RegisteredFault {
  FaultInfo info;
  InjectorFactory make = nullptr;  // null: a fault of the recipe, performed by the harness
};

// All faults that are linked in, by name.
const std::map<std::string, RegisteredFault>& FaultRegistry();
bool RegisterFault(FaultInfo info, InjectorFactory make);

// Throws std::runtime_error for an unknown fault.
std::vector<std::unique_ptr<Injector>> MakeInjectors(const std::vector<PlannedFault>& faults,
                                                     const InjectorContext& context);

#define REGISTER_FAULT(info, Type)                                                           \
  static const bool registered_##Type = ::trainwreck::RegisterFault(                         \
      info(),                                                                                \
      [](::trainwreck::PlannedFault fault,                                                   \
         ::trainwreck::InjectorContext context) -> std::unique_ptr<::trainwreck::Injector> { \
        return std::make_unique<Type>(std::move(fault), context);                            \
      })
#define REGISTER_RECIPE_FAULT(info) \
  static const bool registered_recipe_fault = ::trainwreck::RegisterFault(info(), nullptr)

}  // namespace trainwreck
