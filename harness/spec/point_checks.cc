#include "harness/spec/point_checks.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "harness/protocol/recipe_view.h"
#include "harness/spec/arms.h"
#include "harness/spec/parts_reader.h"
#include "harness/spec/references.h"
#include "harness/text/nearest.h"

namespace trainwreck {
namespace {

// Stands for a recipe that has errors of its own: nothing is outside of it.
constexpr int kUnknownSteps = 1 << 30;
constexpr int kUnknownRanks = 4096;

int CountOf(const Recipe& recipe, const char* key, int fallback) {
  const int value = RecipeView(recipe).Int(key).value_or(-1);
  return value >= 0 && value <= kUnknownSteps ? value : fallback;
}

// Errors that depend on the point: said once, with the first point where it is not all of them.
class PointErrors {
 public:
  void Add(const std::string& point, int source, Position position, std::string message,
           std::string hint) {
    for (Found& found : found_) {
      if (found.source == source && found.position.line == position.line &&
          found.position.column == position.column && found.message == message) {
        if (found.points.back() != point) found.points.push_back(point);
        return;
      }
    }
    found_.push_back({source, position, std::move(message), std::move(hint), {point}});
  }

  void Report(std::size_t point_count, Errors& errors) {
    for (Found& found : found_) {
      if (found.points.size() < point_count) {
        found.message += " (at point '" + found.points.front() + "'" +
                         (found.points.size() > 1 ? " and others)" : ")");
      }
      errors.Add(found.source, found.position, std::move(found.message), std::move(found.hint));
    }
  }

 private:
  struct Found {
    int source;
    Position position;
    std::string message;
    std::string hint;
    std::vector<std::string> points;
  };
  std::vector<Found> found_;
};

class PointChecks {
 public:
  PointChecks(const Draft& draft, const TargetDescription& target, Errors& errors)
      : draft_(draft), scenario_(draft.scenario), target_(target), errors_(errors) {}

  int Run() {
    for (const Point& point : scenario_.points) CheckPoint(point);
    at_points_.Report(scenario_.points.size(), errors_);
    return largest_ranks_;
  }

 private:
  using Path = std::vector<std::string>;

  const YamlNode& At(const Path& path) const { return Locate(*draft_.root, path); }

  void Complain(const Point& point, const YamlNode& at, std::string message,
                std::string hint = "") {
    at_points_.Add(point.name, at.source, at.position, std::move(message), std::move(hint));
  }

  // Of what is wrong for the value of a recipe key. Where the scenario leaves that value to the
  // target, it was not written for it: then it is no mistake, but cannot be run.
  void ComplainOfValue(const Point& point, const std::string& key, const YamlNode& at,
                       std::string message, std::string hint = "") {
    NoticeMisfit(point, key);
    Complain(point, at, std::move(message), std::move(hint));
  }

  void NoticeMisfit(const Point& point, const std::string& key) {
    const auto is_set = [&](const Changes& changes) {
      return std::any_of(changes.set.begin(), changes.set.end(),
                         [&](const auto& change) { return change.first == key; });
    };
    if (target_.level >= 2 || is_set(scenario_.recipe) || is_set(point.changes)) return;
    errors_.AddUnserved(std::string(kValuePrefix) + key);
  }

  struct Extent {
    int steps = kUnknownSteps;
    int ranks = kUnknownRanks;
    bool operator==(const Extent&) const = default;
  };

  Extent ExtentOf(const Recipe& recipe) const {
    if (!draft_.is_recipe_sound) return {};
    return {CountOf(recipe, kStepsKey, kUnknownSteps),
            std::max(CountOf(recipe, kRanksKey, 1), CountOf(recipe, kResumeRanksKey, 0))};
  }

  void CheckPoint(const Point& point) {
    const std::vector<Arm> arms = ArmsAt(scenario_, point, target_);
    const Recipe& healthy = arms.front().recipe;
    const Extent extent = ExtentOf(healthy);
    if (draft_.is_recipe_sound) {
      CheckComplete(point, healthy);
      for (const auto& [key, factor] : point.changes.scale) {
        CheckScaled(point, {{}, {{key, factor}}}, healthy, AxisOf(point, key));
      }
      largest_ranks_ = std::max(largest_ranks_, extent.ranks);
    }
    CheckFormulas(point, extent, "");
    CheckPhases(point, scenario_.phases, {"phases"}, extent);
    CheckRounding(point);
    const Arm* faulty = &arms.front();
    Extent widest = extent;
    for (const Arm& arm : arms) {
      if (arm.kind == ArmKind::kFault) faulty = &arm;
      if (arm.kind == ArmKind::kTwin) {
        widest.ranks = std::max(widest.ranks, ExtentOf(arm.recipe).ranks);
      }
    }
    for (const Arm& arm : arms) CheckArm(point, arm, faulty->recipe, extent, widest);
  }

  void CheckRounding(const Point& point) {
    if (!ReadsRounding(scenario_, point) || target_.FindFault(kRoundingFault) != nullptr) return;
    if (target_.level < 2) errors_.AddUnserved(std::string("fault:") + kRoundingFault);
    Complain(point, At({"agree"}),
             std::string("the target cannot show what rounding does: it has no fault '") +
                 kRoundingFault + "'",
             "state a tolerance: within: 1e-4");
  }

  // `extent`: of control; `widest`: with the most ranks that a twin has.
  void CheckArm(const Point& point, const Arm& arm, const Recipe& faulty, const Extent& extent,
                const Extent& widest) {
    switch (arm.kind) {
      case ArmKind::kFault:
        for (const InjectedFault& fault : arm.faults) {
          CheckFault(point, {"inject", fault.id}, fault, extent, arm.amendments);
        }
        CheckExtent(point, arm, extent);
        break;
      case ArmKind::kRemedy:
        CheckChanges(point, {"remedies", arm.name}, arm, arm.remedy->changes, faulty, extent);
        break;
      case ArmKind::kDecoy:
        CheckChanges(point, {"decoys", arm.name}, arm, arm.decoy->changes, faulty, extent);
        break;
      case ArmKind::kTwin:
        CheckTwin(point, arm, extent);
        break;
      case ArmKind::kBug:
        if (arm.twin != nullptr && !arm.bug->only_in_twins) break;  // was checked by itself
        CheckFault(point, {"must_notice", arm.bug->fault.id}, arm.faults.front(), widest,
                   arm.amendments);
        CheckKeysOfBug(point, *arm.bug);
        break;
      case ArmKind::kControl:
      case ArmKind::kReference:
      case ArmKind::kRounding:
        break;
    }
  }

  void CheckTwin(const Point& point, const Arm& arm, const Extent& control) {
    const Path path = {"twins", arm.name};
    const Extent own = draft_.is_recipe_sound ? ExtentOf(arm.recipe) : control;
    CheckPhases(point, arm.twin->phases, {"twins", arm.name, "phases"}, own);
    if (!draft_.is_recipe_sound) return;
    CheckScaled(point, arm.twin->changes, arm.recipe, path);
    CheckExtent(point, arm, control);
    for (const InjectedFault& fault : arm.faults) {
      CheckFault(point, path, fault, own, arm.amendments);
    }
  }

  // What a twin sets comes last, so it would take the bug out again.
  void CheckKeysOfBug(const Point& point, const Bug& bug) {
    const FaultInfo* info = target_.FindFault(bug.fault.fault);
    if (info == nullptr) return;
    for (const Amendment& amendment : info->amends) {
      const auto is_key = [&](const auto& change) { return change.first == amendment.key; };
      for (const Twin& twin : scenario_.twins) {
        const bool is_shown = std::count(bug.twins.begin(), bug.twins.end(), twin.name) > 0 &&
                              std::any_of(twin.changes.set.begin(), twin.changes.set.end(), is_key);
        if (!is_shown) continue;
        Complain(point, At({"must_notice", bug.fault.id}),
                 "fault '" + bug.fault.id + "' and twin '" + twin.name + "' both change '" +
                     amendment.key + "'",
                 "the twin's value would take the fault out again; leave it out with 'in'");
      }
    }
  }

  void CheckComplete(const Point& point, const Recipe& recipe) {
    for (const ParamInfo& info : target_.recipe) {
      if (!recipe.at(info.name).is_null()) continue;
      Complain(point, At({"recipe"}), "the recipe lacks '" + info.name + "'",
               "the target has no default for it");
    }
  }

  void CheckScaled(const Point& point, const Changes& changes, const Recipe& result, Path path) {
    path.push_back("scale");
    for (const auto& [key, factor] : changes.scale) {
      const ParamInfo* info = target_.FindRecipeKey(key);
      const std::string wrong = info == nullptr ? "" : CheckValue(*info, result.at(key));
      if (wrong.empty()) continue;
      Path place = path;
      place.push_back(key);
      ComplainOfValue(point, key, At(place),
                      "'" + key + "' becomes " + result.at(key).dump() + ", but " + wrong);
    }
  }

  // The part of the matrix that scales `key` at this point.
  Path AxisOf(const Point& point, const std::string& key) const {
    const YamlNode& matrix = *draft_.root->Find("matrix");
    const std::string names = "-" + point.name + "-";
    for (std::size_t i = 0; i < matrix.keys.size(); ++i) {
      for (const YamlNode& name : matrix.items[i].keys) {
        Path path = {"matrix", matrix.keys[i].text, name.text};
        const bool is_here = names.find("-" + name.text + "-") != std::string::npos;
        if (is_here && &At({path[0], path[1], path[2], "scale", key}) != &At(path)) return path;
      }
    }
    return {"matrix"};
  }

  void CheckChanges(const Point& point, const Path& path, const Arm& arm, const Changes& changes,
                    const Recipe& faulty, const Extent& extent) {
    if (!draft_.is_recipe_sound) return;
    CheckScaled(point, changes, arm.recipe, path);
    if (arm.recipe == faulty && !(changes.set.empty() && changes.scale.empty())) {
      const auto& change =
          changes.set.empty() ? changes.scale.front().first : changes.set.front().first;
      ComplainOfValue(point, change, At(path),
                      "'" + arm.name + "' changes nothing: the recipe says so already");
    }
    CheckExtent(point, arm, extent);
  }

  // An arm that is longer or wider than control is checked with its own extent, too.
  void CheckExtent(const Point& point, const Arm& arm, const Extent& control) {
    if (!draft_.is_recipe_sound) return;
    const Extent extent = ExtentOf(arm.recipe);
    if (extent != control) CheckFormulas(point, extent, " (in arm '" + arm.name + "')");
    largest_ranks_ = std::max(largest_ranks_, extent.ranks);
  }

  void CheckPhases(const Point& point, const std::vector<Phase>& phases, const Path& path,
                   const Extent& extent) {
    for (std::size_t i = 0; i < phases.size(); ++i) {
      if (!phases[i].until) continue;
      const bool is_last = i + 1 == phases.size();
      const int until = *phases[i].until;
      Path place = path;
      place.insert(place.end(), {std::to_string(i), "until"});
      const YamlNode& at = At(place);
      if (until > extent.steps || (!is_last && until == extent.steps)) {
        ComplainOfValue(point, kStepsKey, at,
                        "the run ends after " + std::to_string(extent.steps) + " steps");
      } else if (is_last && until < extent.steps && extent.steps < kUnknownSteps) {
        ComplainOfValue(point, kStepsKey, at,
                        "the last phase must go on to the end, after " +
                            std::to_string(extent.steps) + " steps",
                        "leave its 'until' out, or change 'steps'");
      }
    }
  }

  // `path`: of its entry, {"inject", "hot_lr"}. `amendments`: of its arm.
  void CheckFault(const Point& point, const Path& path, const InjectedFault& fault,
                  const Extent& extent, const std::vector<AppliedAmendment>& amendments) {
    const FaultInfo* info = target_.FindFault(fault.fault);
    CheckTrigger(point, path, fault, extent);
    if (info == nullptr) return;
    if (extent.ranks < info->min_ranks) {
      Complain(point, At({path[0], path[1], "fault"}),
               "fault '" + info->name + "' needs " + std::to_string(info->min_ranks) +
                   " ranks, the run has " + std::to_string(extent.ranks),
               "set parallel.ranks in the recipe");
    }
    for (const ParamInfo& param : info->params) {
      if (fault.with.contains(param.name)) continue;
      Complain(point, At({path[0], path[1], "with"}),
               "fault '" + fault.id + "' lacks the parameter '" + param.name + "'",
               "add with: {" + param.name + ": ...}" + (param.doc.empty() ? "" : "; " + param.doc));
    }
    if (!draft_.is_recipe_sound) return;
    for (const AppliedAmendment& change : amendments) {
      const ParamInfo* key = target_.FindRecipeKey(change.key);
      const std::string wrong = key == nullptr ? "" : CheckValue(*key, change.after);
      if (change.fault_id != fault.id || wrong.empty()) continue;
      ComplainOfValue(point, change.key, At({path[0], path[1], "fault"}),
                      "fault '" + fault.id + "' makes '" + change.key + "' " + change.after.dump() +
                          ", but it " + wrong);
    }
  }

  void CheckTrigger(const Point& point, const Path& path, const InjectedFault& fault,
                    const Extent& extent) {
    // A checkpoint is named by the steps done, so the last one bears the number of all steps.
    const bool counts_done_steps = fault.fault.rfind("checkpoint.", 0) == 0;
    const int last = counts_done_steps ? extent.steps : extent.steps - 1;
    const std::pair<const char*, std::optional<int>> steps[] = {
        {"at", fault.trigger.at}, {"from", fault.trigger.from}, {"to", fault.trigger.to}};
    for (const auto& [key, step] : steps) {
      if (!step || *step <= last) continue;
      ComplainOfValue(
          point, kStepsKey, At({path[0], path[1], key}),
          std::string("'") + key + "' is after the run's last step, " + std::to_string(last));
    }
    for (int rank : fault.trigger.ranks) {
      if (rank < extent.ranks) continue;
      const bool is_alone = target_.level < 2 && target_.FindRecipeKey(kRanksKey) == nullptr;
      if (is_alone) errors_.AddUnserved(std::string("recipe:") + kRanksKey);
      Complain(point, LocateEntry(*draft_.root, {path[0], path[1], "ranks"}, std::to_string(rank)),
               "there is no rank " + std::to_string(rank) + ": the run has " +
                   std::to_string(extent.ranks) + (extent.ranks == 1 ? " rank" : " ranks"),
               "set parallel.ranks in the recipe");
    }
  }

  // Formulas.

  void CheckFormulas(const Point& point, const Extent& extent, const std::string& suffix) {
    for (const Check& check : scenario_.healthy) {
      CheckFormula(point, check, "healthy." + check.name, false, extent, suffix);
    }
    for (const Check& check : scenario_.symptoms) {
      CheckFormula(point, check, "symptoms." + check.name, false, extent, suffix);
    }
    for (const Check& check : scenario_.agree) {
      CheckFormula(point, check, "agree." + check.name, false, extent, suffix);
    }
    if (scenario_.quality) {
      CheckFormula(point, *scenario_.quality, "quality", true, extent, suffix);
    }
  }

  void CheckFormula(const Point& point, const Check& check, const std::string& path,
                    bool may_see_fault, const Extent& extent, const std::string& suffix) {
    if (!AppliesTo(check.when, point)) return;
    const FormulaPlace& place = draft_.formulas.at(path);
    const YamlNode& node = *place.node;
    const bool arms_are_sound = CheckArms(point, check, node, may_see_fault);
    formula::Vocabulary vocabulary;
    vocabulary.target = &target_;
    // What is mentioned but must not be used here has had its own error.
    vocabulary.arms = {"control"};
    const std::set<std::string> mentioned = check.formula.arms();
    if (may_see_fault || mentioned.contains("fault")) vocabulary.arms.insert("fault");
    if (scenario_.has_reference || mentioned.contains("reference")) {
      vocabulary.arms.insert("reference");
    }
    NoticeUnserved(check);
    vocabulary.planned_steps = extent.steps;
    vocabulary.world_size = extent.ranks;
    vocabulary.has_rounding = path.rfind("agree.", 0) == 0;
    vocabulary.fault_ids.insert(draft_.fault_ids.begin(), draft_.fault_ids.end());
    const bool is_symptom = path.rfind("symptoms.", 0) == 0;
    const std::vector<std::string>& names =
        is_symptom ? draft_.symptom_names : draft_.healthy_names;
    vocabulary.checks.insert(names.begin(), names.end());
    const std::vector<formula::FormulaError> wrong = WhatIsWrong(check, vocabulary, arms_are_sound);
    if (!wrong.empty()) {
      vocabulary.planned_steps = kUnknownSteps;
      if (WhatIsWrong(check, vocabulary, arms_are_sound).empty()) NoticeMisfit(point, kStepsKey);
    }
    for (const formula::FormulaError& error : wrong) {
      if (IsToldElsewhere(point, ReferenceAt(place, error.begin, error.end))) continue;
      const Position position = PlaceOf(place, error.begin, error.end, errors_);
      at_points_.Add(point.name, node.source, position, error.message + suffix, error.hint);
    }
  }

  static std::vector<formula::FormulaError> WhatIsWrong(const Check& check,
                                                        const formula::Vocabulary& vocabulary,
                                                        bool arms_are_sound) {
    std::vector<formula::FormulaError> wrong = check.formula.Check(vocabulary);
    if (wrong.empty() && arms_are_sound) wrong = WhatIsVacuous(check, vocabulary);
    return wrong;
  }

  // A mistake in a check that another one names is told where it was made.
  bool IsToldElsewhere(const Point& point, const std::string& reference) const {
    const auto tells = [&](const Check& check) {
      return check.name == reference && AppliesTo(check.when, point);
    };
    return std::any_of(scenario_.symptoms.begin(), scenario_.symptoms.end(), tells) ||
           std::any_of(scenario_.healthy.begin(), scenario_.healthy.end(), tells);
  }

  // What would hold, or fail, whatever the run does.
  static std::vector<formula::FormulaError> WhatIsVacuous(const Check& check,
                                                          const formula::Vocabulary& vocabulary) {
    std::vector<formula::FormulaError> found = check.formula.FindVacuous(vocabulary);
    if (found.empty() && !check.formula.reads_own_run()) {
      found.push_back({0, check.formula.text().size(),
                       "this reads other arms only, and says nothing of the run that it is "
                       "checked in",
                       "name a signal of the run itself, without an arm before it"});
    }
    return found;
  }

  // A signal or event that only a target of a higher level has.
  void NoticeUnserved(const Check& check) {
    if (target_.level >= 2) return;
    std::vector<std::string> known;
    for (const SignalInfo& info : target_.signals) known.push_back(info.name);
    for (std::string name : check.formula.signals()) {
      name = name.substr(0, name.find('{'));
      if (target_.FindSignal(name) == nullptr && NearestName(name, known).empty()) {
        errors_.AddUnserved("signal:" + name);
      }
    }
    known.clear();
    for (const EventInfo& info : target_.events) known.push_back(info.name);
    for (const std::string& name : check.formula.events()) {
      if (target_.FindEvent(name) == nullptr && NearestName(name, known).empty()) {
        errors_.AddUnserved("event:" + name);
      }
    }
  }

  bool CheckArms(const Point& point, const Check& check, const YamlNode& node, bool may_see_fault) {
    bool sound = true;
    const auto complain = [&](const std::string& arm, std::string message, std::string hint) {
      sound = false;
      const std::size_t found = node.text.find(arm + ".");
      const std::size_t begin = found == std::string::npos ? 0 : found;
      at_points_.Add(point.name, node.source,
                     PlaceInFormula(node, begin, begin + arm.size(), errors_), std::move(message),
                     std::move(hint));
    };
    const std::set<std::string> arms = check.formula.arms();
    if (arms.contains("fault") && !may_see_fault) {
      complain("fault", "'fault.' cannot stand here: this is checked in the control arm, too",
               "only 'quality' may compare with the fault arm");
    }
    if (arms.contains("reference") && !scenario_.has_reference) {
      complain("reference", "the scenario has no reference run",
               "add 'reference: true' for an extra run that is not interrupted");
    }
    return sound;
  }

  const Draft& draft_;
  const Scenario& scenario_;
  const TargetDescription& target_;
  Errors& errors_;
  PointErrors at_points_;
  int largest_ranks_ = 1;
};

}  // namespace

int CheckPoints(const Draft& draft, const TargetDescription& target, Errors& errors) {
  return PointChecks(draft, target, errors).Run();
}

}  // namespace trainwreck
