#include "harness/spec/reader.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "harness/spec/left_out.h"
#include "harness/spec/matrix_reader.h"
#include "harness/spec/parts_reader.h"
#include "harness/spec/point_parts.h"
#include "harness/spec/recipe_reader.h"
#include "harness/spec/references.h"
#include "harness/spec/twins_reader.h"
#include "harness/text/nearest.h"
#include "harness/yaml/fields.h"

namespace trainwreck {
namespace {

constexpr int kMaxSeeds = 1000;

// Reads the sections of one scenario, in the order of docs/guide/scenario.md.
class Reader {
 public:
  Reader(const TargetDescription& target, Errors& errors) : target_(target), errors_(errors) {}

  Draft Read(YamlNode& root) {
    draft_.root = &root;
    Fields fields(root, "the scenario", errors_);
    if (!fields.is_map()) return std::move(draft_);
    ReadHead(fields);
    const bool has_twins = root.Find("twins") != nullptr;
    const YamlNode* faults = has_twins ? fields.Take("inject")
                                       : fields.Require("inject", "inject: {NAME: {fault: FAULT}}");
    if (faults != nullptr) ReadFaults(*faults, target_, errors_, draft_);
    ReadRecipeAndPoints(fields);
    TakeOutPointParts(root, scenario().points, errors_);
    scenario().left_out = LeaveOutArms(root, target_);
    if (const YamlNode* node = fields.Take("seeds")) ReadSeeds(*node);
    if (const YamlNode* node = fields.Take("phases")) {
      scenario().phases = ReadPhases(*node, errors_);
      for (const Phase& phase : scenario().phases) draft_.phase_names.push_back(phase.name);
    }
    if (scenario().phases.empty()) scenario().phases = {{"train", std::nullopt}};
    ReadChecks(fields, errors_, draft_);
    ResolveReferences(target_, errors_, draft_);
    ReadRemedies(fields, target_, errors_, draft_);
    ReadDecoys(fields, target_, errors_, draft_);
    ReadTwins(fields, target_, errors_, draft_);
    NameSignalsByRoles();
    if (const YamlNode* node = fields.Take("reference")) {
      scenario().has_reference = ReadBool(*node, "'reference'", errors_).value_or(false);
    }
    ReadExpectation(fields);
    if (const YamlNode* node = fields.Take("requires")) ReadRequirements(*node);
    if (const YamlNode* node = fields.Take("budget")) ReadBudget(*node);
    fields.Take("extends");  // resolved before, and so is this
    fields.Take("strength");
    fields.RejectRest(/*allow_notes=*/true);
    return std::move(draft_);
  }

 private:
  Scenario& scenario() { return draft_.scenario; }

  void ReadHead(Fields& fields) {
    if (const YamlNode* node = fields.Require("apiVersion", "apiVersion: trainwreck/v1")) {
      if (!node->IsScalar() || node->text != kApiVersion) {
        errors_.Add(*node, std::string("'apiVersion' must be ") + kApiVersion);
      }
    }
    if (const YamlNode* node = fields.Require("kind", "kind: Scenario")) {
      if (!node->IsScalar() || node->text != "Scenario") {
        errors_.Add(*node, "'kind' must be Scenario",
                    node->text == "Targets"
                        ? "this is a file of targets: name scenarios instead, or "
                          "none for all"
                        : "");
      }
    }
    if (const YamlNode* node = fields.Take("name")) ReadScenarioName(*node);
    if (const YamlNode* node = fields.Require("title", "title: WHAT BREAKS AND WHAT HELPS")) {
      scenario().title = ReadText(*node, "'title'", errors_).value_or("");
    }
    if (const YamlNode* node = fields.Take("sources")) {
      scenario().sources = ReadTexts(*node, "'sources'", errors_);
    }
    if (const YamlNode* node = fields.Take("tags")) {
      scenario().tags = ReadTexts(*node, "'tags'", errors_);
    }
  }

  void NameSignalsByRoles() {
    ForEachCheck(scenario(),
                 [&](Check& check) { check.formula = check.formula.WithRoles(target_); });
  }

  void ReadScenarioName(const YamlNode& node) {
    std::optional<std::string> name = ReadText(node, "'name'", errors_);
    if (!name) return;
    const auto fits = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '/';
    };
    const bool has_empty_part =
        name->front() == '/' || name->back() == '/' || name->find("//") != std::string::npos;
    if (has_empty_part || !std::all_of(name->begin(), name->end(), fits)) {
      errors_.Add(node, "'name' must be words of a-z, 0-9, '-' and '_', separated by '/'",
                  "such as nan/lr-too-high");
    } else {
      scenario().name = *name;
    }
  }

  void ReadRecipeAndPoints(Fields& fields) {
    const std::size_t errors_before = errors_.size();
    if (const YamlNode* node = fields.Take("recipe")) {
      scenario().recipe.set = ReadRecipe(*node, "'recipe'", target_, errors_);
    }
    if (const YamlNode* node = fields.Take("matrix")) {
      scenario().points = ReadMatrix(*node, FaultInfos(), target_, errors_);
    }
    if (scenario().points.empty()) scenario().points = {Point{}};
    draft_.is_recipe_sound = errors_.size() == errors_before;
  }

  std::map<std::string, const FaultInfo*> FaultInfos() const {
    std::map<std::string, const FaultInfo*> infos;
    for (const std::string& id : draft_.fault_ids) infos[id] = nullptr;
    for (const InjectedFault& fault : draft_.scenario.faults) {
      infos[fault.id] = target_.FindFault(fault.fault);
    }
    return infos;
  }

  void ReadSeeds(const YamlNode& node) {
    int& count = scenario().seed_count;
    int& require = scenario().seed_require;
    if (node.IsList()) {
      errors_.Add(node, "'seeds' must be a whole number or a map, but is a list",
                  "how many: seeds: " + std::to_string(node.items.size()) +
                      ", or seeds: {count: 5, require: 4}");
      return;
    }
    if (!node.IsMap()) {
      count = ReadInt(node, "'seeds'", errors_, 1, kMaxSeeds).value_or(count);
      require = count;
      return;
    }
    Fields fields(node, "'seeds'", errors_);
    if (const YamlNode* value = fields.Require("count")) {
      count = ReadInt(*value, "'count'", errors_, 1, kMaxSeeds).value_or(kMaxSeeds);
    }
    require = count;
    if (const YamlNode* value = fields.Take("require")) {
      require = ReadInt(*value, "'require'", errors_, 1, kMaxSeeds).value_or(1);
      if (require > count) {
        errors_.Add(*value,
                    "'require' must not be more than 'count', which is " + std::to_string(count));
      }
    }
    if (const YamlNode* value = fields.Take("repeat")) {
      scenario().repeats_seed = ReadBool(*value, "'repeat'", errors_).value_or(false);
    }
    fields.RejectRest();
  }

  void ReadExpectation(Fields& fields) {
    Expectation& expect = scenario().expect;
    const YamlNode* node = fields.Take("expect");
    const YamlNode* reason = fields.Take("reason");
    if (reason != nullptr) expect.reason = ReadText(*reason, "'reason'", errors_).value_or("-");
    if (node == nullptr) {
      if (reason != nullptr) errors_.Add(*reason, "'reason' belongs to 'expect', which is missing");
      return;
    }
    if (node->IsMap()) {
      ReadExpectationMap(*node);
    } else {
      ReadVerdict(*node);
    }
    if (expect.verdict != VerdictKind::kPass && expect.reason.empty()) {
      errors_.Add(*node, std::string("'expect: ") + ToString(expect.verdict) + "' needs a 'reason'",
                  "add 'reason: ...': why this limit is known and accepted");
    }
  }

  void ReadVerdict(const YamlNode& node) {
    std::optional<std::string> name = ReadText(node, "'expect'", errors_);
    if (!name) return;
    const std::optional<VerdictKind> verdict = FindVerdict(*name);
    if (!verdict) {
      errors_.Add(node, "no verdict is called '" + *name + "'", SuggestName(*name, VerdictNames()));
      return;
    }
    scenario().expect.verdict = *verdict;
  }

  void ReadClass(const YamlNode& node) {
    Expectation& expect = scenario().expect;
    const std::string name = ReadText(node, "'class'", errors_).value_or("");
    const std::string verdict = ToString(expect.verdict);
    const std::vector<std::string> classes = ClassNames(expect.verdict);
    const std::optional<FailureClass> found = FailureClass::Find(name);
    if (found && found->verdict() == expect.verdict) {
      expect.failure_class = *found;
    } else if (!name.empty()) {
      std::string hint = NearestName(name, classes);
      if (!hint.empty()) hint = "did you mean '" + hint + "'?";
      errors_.Add(node, "verdict '" + verdict + "' has no class '" + name + "'",
                  hint.empty() ? "'trainwreck explain " + verdict + "' shows its classes" : hint);
    }
  }

  void ReadExpectationMap(const YamlNode& node) {
    Expectation& expect = scenario().expect;
    Fields fields(node, "'expect'", errors_);
    const YamlNode* verdict = fields.Require("verdict");
    if (verdict != nullptr) ReadVerdict(*verdict);
    if (const YamlNode* reason = fields.Take("reason")) {
      expect.reason = ReadText(*reason, "'reason'", errors_).value_or("-");
    }
    if (const YamlNode* item = fields.Take("class")) {
      ReadClass(*item);
    }
    fields.RejectRest();
  }

  void ReadRequirements(const YamlNode& node) {
    if (!CheckFilledMap(node, "'requires'", errors_)) return;
    Requirements& needs = scenario().requires_;
    Fields fields(node, "'requires'", errors_);
    if (const YamlNode* value = fields.Take("ranks")) {
      needs.ranks = ReadInt(*value, "'ranks'", errors_, 1, 4096).value_or(1);
    }
    if (const YamlNode* value = fields.Take("devices")) {
      static const std::vector<std::string> kDevices = {"cpu", "cuda"};
      needs.devices = ReadTexts(*value, "'devices'", errors_);
      for (const std::string& device : needs.devices) {
        if (std::count(kDevices.begin(), kDevices.end(), device) == 0) {
          errors_.Add(*value, "no device is called '" + device + "'",
                      device == "gpu" ? "did you mean 'cuda'?" : SuggestName(device, kDevices));
        }
      }
    }
    if (const YamlNode* value = fields.Take("features")) {
      needs.features = ReadTexts(*value, "'features'", errors_);
      for (const std::string& feature : needs.features) NoteAdapter(feature);
    }
    if (const YamlNode* value = fields.Take("memory")) {
      needs.memory_bytes = ReadBytes(*value, "'memory'", errors_).value_or(0);
    }
    fields.RejectRest();
  }

  // An adapter brings faults and signals along: without it their names mean nothing.
  void NoteAdapter(const std::string& feature) {
    const bool has = std::count(target_.features.begin(), target_.features.end(), feature) > 0;
    if (!has && feature.starts_with("adapter:")) errors_.AddUnserved(feature);
  }

  void ReadBudget(const YamlNode& node) {
    if (!CheckFilledMap(node, "'budget'", errors_)) return;
    Budget& budget = scenario().budget;
    Fields fields(node, "'budget'", errors_);
    budget.has_seconds = node.FindKey("seconds") != nullptr;
    budget.has_stall_seconds = node.FindKey("stall_seconds") != nullptr;
    budget.seconds = ReadSeconds(fields, "seconds", budget.seconds);
    budget.stall_seconds =
        ReadSeconds(fields, "stall_seconds", std::min(budget.stall_seconds, budget.seconds));
    if (budget.stall_seconds > budget.seconds) {
      errors_.Add(Locate(node, {"stall_seconds"}),
                  "'stall_seconds' must not be more than 'seconds'");
    }
    fields.RejectRest();
  }

  double ReadSeconds(Fields& fields, const std::string& key, double fallback) {
    constexpr double kDay = 86400;
    const YamlNode* node = fields.Take(key);
    if (node == nullptr) return fallback;
    std::optional<double> seconds = ReadNumber(*node, "'" + key + "'", errors_);
    if (!seconds) return fallback;
    if (*seconds > 0 && *seconds <= kDay) return *seconds;
    errors_.Add(*node, "'" + key + "' must be more than 0 and at most a day (86400)");
    return fallback;
  }

  const TargetDescription& target_;
  Errors& errors_;
  Draft draft_;
};

}  // namespace

Draft ReadScenario(YamlNode& root, const TargetDescription& target, Errors& errors) {
  return Reader(target, errors).Read(root);
}

const YamlNode& Locate(const YamlNode& root, const std::vector<std::string>& path) {
  const YamlNode* shown = &root;
  const YamlNode* node = &root;
  for (std::string word : path) {
    while (!word.empty()) {
      if (node->IsList()) {
        std::size_t index = 0;
        const char* end = word.data() + word.size();
        const bool is_index = std::from_chars(word.data(), end, index).ptr == end;
        if (!is_index || index >= node->items.size()) return *shown;
        shown = node = &node->items[index];
        break;
      }
      // The whole word, or a leading part of it that ends before a dot.
      std::size_t length = word.size();
      while (length != std::string::npos && node->Find(word.substr(0, length)) == nullptr) {
        length = length == 0 ? std::string::npos : word.rfind('.', length - 1);
      }
      if (length == std::string::npos) return *shown;
      const YamlNode* key = node->FindKey(word.substr(0, length));
      node = node->Find(word.substr(0, length));
      shown = node->IsScalar() ? node : key;
      word = length < word.size() ? word.substr(length + 1) : "";
    }
  }
  return *shown;
}

const YamlNode& LocateEntry(const YamlNode& root, const std::vector<std::string>& path,
                            const std::string& text) {
  const YamlNode* node = &root;
  for (const std::string& word : path) node = node == nullptr ? nullptr : node->Find(word);
  if (node != nullptr) {
    for (const YamlNode& item : node->items) {
      if (item.text == text) return item;
    }
  }
  return Locate(root, path);
}

}  // namespace trainwreck
