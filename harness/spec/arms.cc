#include "harness/spec/arms.h"

#include <algorithm>
#include <utility>

namespace trainwreck {
namespace {

// A draw of control with other roundings.
InjectedFault RoundingFault(int draw, const TargetDescription& target) {
  InjectedFault fault;
  fault.id = "rounding";
  fault.fault = kRoundingFault;
  if (const FaultInfo* info = target.FindFault(kRoundingFault)) {
    for (const ParamInfo& param : info->params) {
      if (!param.default_value.is_null()) fault.with[param.name] = param.default_value;
    }
  }
  fault.with["draw"] = draw;
  return fault;
}

class ArmList {
 public:
  ArmList(const Scenario& scenario, const Point& point, const TargetDescription& target,
          const Changes& overrides)
      : scenario_(scenario),
        point_(point),
        target_(target),
        healthy_(ResolveRecipe(target, scenario, point, overrides)) {}

  std::vector<Arm> Take() && {
    Add("control", ArmKind::kControl, {}, {});
    AddFaulty();
    if (scenario_.has_reference) {
      Add("reference", ArmKind::kReference, {}, {}).phases = {{"train", std::nullopt}};
    }
    AddTwins();
    return std::move(arms_);
  }

 private:
  void AddFaulty() {
    const std::vector<InjectedFault>& faults = scenario_.faults;
    if (!faults.empty()) Add("fault", ArmKind::kFault, faults, {});
    for (const Remedy& remedy : scenario_.remedies) {
      if (!AppliesTo(remedy.when, point_)) continue;
      Add(remedy.name, ArmKind::kRemedy, faults, remedy.changes).remedy = &remedy;
    }
    for (const Decoy& decoy : scenario_.decoys) {
      if (!AppliesTo(decoy.when, point_)) continue;
      Add(decoy.name, ArmKind::kDecoy, faults, decoy.changes).decoy = &decoy;
    }
  }

  // Each twin; control with other roundings, where a check asks for them; and each bug in control
  // and in the twins that must show it.
  void AddTwins() {
    if (scenario_.twins.empty()) return;
    std::vector<const Twin*> twins;
    for (const Twin& twin : scenario_.twins) {
      if (AppliesTo(twin.when, point_)) twins.push_back(&twin);
    }
    for (const Twin* twin : twins) AddTwin(twin->name, ArmKind::kTwin, {}, *twin);
    for (int draw = 1; draw <= kRoundingDraws && ReadsRounding(scenario_, point_); ++draw) {
      Add(formula::kRoundingArm + std::to_string(draw), ArmKind::kRounding,
          {RoundingFault(draw, target_)}, {});
    }
    for (const Bug& bug : scenario_.bugs) {
      if (!AppliesTo(bug.when, point_)) continue;
      const std::string& name = bug.fault.id;
      if (!bug.only_in_twins) Add(name, ArmKind::kBug, {bug.fault}, {}).bug = &bug;
      for (const Twin* twin : twins) {
        if (std::count(bug.twins.begin(), bug.twins.end(), twin->name) == 0) continue;
        AddTwin(name + "_in_" + twin->name, ArmKind::kBug, {bug.fault}, *twin).bug = &bug;
      }
    }
  }

  Arm& AddTwin(const std::string& name, ArmKind kind, std::vector<InjectedFault> faults,
               const Twin& twin) {
    if (twin.fault) faults.push_back(*twin.fault);
    Arm& arm = Add(name, kind, faults, twin.changes);
    arm.twin = &twin;
    if (!twin.phases.empty()) arm.phases = twin.phases;
    return arm;
  }

  Arm& Add(const std::string& name, ArmKind kind, const std::vector<InjectedFault>& faults,
           const Changes& changes) {
    Arm arm;
    arm.name = name;
    arm.kind = kind;
    arm.faults = faults;
    arm.recipe = healthy_;
    arm.phases = scenario_.phases;
    for (InjectedFault& fault : arm.faults) {
      fault.with = ParametersAt(fault, point_);
      const FaultInfo* info = target_.FindFault(fault.fault);
      if (info == nullptr) continue;
      for (const AmendedKey& amended : Amend(*info, fault.with, arm.recipe)) {
        arm.amendments.push_back(
            {fault.id, fault.fault, amended.key, amended.before, amended.after});
      }
    }
    Apply(changes, arm.recipe);
    arms_.push_back(std::move(arm));
    return arms_.back();
  }

  const Scenario& scenario_;
  const Point& point_;
  const TargetDescription& target_;
  const Recipe healthy_;
  std::vector<Arm> arms_;
};

}  // namespace

std::map<std::string, Json> ParametersAt(const InjectedFault& fault, const Point& point) {
  std::map<std::string, Json> with = fault.with;
  if (const auto found = point.with.find(fault.id); found != point.with.end()) {
    for (const auto& [name, value] : found->second) with[name] = value;
  }
  return with;
}

std::vector<Arm> ArmsAt(const Scenario& scenario, const Point& point,
                        const TargetDescription& target, const Changes& overrides) {
  return ArmList(scenario, point, target, overrides).Take();
}

}  // namespace trainwreck
