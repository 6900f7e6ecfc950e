#include "harness/spec/validate.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <optional>
#include <utility>

#include "harness/spec/parts_reader.h"

namespace trainwreck {
namespace {

namespace fs = std::filesystem;

// Stands for a recipe that has errors of its own: nothing is outside of it.
constexpr int kUnknownSteps = 1 << 30;
constexpr int kUnknownRanks = 4096;

int IntOf(const Recipe& recipe, const std::string& key, int fallback) {
  auto found = recipe.find(key);
  if (found == recipe.end() || !found->second.is_number()) return fallback;
  const double value = found->second.get<double>();
  return value >= 0 && value <= kUnknownSteps ? static_cast<int>(value) : fallback;
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
    CheckPhaseOrder();
    for (const Point& point : scenario_.points) CheckPoint(point);
    at_points_.Report(scenario_.points.size(), errors_);
    CheckMargins();
    Derive();
  }

 private:
  using Path = std::vector<std::string>;

  const YamlNode& At(const Path& path) const { return Locate(*draft_.root, path); }

  // The entry of a list that reads `text`, or the single value in its place.
  const YamlNode& EntryAt(Path path, const std::string& text) const {
    const YamlNode* node = draft_.root;
    for (const std::string& word : path) {
      node = node == nullptr ? nullptr : node->Find(word);
    }
    if (node != nullptr) {
      for (const YamlNode& item : node->items) {
        if (item.text == text) return item;
      }
    }
    return At(path);
  }

  void CheckScenarioName() {
    if (!options_.check_name || scenario_.name.empty()) return;
    const fs::path file(scenario_.file);
    const fs::path stem = file.parent_path() / file.stem();
    fs::path relative = stem.lexically_normal().lexically_relative(
        fs::path(options_.scenarios_root).lexically_normal());
    if (relative.empty() || *relative.begin() == "..") {
      std::error_code error;
      relative =
          fs::absolute(stem, error)
              .lexically_normal()
              .lexically_relative(fs::absolute(options_.scenarios_root, error).lexically_normal());
    }
    // A file that lies elsewhere has only its own name to be called by.
    const bool is_inside = !relative.empty() && *relative.begin() != "..";
    const std::string wanted = is_inside ? relative.generic_string() : file.stem().string();
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

  static std::string Join(const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
    return text;
  }

  void CheckNamesOfChecks() {
    std::vector<std::string> waivable = draft_.healthy_names;
    waivable.push_back("quality");
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
    for (const InjectedFault& fault : scenario_.faults) {
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

  void CheckCoverage() {
    const bool all_read = scenario_.symptoms.size() == draft_.symptom_names.size();
    if (!all_read) return;
    // Only what was written out: a default means the symptoms that there are.
    for (const Remedy& remedy : scenario_.remedies) {
      const YamlNode* node = draft_.root->Find("remedies")->Find(remedy.name);
      if (node != nullptr && node->Find("resolves") != nullptr) {
        CheckMeets({"remedies", remedy.name, "resolves"}, remedy.when, remedy.resolves);
      }
    }
    for (const Decoy& decoy : scenario_.decoys) {
      const YamlNode* node = draft_.root->Find("decoys")->Find(decoy.name);
      if (node != nullptr && node->Find("keeps") != nullptr) {
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
      if (none(scenario_.remedies) && scenario_.no_remedy.empty()) {
        errors_.Add(At({"remedies"}), "no remedy applies at point '" + point.name + "'",
                    "add one, or 'no_remedy: REASON'");
      }
    }
  }

  void CheckPhaseOrder() {
    const std::vector<Phase>& phases = scenario_.phases;
    for (std::size_t i = 1; i < phases.size(); ++i) {
      const bool both = phases[i - 1].until && phases[i].until;
      if (both && *phases[i].until <= *phases[i - 1].until) {
        errors_.Add(At({"phases", std::to_string(i), "until"}),
                    "'until' must be after the phase before, which ends at " +
                        std::to_string(*phases[i - 1].until));
      }
    }
  }

  // One point: its recipe with each arm's changes, and everything that depends on steps and ranks.

  void Complain(const Point& point, const YamlNode& at, std::string message,
                std::string hint = "") {
    at_points_.Add(point.name, at.source, at.position, std::move(message), std::move(hint));
  }

  struct Extent {
    int steps = kUnknownSteps;
    int ranks = kUnknownRanks;
    bool operator==(const Extent&) const = default;
  };

  Extent ExtentOf(const Recipe& recipe) const {
    if (!draft_.is_recipe_sound) return {};
    return {IntOf(recipe, "steps", kUnknownSteps), IntOf(recipe, "parallel.ranks", 1)};
  }

  void CheckPoint(const Point& point) {
    const Recipe healthy = ResolveRecipe(target_, scenario_, point, {});
    const Extent extent = ExtentOf(healthy);
    if (draft_.is_recipe_sound) {
      CheckComplete(point, healthy);
      for (const auto& [key, factor] : point.changes.scale) {
        CheckScaled(point, {{}, {{key, factor}}}, healthy, AxisOf(point, key));
      }
      largest_ranks_ = std::max(largest_ranks_, extent.ranks);
    }
    CheckFormulas(point, extent, "");
    CheckPhases(point, extent);
    Recipe faulty = healthy;
    for (const InjectedFault& fault : scenario_.faults) CheckFault(point, fault, extent, faulty);
    if (!draft_.is_recipe_sound) return;
    CheckArm(point, "fault", faulty, extent);
    for (const Remedy& remedy : scenario_.remedies) {
      if (!AppliesTo(remedy.when, point)) continue;
      CheckChanges(point, {"remedies", remedy.name}, remedy.changes, faulty, extent);
    }
    for (const Decoy& decoy : scenario_.decoys) {
      if (!AppliesTo(decoy.when, point)) continue;
      CheckChanges(point, {"decoys", decoy.name}, decoy.changes, faulty, extent);
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
      Complain(point, At(place),
               "'" + key + "' becomes " + result.at(key).dump() + ", but " + wrong);
    }
  }

  // The part of the matrix that scales `key` at this point.
  Path AxisOf(const Point& point, const std::string& key) const {
    const YamlNode& matrix = *draft_.root->Find("matrix");
    const std::string names = "-" + point.name + "-";
    for (std::size_t i = 0; i < matrix.keys.size(); ++i) {
      for (const YamlNode& name : matrix.items[i].keys) {
        const Path path = {"matrix", matrix.keys[i].text, name.text};
        const bool is_here = names.find("-" + name.text + "-") != std::string::npos;
        if (is_here && &At({path[0], path[1], path[2], "scale", key}) != &At(path)) return path;
      }
    }
    return {"matrix"};
  }

  void CheckChanges(const Point& point, const Path& path, const Changes& changes,
                    const Recipe& faulty, const Extent& extent) {
    Recipe recipe = faulty;
    Apply(changes, recipe);
    CheckScaled(point, changes, recipe, path);
    if (recipe == faulty && !(changes.set.empty() && changes.scale.empty())) {
      Complain(point, At(path), "'" + path[1] + "' changes nothing: the recipe says so already");
    }
    CheckArm(point, path[1], recipe, extent);
  }

  // An arm that is longer or wider than control is checked with its own extent, too.
  void CheckArm(const Point& point, const std::string& arm, const Recipe& recipe,
                const Extent& control) {
    const Extent extent = ExtentOf(recipe);
    if (extent != control) CheckFormulas(point, extent, " (in arm '" + arm + "')");
    largest_ranks_ = std::max(largest_ranks_, extent.ranks);
  }

  void CheckPhases(const Point& point, const Extent& extent) {
    const std::vector<Phase>& phases = scenario_.phases;
    for (std::size_t i = 0; i < phases.size(); ++i) {
      if (!phases[i].until) continue;
      const bool is_last = i + 1 == phases.size();
      const int until = *phases[i].until;
      const YamlNode& at = At({"phases", std::to_string(i), "until"});
      if (until > extent.steps || (!is_last && until == extent.steps)) {
        Complain(point, at, "the run ends after " + std::to_string(extent.steps) + " steps");
      } else if (is_last && until < extent.steps && extent.steps < kUnknownSteps) {
        Complain(point, at,
                 "the last phase must go on to the end, after " + std::to_string(extent.steps) +
                     " steps",
                 "leave its 'until' out, or change 'steps'");
      }
    }
  }

  void CheckFault(const Point& point, const InjectedFault& fault, const Extent& extent,
                  Recipe& faulty) {
    const FaultInfo* info = target_.FindFault(fault.fault);
    CheckTrigger(point, fault, extent);
    if (info == nullptr) return;
    if (extent.ranks < info->min_ranks) {
      Complain(point, At({"inject", fault.id, "fault"}),
               "fault '" + info->name + "' needs " + std::to_string(info->min_ranks) +
                   " ranks, the run has " + std::to_string(extent.ranks),
               "set parallel.ranks in the recipe");
    }
    std::map<std::string, Json> with = fault.with;
    if (auto found = point.with.find(fault.id); found != point.with.end()) {
      for (const auto& [name, value] : found->second) with[name] = value;
    }
    bool is_complete = true;
    for (const ParamInfo& param : info->params) {
      auto found = with.find(param.name);
      is_complete = is_complete && found != with.end() && !found->second.is_null();
      if (found != with.end()) continue;
      Complain(point, At({"inject", fault.id, "with"}),
               "fault '" + fault.id + "' lacks the parameter '" + param.name + "'",
               param.doc.empty() ? "" : param.name + ": " + param.doc);
    }
    if (!is_complete || !draft_.is_recipe_sound) return;
    for (const AmendedKey& change : Amend(*info, with, faulty)) {
      const ParamInfo* key = target_.FindRecipeKey(change.key);
      const std::string wrong = key == nullptr ? "" : CheckValue(*key, change.after);
      if (wrong.empty()) continue;
      Complain(point, At({"inject", fault.id, "fault"}),
               "fault '" + fault.id + "' makes '" + change.key + "' " + change.after.dump() +
                   ", but it " + wrong);
    }
  }

  void CheckTrigger(const Point& point, const InjectedFault& fault, const Extent& extent) {
    // A checkpoint is named by the steps done, so the last one bears the number of all steps.
    const bool counts_done_steps = fault.fault.rfind("checkpoint.", 0) == 0;
    const int last = counts_done_steps ? extent.steps : extent.steps - 1;
    const std::pair<const char*, std::optional<int>> steps[] = {
        {"at", fault.trigger.at}, {"from", fault.trigger.from}, {"to", fault.trigger.to}};
    for (const auto& [key, step] : steps) {
      if (!step || *step <= last) continue;
      Complain(point, At({"inject", fault.id, key}),
               std::string("'") + key + "' is after the run's last step, " + std::to_string(last));
    }
    for (int rank : fault.trigger.ranks) {
      if (rank < extent.ranks) continue;
      Complain(point, EntryAt({"inject", fault.id, "ranks"}, std::to_string(rank)),
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
    if (scenario_.quality) {
      CheckFormula(point, *scenario_.quality, "quality", true, extent, suffix);
    }
  }

  void CheckFormula(const Point& point, const Check& check, const std::string& path,
                    bool may_see_fault, const Extent& extent, const std::string& suffix) {
    if (!AppliesTo(check.when, point)) return;
    const YamlNode& node = *draft_.formulas.at(path);
    CheckArms(point, check, node, may_see_fault);
    formula::Vocabulary vocabulary;
    vocabulary.target = &target_;
    // Arms that must not be used here have had their own error.
    vocabulary.arms = {"control", "fault", "reference"};
    vocabulary.planned_steps = extent.steps;
    vocabulary.world_size = extent.ranks;
    vocabulary.fault_ids.insert(draft_.fault_ids.begin(), draft_.fault_ids.end());
    for (const formula::FormulaError& error : check.formula.Check(vocabulary)) {
      const Position position = PlaceInFormula(node, error.begin, error.end, errors_);
      at_points_.Add(point.name, node.source, position, error.message + suffix, error.hint);
    }
  }

  void CheckArms(const Point& point, const Check& check, const YamlNode& node, bool may_see_fault) {
    const auto complain = [&](const std::string& arm, std::string message, std::string hint) {
      const std::size_t found = node.text.find(arm + ".");
      const std::size_t begin = found == std::string::npos ? 0 : found;
      at_points_.Add(point.name, node.source,
                     PlaceInFormula(node, begin, begin + arm.size(), errors_), std::move(message),
                     std::move(hint));
    };
    const std::set<std::string> arms = check.formula.arms();
    if (arms.count("fault") > 0 && !may_see_fault) {
      complain("fault", "'fault.' cannot stand here: this is checked in the control arm, too",
               "only 'quality' may compare with the fault arm");
    }
    if (arms.count("reference") > 0 && !scenario_.has_reference) {
      complain("reference", "the scenario has no reference run",
               "add 'reference: true' for an extra run that is not interrupted");
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
    if (scenario_.quality) check_one(*scenario_.quality, "quality");
  }

  formula::Reading ReadNothing(const Check& check) const {
    constexpr int kSteps = 1000;  // units do not depend on the length
    RunTrace nothing;
    nothing.planned_steps = kSteps;
    return check.formula.Evaluate({&nothing, {}}, target_);
  }

  // What follows from the rest and need not be written.
  void Derive() {
    Requirements& needs = scenario_.requires_;
    const YamlNode* requires_node = draft_.root->Find("requires");
    const bool is_given = requires_node != nullptr && requires_node->Find("ranks") != nullptr;
    if (!draft_.is_recipe_sound) return;
    if (!is_given) {
      needs.ranks = std::max(needs.ranks, largest_ranks_);
    } else if (needs.ranks < largest_ranks_) {
      errors_.Add(At({"requires", "ranks"}),
                  "the recipe needs " + std::to_string(largest_ranks_) + " ranks",
                  "leave 'ranks' out: it follows from the recipe");
    }
  }

  Draft& draft_;
  Scenario& scenario_;
  const TargetDescription& target_;
  const LoadOptions& options_;
  Errors& errors_;
  PointErrors at_points_;
  int largest_ranks_ = 1;
};

}  // namespace

void Validate(Draft& draft, const TargetDescription& target, const LoadOptions& options,
              Errors& errors) {
  if (target.FindRecipeKey("steps") == nullptr) {
    errors.Add(0, {}, "the target '" + target.name + "' describes no recipe key 'steps'");
    return;
  }
  Validator(draft, target, options, errors).Run();
}

}  // namespace trainwreck
