// The arms of a scenario at a point of its matrix, each with its recipe. Validation and the plan
// both take them from here, so what was checked is what is run.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/outcome/outcome.h"
#include "harness/protocol/description.h"
#include "harness/protocol/plan.h"
#include "harness/spec/scenario.h"

namespace trainwreck {

// The change that a fault of the recipe made.
struct AppliedAmendment {
  std::string fault_id;
  std::string fault;
  std::string key;
  Json before;
  Json after;
};

// It points into its scenario and must not outlive it.
struct Arm {
  std::string name;
  ArmKind kind = ArmKind::kControl;
  const Remedy* remedy = nullptr;     // of remedy arms
  const Decoy* decoy = nullptr;       // of decoy arms
  const Twin* twin = nullptr;         // of twin arms, and of bug arms that are not their control
  const Bug* bug = nullptr;           // of bug arms
  std::vector<InjectedFault> faults;  // with the point's parameters
  // defaults < scenario < point < overrides < faults of the recipe < remedy, decoy or twin
  Recipe recipe;
  std::vector<AppliedAmendment> amendments;  // made by faults of the recipe, in order
  std::vector<Phase> phases;
};

// The arms: control first, then the scenario's, in its order: fault, remedies, decoys, reference,
// twins, roundings, bugs.
std::vector<Arm> ArmsAt(const Scenario& scenario, const Point& point,
                        const TargetDescription& target, const Changes& overrides = {});

// The parameters of a fault at a point.
std::map<std::string, Json> ParametersAt(const InjectedFault& fault, const Point& point);

}  // namespace trainwreck
