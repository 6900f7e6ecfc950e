#include "harness/spec/parts_reader.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "harness/spec/fault_file.h"
#include "harness/spec/recipe_reader.h"
#include "harness/text/nearest.h"

namespace trainwreck {
namespace {

constexpr char kAllBut[] = "all but ";
constexpr int kMaxStep = 1'000'000'000;

std::optional<int> ReadStep(Fields& fields, const std::string& key, Errors& errors, int min = 0) {
  const YamlNode* node = fields.Take(key);
  if (node == nullptr) return std::nullopt;
  return ReadInt(*node, "'" + key + "'", errors, min, kMaxStep);
}

Trigger ReadTrigger(Fields& fields, const YamlNode& node, Errors& errors) {
  Trigger trigger;
  trigger.at = ReadStep(fields, "at", errors);
  trigger.from = ReadStep(fields, "from", errors);
  trigger.to = ReadStep(fields, "to", errors);
  trigger.every = ReadStep(fields, "every", errors, 1).value_or(1);
  if (const YamlNode* ranks = fields.Take("ranks")) {
    for (const YamlNode* item : ReadList(*ranks, "'ranks'", errors)) {
      std::optional<int> rank = ReadInt(*item, "a rank", errors, 0, 4095);
      if (!rank) continue;
      if (std::count(trigger.ranks.begin(), trigger.ranks.end(), *rank) > 0) {
        errors.Add(*item, "'ranks' holds " + std::to_string(*rank) + " twice");
      }
      trigger.ranks.push_back(*rank);
    }
  }
  if (const YamlNode* phase = fields.Take("phase")) {
    trigger.phase = ReadText(*phase, "'phase'", errors).value_or("");
  }
  if (const YamlNode* attempt = fields.Take("attempt")) {
    trigger.attempt = ReadInt(*attempt, "'attempt'", errors, 0, 100);
  }
  if (const YamlNode* value = fields.Take("probability")) {
    trigger.probability = ReadNumber(*value, "'probability'", errors).value_or(1.0);
    if (!(trigger.probability > 0 && trigger.probability <= 1)) {
      errors.Add(*value, "'probability' must be more than 0 and at most 1");
    }
  }
  for (const char* key : {"from", "to", "every"}) {
    if (trigger.at && node.Find(key) != nullptr) {
      errors.Add(Locate(node, {key}), std::string("'") + key + "' cannot stand beside 'at'",
                 "'at' is one step; a range is 'from', 'to' and 'every'");
    }
  }
  if (trigger.from && trigger.to && *trigger.to < *trigger.from) {
    errors.Add(Locate(node, {"to"}), "'to' must not be before 'from'");
  }
  return trigger;
}

// A fault that acts on the recipe, before any step, has no trigger.
void RejectTrigger(const YamlNode& node, const FaultInfo& info, Errors& errors) {
  for (const char* key :
       {"at", "from", "to", "every", "ranks", "phase", "attempt", "probability"}) {
    if (const YamlNode* found = node.FindKey(key)) {
      errors.Add(*found, "fault '" + info.name + "' has no trigger, so no '" + key + "'",
                 "it changes the recipe before the run begins");
    }
  }
}

std::vector<std::string> FaultNames(const TargetDescription& target) {
  std::vector<std::string> names;
  for (const FaultInfo& info : target.faults) names.push_back(info.name);
  return names;
}

std::optional<formula::Formula> ReadFormula(const YamlNode& node, const std::string& what,
                                            Errors& errors) {
  std::optional<std::string> text = ReadText(node, what, errors);
  if (!text) return std::nullopt;
  formula::Formula::ParseResult parsed = formula::Formula::Parse(*text);
  for (const formula::FormulaError& error : parsed.errors) {
    errors.Add(node.source, PlaceInFormula(node, error.begin, error.end, errors), error.message,
               error.hint);
  }
  return std::move(parsed.formula);
}

std::vector<Check> ReadCheckMap(const YamlNode& node, const std::string& section,
                                std::vector<std::string>& names, Errors& errors, Draft& draft) {
  std::vector<Check> checks;
  if (!CheckFilledMap(node, "'" + section + "'", errors)) return checks;
  for (std::size_t i = 0; i < node.keys.size(); ++i) {
    const YamlNode& key = node.keys[i];
    CheckName(key, "the name of a check", errors);
    if (key.text == "quality") {
      errors.Add(key, "'quality' is the name of the quality gate", "choose another name");
    }
    if (std::count(draft.healthy_names.begin(), draft.healthy_names.end(), key.text) > 0) {
      errors.Add(key, "a healthy check is called '" + key.text + "', too", "choose another name");
    }
    std::optional<Check> check =
        ReadCheck(key, node.items[i], section + "." + key.text, errors, draft);
    if (check) checks.push_back(std::move(*check));
  }
  for (const YamlNode& key : node.keys) names.push_back(key.text);
  return checks;
}

bool IsOwnWord(const std::string& key) {
  static const std::vector<std::string> kWords = {"resolves", "waives", "keeps",
                                                  "kind",     "when",   "note"};
  return std::count(kWords.begin(), kWords.end(), key) > 0;
}

void RequireChanges(const Changes& changes, const YamlNode& key, const YamlNode& node,
                    const std::string& what, Errors& errors) {
  if (!node.IsMap() || node.Find("set") != nullptr || node.Find("scale") != nullptr) return;
  for (const YamlNode& given : node.keys) {
    if (!NearestName(given.text, {"set", "scale"}).empty()) return;  // has its own error
  }
  if (changes.set.empty() && changes.scale.empty()) {
    std::string example;
    for (const YamlNode& given : node.keys) {
      if (!IsOwnWord(given.text)) example = ", such as {set: {" + given.text + ": ...}}";
    }
    errors.Add(key, what + " changes nothing", "give it 'set' or 'scale'" + example);
  }
}

// It is told and not run, so it has a text and nothing that a run could need.
void CheckUndo(const YamlNode& key, const YamlNode& node, const std::string& what, Errors& errors) {
  for (const char* word : {"set", "scale", "resolves", "waives"}) {
    if (const YamlNode* given = node.FindKey(word)) {
      errors.Add(
          *given,
          what + " is of 'kind: undo', which is not run, so it has no '" + std::string(word) + "'",
          "say in 'note' what is to be taken out");
    }
  }
  if (node.Find("note") == nullptr) {
    errors.Add(key, what + " does not say what is to be taken out",
               "add 'note: ...', for the reader of the report");
  }
}

// The symptoms that `keeps` or `resolves` names.
std::vector<std::string> ReadSymptoms(const YamlNode& node, const std::string& what, Errors& errors,
                                      const Draft& draft) {
  std::vector<std::string> names = ReadTexts(node, what, errors);
  if (!IsAllBut(node)) return names;
  names.front().erase(0, std::strlen(kAllBut));
  std::vector<std::string> left = draft.symptom_names;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const YamlNode& place = node.IsList() ? node.items[i] : node;
    if (std::count(draft.symptom_names.begin(), draft.symptom_names.end(), names[i]) == 0) {
      errors.Add(place, "the scenario has no symptom '" + names[i] + "'",
                 SuggestName(names[i], draft.symptom_names));
    }
    std::erase(left, names[i]);
  }
  if (left.empty() && !draft.symptom_names.empty()) {
    errors.Add(node, what + " leaves no symptom", "name those that are meant");
  }
  return left;
}

void ReadRemedy(const YamlNode& key, const YamlNode& node, const TargetDescription& target,
                Errors& errors, Draft& draft) {
  Remedy remedy;
  remedy.name = key.text;
  SetPlace(key, errors, remedy);
  CheckArmName(key, draft, errors);
  const std::string what = "remedy '" + key.text + "'";
  Fields fields(node, what, errors);
  remedy.changes = ReadChanges(fields, what, target, errors);
  if (const YamlNode* kind = fields.Take("kind")) {
    ParamInfo info;
    info.name = "kind";
    info.type = ValueType::kString;
    info.choices = {"correct", "mitigate", "undo"};
    std::optional<Json> value = ReadValue(*kind, info, errors);
    remedy.is_correct = !value || *value == "correct";
    remedy.is_undo = value && *value == "undo";
  }
  if (remedy.is_undo) {
    CheckUndo(key, node, what, errors);
  } else {
    RequireChanges(remedy.changes, key, node, what, errors);
  }
  if (const YamlNode* resolves = fields.Take("resolves")) {
    remedy.resolves = ReadSymptoms(*resolves, "'resolves'", errors, draft);
  } else {
    remedy.resolves = draft.symptom_names;
  }
  if (const YamlNode* waives = fields.Take("waives")) {
    remedy.waives = ReadTexts(*waives, "'waives'", errors);
  }
  remedy.when = ReadWhen(fields, errors);
  if (const YamlNode* note = fields.Take("note")) {
    remedy.note = ReadText(*note, "'note'", errors).value_or("");
  }
  fields.RejectRest();
  draft.scenario.remedies.push_back(std::move(remedy));
}

void ReadDecoy(const YamlNode& key, const YamlNode& node, const TargetDescription& target,
               Errors& errors, Draft& draft) {
  Decoy decoy;
  decoy.name = key.text;
  SetPlace(key, errors, decoy);
  CheckArmName(key, draft, errors);
  const std::string what = "decoy '" + key.text + "'";
  Fields fields(node, what, errors);
  decoy.changes = ReadChanges(fields, what, target, errors);
  RequireChanges(decoy.changes, key, node, what, errors);
  if (const YamlNode* keeps = fields.Take("keeps")) {
    decoy.keeps = ReadSymptoms(*keeps, "'keeps'", errors, draft);
  } else {
    decoy.keeps = draft.symptom_names;
  }
  decoy.when = ReadWhen(fields, errors);
  if (const YamlNode* note = fields.Take("note")) {
    decoy.note = ReadText(*note, "'note'", errors).value_or("");
  }
  fields.RejectRest();
  draft.scenario.decoys.push_back(std::move(decoy));
}

}  // namespace

InjectedFault ReadFault(const YamlNode& key, const YamlNode& node, const TargetDescription& target,
                        Fields& fields, Errors& errors) {
  InjectedFault fault;
  fault.id = key.text;
  SetPlace(key, errors, fault);
  const YamlNode* name = fields.Require("fault");
  const FaultInfo* info = nullptr;
  if (name != nullptr) {
    fault.fault = ReadText(*name, "'fault'", errors).value_or("");
    info = target.FindFault(fault.fault);
    if (info == nullptr && !fault.fault.empty()) {
      const std::string nearest = NearestName(fault.fault, FaultNames(target));
      if (const std::string role = RoleLackedForFault(fault.fault, target); !role.empty()) {
        errors.AddUnserved("role:" + role);
      } else if (nearest.empty() && target.level < 2) {
        errors.AddUnserved("fault:" + fault.fault);
      }
      errors.Add(*name, "the target has no fault '" + fault.fault + "'",
                 nearest.empty() ? "'trainwreck list faults' shows them"
                                 : "did you mean '" + nearest + "'?");
    }
  }
  const YamlNode* with = fields.Take("with");
  if (with != nullptr && info != nullptr) fault.with = ReadParameters(*with, *info, errors);
  fault.trigger = ReadTrigger(fields, node, errors);
  if (info != nullptr && !info->has_trigger) RejectTrigger(node, *info, errors);
  if (info != nullptr) {
    for (const ParamInfo& param : info->params) {
      if (!param.default_value.is_null()) fault.with.emplace(param.name, param.default_value);
    }
  }
  for (const YamlNode& beside : node.keys) {
    if (info != nullptr && std::any_of(info->params.begin(), info->params.end(),
                                       [&](const ParamInfo& p) { return p.name == beside.text; })) {
      fields.Take(beside.text);
      errors.Add(beside, "'" + beside.text + "' is a parameter of the fault and belongs to 'with'",
                 "with: {" + beside.text + ": ...}");
      fault.with.emplace(beside.text, nullptr);
    }
  }
  return fault;
}

std::optional<formula::Amount> ReadAmount(const YamlNode& node, Errors& errors) {
  if (!node.IsScalar()) {
    errors.Add(node, std::string("'min_margin' must be an amount, but is ") + Describe(node));
    return std::nullopt;
  }
  std::optional<formula::Amount> amount = formula::ParseAmount(node.text);
  if (!amount || !(amount->value > 0)) {
    errors.Add(node, "'min_margin' must be an amount above 0 with its unit",
               "such as '10 steps', '1 octave', '3 s', or '0.2' for plain numbers");
    return std::nullopt;
  }
  return amount;
}

std::vector<std::string> ReadWhen(Fields& fields, Errors& errors) {
  const YamlNode* node = fields.Take("when");
  return node == nullptr ? std::vector<std::string>{} : ReadTexts(*node, "'when'", errors);
}

std::optional<Check> ReadCheck(const YamlNode& key, const YamlNode& node, const std::string& path,
                               Errors& errors, Draft& draft) {
  const YamlNode* text = &node;
  std::optional<formula::Amount> min_margin;
  std::string margin_reason;
  std::vector<std::string> when;
  if (!node.IsScalar()) {
    if (!node.IsMap()) {
      errors.Add(node, "'" + key.text + "' must be a formula or a map, but is " + Describe(node),
                 "such as {assert: FORMULA, min_margin: 10 steps}");
      return std::nullopt;
    }
    Fields fields(node, "check '" + key.text + "'", errors);
    text = fields.Require("assert");
    if (const YamlNode* amount = fields.Take("min_margin"))
      min_margin = ReadAmount(*amount, errors);
    if (const YamlNode* reason = fields.Take("reason")) {
      margin_reason = ReadText(*reason, "'reason'", errors).value_or("");
      if (node.Find("min_margin") == nullptr) {
        errors.Add(*reason, "'reason' belongs to 'min_margin', which is missing");
      }
    }
    when = ReadWhen(fields, errors);
    fields.RejectRest();
    if (text == nullptr) return std::nullopt;
  }
  draft.formulas[path] = {text, {}};
  std::optional<formula::Formula> parsed = ReadFormula(*text, "a formula", errors);
  if (!parsed) return std::nullopt;
  Check check{
      key.text, std::move(*parsed), min_margin, std::move(margin_reason), std::move(when), {}, {}};
  SetPlace(*text, errors, check);
  return check;
}

void CheckArmName(const YamlNode& key, const Draft& draft, Errors& errors) {
  CheckName(key, "the name of an arm", errors);
  if (key.text.starts_with(formula::kRoundingArm)) {
    errors.Add(key, "names of arms that begin with 'rounding_' are the harness's own",
               "choose another name");
  }
  for (const char* reserved : {"control", "fault", "reference"}) {
    if (key.text == reserved) {
      errors.Add(key, "'" + key.text + "' is the name of another arm", "choose another name");
    }
  }
  const std::pair<const char*, const char*> sections[] = {
      {"remedies", "a remedy"}, {"decoys", "a decoy"}, {"twins", "a twin"}};
  for (const auto& [section, what] : sections) {
    const YamlNode* arms = draft.root->Find(section);
    const YamlNode* first = arms == nullptr ? nullptr : arms->FindKey(key.text);
    if (first == &key) return;
    if (first == nullptr) continue;
    errors.Add(key, std::string(what) + " is called '" + key.text + "', too",
               "choose another name");
  }
}

void ReadFaults(const YamlNode& node, const TargetDescription& target, Errors& errors,
                Draft& draft) {
  if (!CheckFilledMap(node, "'inject'", errors, "such as inject: {NAME: {fault: FAULT}}")) return;
  for (std::size_t i = 0; i < node.keys.size(); ++i) {
    CheckName(node.keys[i], "the name of a fault", errors);
    draft.fault_ids.push_back(node.keys[i].text);
    Fields fields(node.items[i], "fault '" + node.keys[i].text + "'", errors);
    draft.scenario.faults.push_back(ReadFault(node.keys[i], node.items[i], target, fields, errors));
    fields.RejectRest();
  }
}

std::map<std::string, Json> ReadParameters(const YamlNode& node, const FaultInfo& info,
                                           Errors& errors) {
  std::map<std::string, Json> parameters;
  if (!CheckFilledMap(node, "'with'", errors)) return parameters;
  Fields fields(node, "the parameters of '" + info.name + "'", errors);
  for (const ParamInfo& param : info.params) {
    const YamlNode* value = fields.Take(param.name);
    if (value == nullptr) continue;
    std::optional<Json> json = ReadValue(*value, param, errors);
    // A broken value stands for itself: the parameter is not missing.
    parameters[param.name] = json ? *json : param.default_value;
  }
  fields.RejectRest();
  return parameters;
}

void ReadChecks(Fields& fields, Errors& errors, Draft& draft) {
  Scenario& scenario = draft.scenario;
  if (const YamlNode* node = fields.Take("healthy")) {
    scenario.healthy = ReadCheckMap(*node, "healthy", draft.healthy_names, errors, draft);
  }
  if (const YamlNode* node = fields.Take("symptoms")) {
    scenario.symptoms = ReadCheckMap(*node, "symptoms", draft.symptom_names, errors, draft);
  } else if (draft.root->Find("inject") != nullptr && draft.root->Find("breaks") == nullptr) {
    errors.Add(*draft.root, "the scenario claims no symptoms", "add 'symptoms: {NAME: FORMULA}'");
  }
  if (const YamlNode* node = fields.Take("breaks")) {
    scenario.breaks = ReadTexts(*node, "'breaks'", errors);
  }
  if (const YamlNode* node = fields.Take("quality")) {
    scenario.quality = ReadCheck(*draft.root->FindKey("quality"), *node, "quality", errors, draft);
  }
}

void ReadRemedies(Fields& fields, const TargetDescription& target, Errors& errors, Draft& draft) {
  const YamlNode* reason = fields.Take("no_remedy");
  if (reason != nullptr) {
    draft.scenario.no_remedy = ReadText(*reason, "'no_remedy'", errors).value_or("-");
  }
  const YamlNode* node = fields.Take("remedies");
  if (node == nullptr) {
    if (reason == nullptr && draft.root->Find("inject") != nullptr) {
      errors.Add(*draft.root, "the scenario has no remedies",
                 "add 'remedies: {NAME: {set: ...}}', or 'no_remedy: REASON'");
    }
    return;
  }
  if (!CheckFilledMap(*node, "'remedies'", errors)) return;
  for (std::size_t i = 0; i < node->keys.size(); ++i) {
    ReadRemedy(node->keys[i], node->items[i], target, errors, draft);
  }
}

void ReadDecoys(Fields& fields, const TargetDescription& target, Errors& errors, Draft& draft) {
  const YamlNode* node = fields.Take("decoys");
  if (node == nullptr || !CheckFilledMap(*node, "'decoys'", errors)) return;
  for (std::size_t i = 0; i < node->keys.size(); ++i) {
    ReadDecoy(node->keys[i], node->items[i], target, errors, draft);
  }
}

bool IsAllBut(const YamlNode& node) {
  const YamlNode* first = node.IsList() && !node.items.empty() ? &node.items[0] : &node;
  return first->IsScalar() && first->text.rfind(kAllBut, 0) == 0;
}

Position PlaceInFormula(const YamlNode& node, std::size_t from, std::size_t to,
                        const Errors& errors) {
  const std::string& line = errors.SourceLine(node.source, node.position.line);
  const std::size_t begin = node.position.column - 1 + (node.is_plain ? 0 : 1);
  Position position = node.position;
  // Folded lines, block scalars and escapes move the bytes: then only the start is sure.
  if (begin >= line.size() || line.compare(begin, node.text.size(), node.text) != 0) {
    return position;
  }
  position.column = static_cast<int>(begin + from) + 1;
  position.length = static_cast<int>(to > from ? to - from : 1);
  return position;
}

}  // namespace trainwreck
