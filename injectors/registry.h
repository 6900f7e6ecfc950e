// The table of all faults that are linked in. A fault of the recipe needs no more than this header;
// one that acts in the training process has a class, see injector.h.
//
//   FaultInfo Info() { return {.name = "recipe.high_lr", .doc = "...", .amends = {...}}; }
//   REGISTER_RECIPE_FAULT(Info);
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "harness/protocol/description.h"
#include "harness/protocol/plan.h"

namespace trainwreck {

class Injector;
class EventSink;
struct Clock;

// What an injector may know about its run. The objects behind the pointers outlive it.
struct InjectorContext {
  const Clock* clock = nullptr;
  EventSink* events = nullptr;
  int rank = 0;
  int world_size = 1;
  std::uint64_t seed = 0;
  const Recipe* recipe = nullptr;  // of the plan
  std::string checkpoint_dir;
};

using InjectorFactory = std::unique_ptr<Injector> (*)(PlannedFault, InjectorContext);

struct RegisteredFault {
  FaultInfo info;
  InjectorFactory make = nullptr;  // null: a fault of the recipe, performed by the harness
};

// All faults that are linked in, by name.
const std::map<std::string, RegisteredFault>& FaultRegistry();

// Called before main, once per fault; aborts with a message when the fault is malformed: a name
// that is not `site.fault` or is taken, or a class where there are amendments (or neither).
bool RegisterFault(FaultInfo info, InjectorFactory make);

#define REGISTER_RECIPE_FAULT(info) \
  [[maybe_unused]] static const bool registered_fault = ::trainwreck::RegisterFault(info(), nullptr)

}  // namespace trainwreck
