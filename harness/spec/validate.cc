#include "harness/spec/validate.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "harness/protocol/recipe_view.h"
#include "harness/spec/claim_checks.h"
#include "harness/spec/defaults.h"
#include "harness/spec/parts_reader.h"
#include "harness/spec/point_checks.h"
#include "harness/text/glob.h"
#include "harness/text/nearest.h"
#include "harness/text/words.h"

namespace trainwreck {
namespace {

namespace fs = std::filesystem;

class Validator {
 public:
  Validator(Draft& draft, const TargetDescription& target, const LoadOptions& options,
            Errors& errors)
      : draft_(draft),
        scenario_(draft.scenario),
        target_(target),
        options_(options),
        errors_(errors) {}

  void Run() {
    if (!draft_.root->IsMap()) return;
    CheckScenarioName();
    CheckNamesOfChecks();
    if (draft_.is_recipe_sound) {
      const std::size_t errors_before = errors_.size();
      CheckWhens();
      if (errors_.size() == errors_before) CheckCoverage();
    }
    CheckPhaseOrder(scenario_.phases, {"phases"});
    for (const Twin& twin : scenario_.twins) {
      CheckPhaseOrder(twin.phases, {"twins", twin.name, "phases"});
    }
    CheckPhasesAreServed();
    const int ranks = CheckPoints(draft_, target_, errors_);
    if (draft_.is_recipe_sound) CheckInvariants();
    CheckMargins();
    CheckClaims(draft_, target_, errors_);
    if (draft_.is_recipe_sound) RequireRanks(ranks);
  }

 private:
  using Path = std::vector<std::string>;

  const YamlNode& At(const Path& path) const { return Locate(*draft_.root, path); }

  const YamlNode& EntryAt(const Path& path, const std::string& text) const {
    return LocateEntry(*draft_.root, path, text);
  }

  void CheckScenarioName() {
    if (!options_.check_name || scenario_.name.empty()) return;
    if (draft_.root->Find("name") == nullptr) return;  // it is the path
    // A file that lies elsewhere has only its own name to be called by.
    const std::string below = NameBelow(scenario_.file, options_.scenarios_root);
    const bool is_inside = !below.empty();
    const std::string wanted = is_inside ? below : fs::path(scenario_.file).stem().string();
    const std::string name = scenario_.name;
    const bool fits = is_inside ? name == wanted : name.substr(name.rfind('/') + 1) == wanted;
    if (!fits) {
      errors_.Add(At({"name"}), "'name' must be the file's path, which is '" + wanted + "'",
                  "rename the file or write name: " + wanted);
    }
  }

  void CheckNames(const Path& path, const std::vector<std::string>& names,
                  const std::vector<std::string>& known, const std::string& what) {
    for (const std::string& name : names) {
      if (std::count(known.begin(), known.end(), name) > 0) continue;
      errors_.Add(EntryAt(path, name), what + " '" + name + "'",
                  NearestName(name, known).empty()
                      ? (known.empty() ? "" : "known: " + Join(known))
                      : "did you mean '" + NearestName(name, known) + "'?");
    }
  }

  void CheckNamesOfChecks() {
    std::vector<std::string> waivable = draft_.healthy_names;
    waivable.push_back("quality");
    waivable.push_back(kSignalsSoundCheck);  // built in, see docs/guide/targets.md
    for (const Remedy& remedy : scenario_.remedies) {
      CheckNames({"remedies", remedy.name, "resolves"}, remedy.resolves, draft_.symptom_names,
                 "the scenario has no symptom");
      CheckNames({"remedies", remedy.name, "waives"}, remedy.waives, waivable,
                 "the scenario has no healthy check");
      const bool waives_quality =
          std::count(remedy.waives.begin(), remedy.waives.end(), "quality") > 0;
      if (waives_quality && draft_.root->Find("quality") == nullptr) {
        errors_.Add(EntryAt({"remedies", remedy.name, "waives"}, "quality"),
                    "the scenario has no quality gate to waive");
      }
    }
    for (const Decoy& decoy : scenario_.decoys) {
      CheckNames({"decoys", decoy.name, "keeps"}, decoy.keeps, draft_.symptom_names,
                 "the scenario has no symptom");
    }
    for (const Bug& bug : scenario_.bugs) {
      CheckNames({"must_notice", bug.fault.id, "in"}, bug.twins, draft_.twin_names,
                 "the scenario has no twin");
    }
    for (const InjectedFault& fault : scenario_.faults) {
      CheckSharedPhase(fault);
      const std::string& phase = fault.trigger.phase;
      if (phase.empty()) continue;
      std::vector<std::string> known;
      for (const Phase& known_phase : scenario_.phases) known.push_back(known_phase.name);
      CheckNames({"inject", fault.id, "phase"}, {phase}, known, "the scenario has no phase");
    }
  }

  void CheckWhen(Path path, const std::vector<std::string>& when) {
    path.push_back("when");
    for (const std::string& glob : when) {
      bool matches = false;
      std::vector<std::string> names;
      for (const Point& point : scenario_.points) {
        matches = matches || GlobMatches(glob, point.name);
        if (!point.name.empty()) names.push_back(point.name);
      }
      if (matches) continue;
      const std::string nearest = NearestName(glob, names);
      errors_.Add(EntryAt(path, glob), "'" + glob + "' matches no point of the matrix",
                  names.empty()        ? "the scenario has no matrix"
                  : !nearest.empty()   ? "did you mean '" + nearest + "'?"
                  : names.size() <= 12 ? "points: " + Join(names)
                                       : "");
    }
  }

  void CheckWhens() {
    for (const Check& check : scenario_.healthy) CheckWhen({"healthy", check.name}, check.when);
    for (const Check& check : scenario_.symptoms) CheckWhen({"symptoms", check.name}, check.when);
    if (scenario_.quality) CheckWhen({"quality"}, scenario_.quality->when);
    for (const Remedy& remedy : scenario_.remedies) {
      CheckWhen({"remedies", remedy.name}, remedy.when);
    }
    for (const Decoy& decoy : scenario_.decoys) CheckWhen({"decoys", decoy.name}, decoy.when);
    for (const Twin& twin : scenario_.twins) CheckWhen({"twins", twin.name}, twin.when);
    for (const Check& check : scenario_.agree) CheckWhen({"agree", check.name}, check.when);
    for (const Bug& bug : scenario_.bugs) CheckWhen({"must_notice", bug.fault.id}, bug.when);
  }

  const Check* FindSymptom(const std::string& name) const {
    for (const Check& check : scenario_.symptoms) {
      if (check.name == name) return &check;
    }
    return nullptr;
  }

  // Somewhere both must be there, or the claim is never tried.
  void CheckMeets(const Path& path, const std::vector<std::string>& when,
                  const std::vector<std::string>& symptoms) {
    for (const std::string& name : symptoms) {
      const Check* symptom = FindSymptom(name);
      if (symptom == nullptr) continue;
      const bool meets =
          std::any_of(scenario_.points.begin(), scenario_.points.end(), [&](const Point& point) {
            return AppliesTo(when, point) && AppliesTo(symptom->when, point);
          });
      if (!meets) {
        errors_.Add(EntryAt(path, name),
                    "symptom '" + name + "' and '" + path[1] + "' apply at no common point");
      }
    }
  }

  static bool IsWrittenOut(const YamlNode* names) { return names != nullptr && !IsAllBut(*names); }

  void CheckCoverage() {
    const bool all_read = scenario_.symptoms.size() == draft_.symptom_names.size();
    if (!all_read) return;
    // A default and "all but" mean the symptoms that there are.
    for (const Remedy& remedy : scenario_.remedies) {
      const YamlNode* node = draft_.root->Find("remedies")->Find(remedy.name);
      if (node != nullptr && IsWrittenOut(node->Find("resolves"))) {
        CheckMeets({"remedies", remedy.name, "resolves"}, remedy.when, remedy.resolves);
      }
    }
    for (const Decoy& decoy : scenario_.decoys) {
      const YamlNode* node = draft_.root->Find("decoys")->Find(decoy.name);
      if (node != nullptr && IsWrittenOut(node->Find("keeps"))) {
        CheckMeets({"decoys", decoy.name, "keeps"}, decoy.when, decoy.keeps);
      }
    }
    for (const Point& point : scenario_.points) {
      const auto applies = [&](const auto& part) { return AppliesTo(part.when, point); };
      const auto none = [&](const auto& parts) {
        return !parts.empty() && std::none_of(parts.begin(), parts.end(), applies);
      };
      if (none(scenario_.symptoms)) {
        errors_.Add(At({"symptoms"}), "no symptom applies at point '" + point.name + "'");
      }
      const std::pair<const char*, bool> of_twins[] = {{"twins", none(scenario_.twins)},
                                                       {"agree", none(scenario_.agree)},
                                                       {"must_notice", none(scenario_.bugs)}};
      for (const auto& [section, is_empty] : of_twins) {
        if (!is_empty) continue;
        errors_.Add(At({section}), "nothing of '" + std::string(section) + "' applies at point '" +
                                       point.name + "'");
      }
      if (none(scenario_.remedies) && scenario_.no_remedy.empty()) {
        errors_.Add(At({"remedies"}), "no remedy applies at point '" + point.name + "'",
                    "add one, or 'no_remedy: REASON'");
      }
    }
  }

  // All arms have control's first phase: a fault that acts in it would never act.
  void CheckSharedPhase(const InjectedFault& fault) {
    const Phase& first = scenario_.phases.front();
    if (!first.is_shared) return;
    const Trigger& trigger = fault.trigger;
    const std::optional<int> last = trigger.at ? trigger.at : trigger.to;
    const bool is_over = last && first.until && *last < *first.until;
    if (trigger.phase != first.name && !is_over) return;
    const char* key = is_over ? (trigger.at ? "at" : "to") : "phase";
    errors_.Add(At({"inject", fault.id, key}),
                "phase '" + first.name + "' is shared: it has no fault in any arm",
                "let the fault act later, or leave 'shared' out");
  }

  void CheckPhaseOrder(const std::vector<Phase>& phases, const Path& path) {
    for (std::size_t i = 1; i < phases.size(); ++i) {
      const bool both = phases[i - 1].until && phases[i].until;
      if (both && *phases[i].until <= *phases[i - 1].until) {
        Path place = path;
        place.insert(place.end(), {std::to_string(i), "until"});
        errors_.Add(At(place), "'until' must be after the phase before, which ends at " +
                                   std::to_string(*phases[i - 1].until));
      }
    }
  }

  // Without these a phase would train all steps, or begin anew. A scenario of elsewhere is skipped.
  void CheckPhasesAreServed() {
    if (!options_.is_own || target_.level >= 2) return;
    Path place = {"phases"};
    bool is_needed = scenario_.phases.size() > 1;
    for (const Twin& twin : scenario_.twins) {
      if (is_needed || twin.phases.size() < 2) continue;
      place = {"twins", twin.name, "phases"};
      is_needed = true;
    }
    if (!is_needed) return;
    struct Need {
      const char* feature;
      const char* lacks;
      const char* hint;
    };
    static constexpr Need kNeeds[] = {
        {"phases", "cannot end a phase: no '{run.until}' stands in its 'command'",
         "write --steps={run.until} in trainwreck.yaml: the steps to be done when a phase ends"},
        {"resume", "cannot go on in a second phase: it has no 'resume'",
         "such as resume: {arguments: [--load, \"{run.checkpoints}/last.pt\"]} in "
         "trainwreck.yaml"}};
    for (const Need& need : kNeeds) {
      const std::vector<std::string>& has = target_.features;
      if (std::count(has.begin(), has.end(), need.feature) > 0) continue;
      if (IsElsewhere(std::string("feature:") + need.feature, options_)) return;
      errors_.Add(At(place), "target '" + target_.name + "' " + need.lacks, need.hint);
    }
  }

  // The unit of a min_margin must occur in its formula, or it could never be undercut.
  void CheckMargins() {
    const auto check_one = [&](const Check& check, const std::string& path) {
      if (!check.min_margin) return;
      formula::Reading reading = ReadNothing(check);
      const auto unit = static_cast<std::size_t>(check.min_margin->unit);
      if (reading.margins[unit]) return;
      std::vector<std::string> units;
      for (int i = 0; i < formula::kUnitCount; ++i) {
        if (!reading.margins[i]) continue;
        const std::string name = formula::ToString(static_cast<formula::Unit>(i));
        units.push_back(name.empty() ? "plain numbers" : name);
      }
      const std::string name = formula::ToString(check.min_margin->unit);
      Path place =
          path == "quality" ? Path{"quality"} : Path{path.substr(0, path.find('.')), check.name};
      place.push_back("min_margin");
      errors_.Add(At(place),
                  "the formula has no margin in " + (name.empty() ? "plain numbers" : name),
                  units.empty() ? "" : "it has one in: " + Join(units));
    };
    for (const Check& check : scenario_.healthy) check_one(check, "healthy." + check.name);
    for (const Check& check : scenario_.symptoms) check_one(check, "symptoms." + check.name);
    for (const Check& check : scenario_.agree) check_one(check, "agree." + check.name);
    if (scenario_.quality) check_one(*scenario_.quality, "quality");
  }

  formula::Reading ReadNothing(const Check& check) const {
    constexpr int kSteps = 1000;  // units do not depend on the length
    RunTrace nothing;
    nothing.planned_steps = kSteps;
    return check.formula.Evaluate({&nothing, {}}, target_);
  }

  // Each must be there, and asked of what the faults train.
  void CheckInvariants() {
    static const std::vector<Invariant> kNone;
    const std::vector<Invariant>& known = options_.invariants ? *options_.invariants : kNone;
    std::vector<std::string> names;
    for (const Invariant& invariant : known) names.push_back(invariant.name);
    CheckNames({"breaks"}, scenario_.breaks, names, "there is no invariant");
    for (const Twin& twin : scenario_.twins) {
      CheckNames({"twins", twin.name, "waives"}, twin.waives, names, "there is no invariant");
    }
    for (const Invariant& invariant : known) {
      if (std::count(scenario_.breaks.begin(), scenario_.breaks.end(), invariant.name) == 0) {
        continue;
      }
      for (const Point& point : scenario_.points) {
        const Recipe recipe = ResolveRecipe(target_, scenario_, point, {});
        if (AskedOf(invariant, recipe, {}, target_)) continue;
        if (const std::string lacking = LackingFor(invariant, target_); !lacking.empty()) {
          errors_.AddUnserved(lacking);
          errors_.Add(EntryAt({"breaks"}, invariant.name),
                      "the target cannot be asked for '" + invariant.name + "'",
                      "it lacks " + lacking);
          break;
        }
        errors_.Add(EntryAt({"breaks"}, invariant.name),
                    "nothing asks for '" + invariant.name + "' with this recipe",
                    "its 'given' in " + invariant.file + " says when it is asked for");
      }
    }
  }

  // The ranks required follow from the recipe and need not be written.
  void RequireRanks(int ranks) {
    Requirements& needs = scenario_.requires_;
    const YamlNode* requires_node = draft_.root->Find("requires");
    if (requires_node == nullptr || requires_node->Find("ranks") == nullptr) {
      needs.ranks = std::max(needs.ranks, ranks);
    } else if (needs.ranks < ranks) {
      errors_.Add(At({"requires", "ranks"}), "the recipe needs " + std::to_string(ranks) + " ranks",
                  "leave 'ranks' out: it follows from the recipe");
    }
  }

  Draft& draft_;
  Scenario& scenario_;
  const TargetDescription& target_;
  const LoadOptions& options_;
  Errors& errors_;
};

}  // namespace

void Validate(Draft& draft, const TargetDescription& target, const LoadOptions& options,
              Errors& errors) {
  if (target.FindRecipeKey(kStepsKey) == nullptr) {
    errors.Add(0, {}, "the target '" + target.name + "' describes no recipe key 'steps'");
    return;
  }
  Validator(draft, target, options, errors).Run();
}

}  // namespace trainwreck
