#include "harness/plan/run.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "harness/plan/device.h"
#include "harness/protocol/digest.h"
#include "harness/protocol/recipe_view.h"

namespace trainwreck {
namespace {

// Relative: 15 * 0.067 undoes a factor of 15, and so does a hair's breadth beside it.
constexpr double kSameValue = 0.02;

bool SameValue(const Json& a, const Json& b) {
  if (!a.is_number() || !b.is_number()) return a == b;
  const double x = a.get<double>(), y = b.get<double>();
  return x == y || std::fabs(x - y) <= kSameValue * std::max(std::fabs(x), std::fabs(y));
}

// A remedy that puts back whatever the fault changed has no fault in it any more, with or without
// other changes: keys that nothing reads cannot make a remedy of it.
bool TakesTheFaultOut(const Arm& arm, const Recipe& control) {
  const auto is_back = [&](const AppliedAmendment& amendment) {
    return SameValue(arm.recipe.at(amendment.key), control.at(amendment.key));
  };
  return !arm.amendments.empty() &&
         std::all_of(arm.amendments.begin(), arm.amendments.end(), is_back);
}

// One set for all arms of a scenario: what is recorded can then not make two arms differ.
std::vector<std::string> AskedBy(const Scenario& scenario, const Point& point,
                                 const TargetDescription& target) {
  std::set<std::string> names;
  ForEachCheck(scenario, [&](const Check& check) {
    if (!AppliesTo(check.when, point)) return;
    for (std::string& name : check.formula.asked(target)) names.insert(std::move(name));
  });
  return {names.begin(), names.end()};
}

// Whether a symptom says how the run ends: a fault may then leave ranks that wait for the others.
bool MayWait(const Scenario& scenario, const Point& point) {
  return std::any_of(scenario.symptoms.begin(), scenario.symptoms.end(), [&](const Check& symptom) {
    return AppliesTo(symptom.when, point) && symptom.formula.mentions_ending();
  });
}

// That the checks of control name, control itself among them.
std::set<std::string> ArmsOfControl(const Scenario& scenario, const Point& point) {
  std::set<std::string> arms = {"control"};
  for (const auto* checks : {&scenario.healthy, &scenario.symptoms}) {
    for (const Check& check : *checks) {
      if (AppliesTo(check.when, point)) arms.merge(check.formula.arms());
    }
  }
  return arms;
}

// That something of `agree` does not hold, as clearly as it has to hold elsewhere.
Check NoticesOf(const Scenario& scenario, const Point& point, const Bug& bug) {
  std::string all;
  std::optional<formula::Amount> min_margin;
  for (const Check& check : scenario.agree) {
    if (!AppliesTo(check.when, point)) continue;
    all += (all.empty() ? "(" : " and (") + check.formula.text() + ")";
    const bool counts = check.min_margin && check.min_margin->unit == formula::Unit::kOctave;
    if (counts && !min_margin) min_margin = check.min_margin;
  }
  Check check{"notices",
              *formula::Formula::Parse("not (" + all + ")").formula,
              min_margin,
              "",
              {},
              bug.fault.position,
              bug.fault.file};
  return check;
}

std::int64_t PhysicalMemoryBytes() {
  return static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGE_SIZE);
}

std::vector<InjectedFault> AllFaults(const Scenario& scenario) {
  std::vector<InjectedFault> faults = scenario.faults;
  for (const Bug& bug : scenario.bugs) faults.push_back(bug.fault);
  for (const Twin& twin : scenario.twins) {
    if (twin.fault) faults.push_back(*twin.fault);
  }
  return faults;
}

std::string SkipReason(const Scenario& scenario, const TargetDescription& target,
                       const PlanOptions& options) {
  if (!scenario.unserved.empty()) return "requires:" + scenario.unserved;
  auto has = [&](const std::string& feature) {
    const auto& beyond = options.available_features;
    return std::count(target.features.begin(), target.features.end(), feature) > 0 ||
           std::count(beyond.begin(), beyond.end(), feature) > 0;
  };
  const Requirements& needs = scenario.requires_;
  if (needs.ranks > 1) {
    const ParamInfo* ranks = target.FindRecipeKey(kRanksKey);
    if (ranks == nullptr || (ranks->max && *ranks->max < needs.ranks)) {
      return "requires:ranks:" + std::to_string(needs.ranks);
    }
  }
  for (const std::string& device : needs.devices) {
    if (!has("device:" + device)) return "requires:device:" + device;
  }
  for (const std::string& feature : needs.features) {
    if (!has(feature)) return "requires:" + feature;
  }
  for (const InjectedFault& fault : AllFaults(scenario)) {
    const FaultInfo* info = target.FindFault(fault.fault);
    if (info == nullptr) continue;
    for (const std::string& feature : info->features) {
      if (!has(feature)) return "requires:" + feature;
    }
  }
  const bool has_phases = scenario.phases.size() > 1 ||
                          std::any_of(scenario.twins.begin(), scenario.twins.end(),
                                      [](const Twin& twin) { return twin.phases.size() > 1; });
  // A target of level 2 is trusted to know what phases are.
  if (has_phases && target.level < 2) {
    for (const char* feature : {"phases", "resume"}) {
      if (!has(feature)) return std::string("requires:") + feature;
    }
  }
  if (needs.memory_bytes > PhysicalMemoryBytes()) {
    return "requires:memory:" + std::to_string(needs.memory_bytes >> 20) + "MiB";
  }
  return "";
}

// What a fault of the recipe does is part of the question: its file may say something else
// tomorrow.
std::string DigestWithFaults(const std::string& claims, const Scenario& scenario,
                             const TargetDescription& target) {
  Json amends = Json::array();
  for (const InjectedFault& fault : AllFaults(scenario)) {
    const FaultInfo* info = target.FindFault(fault.fault);
    if (info == nullptr) continue;
    for (const Amendment& amendment : info->amends) {
      const bool is_scale = amendment.op == Amendment::Op::kScale;
      amends.push_back({fault.id, amendment.key, is_scale, amendment.param, amendment.value});
    }
  }
  return amends.empty() ? claims : DigestText(claims + amends.dump());
}

// Builds the arms of one case.
class CasePlanner {
 public:
  CasePlanner(const Case& planned, const TargetDescription& target, const PlanOptions& options)
      : case_(planned),
        scenario_(*planned.scenario),
        point_(*planned.point),
        target_(target),
        options_(options),
        seed_count_(planned.seed_count),
        first_seed_(planned.first_seed),
        record_(AskedBy(scenario_, point_, target)),
        may_wait_(MayWait(scenario_, point_)) {}

  std::vector<ArmPlan> Arms() const {
    std::vector<ArmPlan> arms;
    const std::vector<Arm> resolved = ArmsAt(scenario_, point_, target_, options_.overrides);
    for (const Arm& arm : resolved) arms.push_back(PlanOf(arm, resolved.front().recipe));
    AddInvariants(arms);
    if (options_.control_only) {
      const std::set<std::string> kept = ArmsOfControl(scenario_, point_);
      std::erase_if(arms, [&](const ArmPlan& arm) { return !kept.contains(arm.name); });
    }
    return arms;
  }

 private:
  // Rounding and bug arms are left out: they say how far twins may be apart, not what is right.
  void AddInvariants(std::vector<ArmPlan>& arms) const {
    if (scenario_.invariants == nullptr) return;
    std::set<std::string> signals(record_.begin(), record_.end());
    for (ArmPlan& arm : arms) {
      if (arm.kind == ArmKind::kRounding || arm.kind == ArmKind::kBug || arm.runs.empty()) continue;
      const Run& run = arm.runs.front();
      const Twin* twin = arm.twin.get();
      for (const Invariant& invariant : *scenario_.invariants) {
        if (twin != nullptr && std::count(twin->waives.begin(), twin->waives.end(), invariant.name))
          continue;
        const std::optional<formula::Formula> asked =
            AskedOf(invariant, run.plan.recipe, run.later_changes, target_);
        if (!asked) continue;
        arm.invariants.push_back(
            {{invariant.name, *asked, std::nullopt, "", {}, invariant.position, invariant.file},
             invariant.title,
             invariant.part});
        for (std::string& name : asked->asked(target_)) signals.insert(std::move(name));
      }
    }
    for (ArmPlan& arm : arms) {
      for (Run& run : arm.runs) run.plan.record = {signals.begin(), signals.end()};
    }
  }

  ArmPlan PlanOf(const Arm& arm, const Recipe& healthy) const {
    ArmPlan plan;
    plan.name = arm.name;
    plan.kind = arm.kind;
    plan.faults = arm.faults;
    if (arm.remedy != nullptr) plan.remedy = {case_.scenario, arm.remedy};
    if (arm.decoy != nullptr) plan.decoy = {case_.scenario, arm.decoy};
    if (arm.twin != nullptr) plan.twin = {case_.scenario, arm.twin};
    if (arm.bug != nullptr && arm.twin != nullptr) {
      if (!arm.bug->only_in_twins) plan.control = arm.bug->fault.id;
      plan.notices = std::make_shared<const Check>(NoticesOf(scenario_, point_, *arm.bug));
    }
    const std::vector<PlannedFault> in_target = InTarget(arm.faults);
    if (arm.remedy != nullptr) {
      plan.is_undo = arm.remedy->is_undo || (in_target.empty() && TakesTheFaultOut(arm, healthy));
      if (plan.is_undo) return plan;
    }
    for (int seed = 0; seed < seed_count_; ++seed) {
      Run run = NewRun(arm, seed);
      run.plan.faults = in_target;
      Finish(run, healthy);
      if (may_wait_ && !arm.faults.empty()) run.may_wait_seconds = run.policy.stall_seconds;
      plan.runs.push_back(std::move(run));
    }
    return plan;
  }

  // The others are performed: they have changed the recipe.
  std::vector<PlannedFault> InTarget(const std::vector<InjectedFault>& faults) const {
    std::vector<PlannedFault> in_target;
    for (const InjectedFault& fault : faults) {
      const FaultInfo* info = target_.FindFault(fault.fault);
      if (info != nullptr && !info->amends.empty()) continue;
      in_target.push_back({fault.id, fault.fault, fault.with, fault.trigger});
    }
    return in_target;
  }

  Run NewRun(const Arm& arm, int seed) const {
    Run run;
    run.scenario = scenario_.name;
    run.point = point_.name;
    run.arm = arm.name;
    run.kind = arm.kind;
    run.seed = seed;
    run.id = scenario_.name + (point_.name.empty() ? "" : "/" + point_.name) + "/" + arm.name +
             "/" + std::to_string(first_seed_ + seed);
    SetPhases(run, arm.phases);
    run.plan.recipe = arm.recipe;
    run.amendments = arm.amendments;
    return run;
  }

  // What follows from the recipe and the phases. `healthy`: control's recipe.
  void Finish(Run& run, const Recipe& healthy) const {
    Plan& plan = run.plan;
    plan.run = run.id;
    plan.scenario = run.scenario;
    plan.point = run.point;
    plan.arm = run.arm;
    plan.seed = static_cast<std::uint64_t>(first_seed_) + (scenario_.repeats_seed ? 0 : run.seed);
    plan.record = record_;
    run.device =
        PickDevice(plan.recipe, scenario_.requires_, target_, options_.available_features).kind;
    if (!run.device.empty()) plan.recipe[kDeviceKey] = run.device;
    if (run.phases.front().is_shared) ShareFirst(run, healthy);
    run.policy.seconds = scenario_.budget.seconds;
    run.policy.has_seconds = scenario_.budget.has_seconds;
    run.policy.stall_seconds = scenario_.budget.stall_seconds;
    run.policy.has_stall_seconds = scenario_.budget.has_stall_seconds;
    TakeFromRecipe(run, target_);
  }

  // Checkpoints of programs that know nothing of phases may hold the names of their folders.
  void ShareFirst(Run& run, Recipe first) const {
    if (!run.device.empty()) first[kDeviceKey] = run.device;
    for (const auto& [key, value] : run.plan.recipe) {
      if (first.at(key) != value) run.later_changes[key] = value;
    }
    run.first_recipe = std::make_shared<const Recipe>(std::move(first));
    run.copies_first_phase = target_.level >= 2;
  }

  const Case& case_;
  const Scenario& scenario_;
  const Point& point_;
  const TargetDescription& target_;
  const PlanOptions& options_;
  int seed_count_;
  int first_seed_;
  std::vector<std::string> record_;
  bool may_wait_;
};

// Lists the devices that the case's runs get; skips it when one of them is not there.
void PlaceOnDevices(Case& planned, const TargetDescription& target, const PlanOptions& options) {
  for (const ArmPlan& arm : planned.arms) {
    for (const Run& run : arm.runs) {
      const DevicePick pick = PickDevice(run.plan.recipe, planned.scenario->requires_, target,
                                         options.available_features);
      if (!pick.lacking.empty()) {
        planned.skip_reason = "requires:" + pick.lacking;
        planned.arms.clear();
        planned.devices.clear();
        return;
      }
      const bool listed = std::count(planned.devices.begin(), planned.devices.end(), pick.kind) > 0;
      if (!listed && !pick.kind.empty()) planned.devices.push_back(pick.kind);
    }
  }
}

}  // namespace

void SetArm(Run& run, const std::string& name) {
  const std::size_t slash = run.id.rfind('/');  // before the seed
  run.arm = run.plan.arm = name;
  run.id = run.id.substr(0, slash) + "/" + name + run.id.substr(slash);
  run.plan.run = run.id;
}

void SetPhases(Run& run, std::vector<Phase> phases) {
  run.phases = std::move(phases);
  if (run.phases.empty()) run.phases = {{"train", std::nullopt}};
  run.plan.phase = run.phases.front().name;
  run.plan.until = run.phases.front().until;
  run.first_recipe = nullptr;
  run.copies_first_phase = false;
}

Plan FirstPlan(const Run& run) {
  Plan plan = run.plan;
  if (run.first_recipe == nullptr) return plan;
  plan.recipe = *run.first_recipe;
  plan.faults.clear();
  return plan;
}

void TakeFromRecipe(Run& run, const TargetDescription& target) {
  const RecipeView recipe(run.plan.recipe, &target);
  run.first_ranks = std::max(1, recipe.Int(kRanksKey).value_or(1));
  run.resume_ranks = std::max(0, recipe.Int(kResumeRanksKey).value_or(0));
  if (run.first_recipe != nullptr) {
    const RecipeView first(*run.first_recipe, &target);
    const int later_ranks = run.first_ranks;
    run.first_ranks = std::max(1, first.Int(kRanksKey).value_or(1));
    if (run.resume_ranks == 0 && later_ranks != run.first_ranks) run.resume_ranks = later_ranks;
  }
  run.ranks = std::max(run.first_ranks, run.resume_ranks);
  run.processes = target.HasFeature("one-process") ? 1 : 0;
  const std::string launcher = recipe.Text(kLauncherKey).value_or("own");
  if (target.level >= 2 && launcher != "own") {
    run.launcher = launcher;
    run.processes = 1;
  }
  run.steps = std::max(0, recipe.Int(kStepsKey).value_or(0));
  run.policy.max_restarts = recipe.Int(kMaxRestartsKey).value_or(0);
  run.policy.backoff_seconds = recipe.Number(kBackoffSecondsKey).value_or(0);
  run.policy.window_seconds = recipe.Number(kWindowSecondsKey).value_or(0);
  if (const double stall = recipe.Number(kStallSecondsKey).value_or(0); stall > 0) {
    run.policy.stall_seconds = stall;
    run.policy.has_stall_seconds = true;
  }
  run.cost = static_cast<double>(run.steps) * run.ranks * static_cast<double>(run.phases.size());
}

std::vector<Case> PlanCases(const std::vector<Scenario>& scenarios, const TargetDescription& target,
                            const PlanOptions& options) {
  std::vector<Case> cases;
  auto add = [&](Case planned) {
    planned.skip_reason = SkipReason(*planned.scenario, target, options);
    if (planned.skip_reason.empty()) {
      planned.arms = CasePlanner(planned, target, options).Arms();
      PlaceOnDevices(planned, target, options);
    }
    cases.push_back(std::move(planned));
  };
  for (const Scenario& given : scenarios) {
    const auto shared = std::make_shared<const Scenario>(given);
    const Scenario& scenario = *shared;
    const int declared = std::max(1, scenario.seed_count);
    for (const Point& point : scenario.points) {
      Case planned;
      planned.scenario = shared;
      planned.point = {shared, &point};
      planned.name = scenario.name + (point.name.empty() ? "" : "[" + point.name + "]");
      planned.digest =
          DigestWithFaults(DigestOfClaims(scenario, point, options.overrides), scenario, target);
      planned.is_control_only = options.control_only;
      planned.seed_count = options.seeds > 0 ? options.seeds : declared;
      // The same share of the seeds, rounded up, when their number is changed.
      planned.seed_require = (planned.seed_count * scenario.seed_require + declared - 1) / declared;
      if (!options.each_seed) {
        add(std::move(planned));
        continue;
      }
      for (int seed = options.each_seed->first; seed < options.each_seed->second; ++seed) {
        Case one = planned;
        one.name += "@" + std::to_string(seed);
        one.first_seed = seed;
        one.is_one_seed = true;
        one.seed_count = one.seed_require = 1;
        add(std::move(one));
      }
    }
  }
  return cases;
}

}  // namespace trainwreck
