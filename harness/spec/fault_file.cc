#include "harness/spec/fault_file.h"

#include <algorithm>
#include <optional>
#include <sstream>
#include <utility>

#include "harness/spec/recipe_reader.h"
#include "harness/text/nearest.h"
#include "harness/yaml/fields.h"
#include "harness/yaml/yaml.h"

namespace trainwreck {
namespace {

constexpr char kSuiteFile[] = "faults/recipe.yaml";
constexpr std::size_t kMaxDocuments = 256;

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(std::move(line));
  return lines;
}

bool BeginsDocument(const std::string& line) {
  return line.rfind("---", 0) == 0 && (line.size() == 3 || line.find_first_of(" \t\r") == 3);
}

bool SaysNothing(const std::string& line) {
  const std::size_t first = line.find_first_not_of(" \t\r");
  return first == std::string::npos || line[first] == '#' || BeginsDocument(line);
}

// Each document behind as many empty lines as there are before it, so that places stay right.
std::vector<std::string> Documents(const std::string& text) {
  std::vector<std::string> documents;
  std::string document;
  std::size_t line_count = 0;
  bool says_something = false;
  const auto finish = [&] {
    if (says_something) documents.push_back(document);
    says_something = false;
  };
  for (const std::string& line : Lines(text)) {
    if (BeginsDocument(line)) {
      finish();
      document.assign(line_count, '\n');
      if (documents.size() > kMaxDocuments) break;
    }
    document += line + "\n";
    says_something = says_something || !SaysNothing(line);
    ++line_count;
  }
  finish();
  return documents;
}

bool IsFaultName(const std::string& name) {
  const std::size_t dot = name.find('.');
  const auto is_word = [](const std::string& word) {
    return !word.empty() && word[0] >= 'a' && word[0] <= 'z' &&
           word.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string::npos;
  };
  return dot != std::string::npos && name.size() <= 64 && is_word(name.substr(0, dot)) &&
         is_word(name.substr(dot + 1));
}

// One document to one fault.
class FaultReader {
 public:
  FaultReader(const YamlNode& root, const TargetDescription& target, Errors& errors)
      : root_(root), target_(target), errors_(errors) {}

  FaultInfo Read() {
    fault_.has_trigger = false;  // the recipe is changed once, before any step
    fault_.evidence = "each key, and its value before and after";
    Fields fields(root_, "the fault", errors_, "such as name: recipe.high_lr");
    if (!fields.is_map()) return fault_;
    ReadHead(fields);
    if (const YamlNode* node = fields.Take("parameters")) ReadParameters(*node);
    const YamlNode* set = fields.Take("set");
    const YamlNode* scale = fields.Take("scale");
    if (set != nullptr) ReadAmendments(*set, Amendment::Op::kSet);
    if (scale != nullptr) ReadAmendments(*scale, Amendment::Op::kScale);
    if (const YamlNode* node = fields.Take("requires")) ReadRequirements(*node);
    fields.RejectRest(/*allow_notes=*/true);
    if (set == nullptr && scale == nullptr) {
      errors_.Add(root_, "the fault changes nothing: it has neither 'set' nor 'scale'",
                  "add 'scale: {KEY: FACTOR}' or 'set: {KEY: VALUE}'");
    } else {
      RejectUnusedParameters();
    }
    return fault_;
  }

 private:
  void ReadHead(Fields& fields) {
    if (const YamlNode* node = fields.Require("apiVersion", "apiVersion: trainwreck/v1");
        node != nullptr && node->text != kApiVersion) {
      errors_.Add(*node, std::string("'apiVersion' must be ") + kApiVersion);
    }
    if (const YamlNode* node = fields.Require("kind", "kind: Fault");
        node != nullptr && node->text != "Fault") {
      errors_.Add(*node, "'kind' must be Fault here", "a scenario stands in a file of its own");
    }
    if (const YamlNode* node = fields.Require("name", "name: recipe.NAME")) {
      fault_.name = ReadText(*node, "'name'", errors_).value_or("");
      if (!fault_.name.empty() && !IsFaultName(fault_.name)) {
        errors_.Add(*node, "a fault's name is SITE.NAME, of a-z, 0-9 and '_', letters first",
                    "such as recipe.high_lr");
      }
    }
    if (const YamlNode* node = fields.Require("summary", "summary: What it does.")) {
      fault_.doc = ReadText(*node, "'summary'", errors_).value_or("");
    }
  }

  void ReadParameters(const YamlNode& node) {
    if (!CheckFilledMap(node, "'parameters'", errors_, "such as {factor: {type: number}}")) return;
    for (std::size_t i = 0; i < node.keys.size(); ++i) {
      parameter_keys_.push_back(&node.keys[i]);
      CheckName(node.keys[i], "the name of a parameter", errors_);
      fault_.params.push_back(ReadParameter(node.keys[i], node.items[i]));
    }
  }

  ParamInfo ReadParameter(const YamlNode& key, const YamlNode& node) {
    ParamInfo info;
    info.name = key.text;
    Fields fields(node, "parameter '" + key.text + "'", errors_, "such as {type: number}");
    if (!fields.is_map()) return info;
    bool is_typed = false;
    if (const YamlNode* type = fields.Require("type", "type: number")) {
      is_typed = ReadType(*type, info);
    }
    for (auto [name, bound] : {std::pair{"min", &info.min}, std::pair{"max", &info.max}}) {
      const YamlNode* value = fields.Take(name);
      if (value == nullptr) continue;
      *bound = ReadNumber(*value, std::string("'") + name + "'", errors_);
      if (is_typed && !IsNumeric(info.type) && info.type != ValueType::kIntList) {
        errors_.Add(*value, std::string("'") + name + "' is for numbers, and '" + key.text +
                                "' is of type " + ToString(info.type));
      }
    }
    if (info.min && info.max && *info.max < *info.min) {
      errors_.Add(key, "'max' of '" + key.text + "' is below its 'min'");
    }
    if (const YamlNode* choices = fields.Take("choices")) {
      info.choices = ReadTexts(*choices, "'choices'", errors_);
      if (is_typed && info.type != ValueType::kString) {
        errors_.Add(*choices, "'choices' are for type string, and '" + key.text + "' is of type " +
                                  ToString(info.type));
      }
    }
    if (const YamlNode* unit = fields.Take("unit")) {
      info.unit = ReadText(*unit, "'unit'", errors_).value_or("");
    }
    if (const YamlNode* doc = fields.Take("doc")) {
      info.doc = ReadText(*doc, "'doc'", errors_).value_or("");
    }
    if (const YamlNode* value = fields.Take("default"); value != nullptr && is_typed) {
      ParamInfo as_default = info;
      as_default.name = "default";
      info.default_value = ReadValue(*value, as_default, errors_).value_or(Json());
    }
    fields.RejectRest();
    return info;
  }

  bool ReadType(const YamlNode& node, ParamInfo& info) {
    static constexpr ValueType kTypes[] = {ValueType::kBool,       ValueType::kInt,
                                           ValueType::kNumber,     ValueType::kString,
                                           ValueType::kStringList, ValueType::kIntList};
    std::vector<std::string> names;
    for (const ValueType type : kTypes) {
      names.push_back(ToString(type));
      if (node.text != ToString(type)) continue;
      info.type = type;
      return true;
    }
    errors_.Add(node, "'type' must be bool, int, number, string, strings or ints",
                node.text == "float" || node.text == "double" ? "write number"
                                                              : SuggestName(node.text, names));
    return false;
  }

  void ReadAmendments(const YamlNode& node, Amendment::Op op) {
    const std::string what = op == Amendment::Op::kSet ? "'set'" : "'scale'";
    for (const RecipeLeaf& leaf : FlattenRecipe(node, what + " of the fault", target_, errors_)) {
      Amendment amendment{.key = leaf.info->name, .op = op};
      const bool is_twice =
          std::any_of(fault_.amends.begin(), fault_.amends.end(),
                      [&](const Amendment& other) { return other.key == amendment.key; });
      if (is_twice) {
        errors_.Add(*leaf.key, "'" + amendment.key + "' is in 'set' and in 'scale'",
                    "a fault changes a key once");
        continue;
      }
      if (op == Amendment::Op::kScale && !CheckScalable(leaf, errors_)) continue;
      if (leaf.value->IsScalar() && leaf.value->text.starts_with('$')) {
        ReadReference(leaf, amendment);
      } else if (leaf.value->IsScalar() && IsParameter(leaf.value->text) &&
                 IsNumeric(leaf.info->type)) {
        errors_.Add(*leaf.value, "'" + amendment.key + "' must be a number or a parameter",
                    "write $" + leaf.value->text);
      } else if (op == Amendment::Op::kSet) {
        amendment.value = ReadValue(*leaf.value, *leaf.info, errors_).value_or(Json());
      } else {
        const auto factor = ReadNumber(*leaf.value, "'" + leaf.info->name + "'", errors_);
        amendment.value = factor ? Json(*factor) : Json();
      }
      fault_.amends.push_back(std::move(amendment));
    }
  }

  bool IsParameter(const std::string& name) const {
    return std::any_of(fault_.params.begin(), fault_.params.end(),
                       [&](const ParamInfo& param) { return param.name == name; });
  }

  // `$factor` stands for what a scenario gives the parameter.
  void ReadReference(const RecipeLeaf& leaf, Amendment& amendment) {
    const std::string name = leaf.value->text.substr(1);
    std::vector<std::string> known;
    for (const ParamInfo& param : fault_.params) {
      known.push_back(param.name);
      if (param.name != name) continue;
      amendment.param = name;
      CheckFits(param, leaf, amendment.op);
      return;
    }
    std::string hint = SuggestName(name, known);
    if (known.empty()) hint = "add 'parameters: {" + name + ": {type: number}}'";
    errors_.Add(*leaf.value, "'$" + name + "' is none of the fault's parameters", hint);
  }

  void CheckFits(const ParamInfo& param, const RecipeLeaf& leaf, Amendment::Op op) {
    const ParamInfo& key = *leaf.info;
    const std::string whose = "parameter '" + param.name + "'";
    const std::string type = ToString(param.type);
    if (op == Amendment::Op::kScale) {
      if (!IsNumeric(param.type)) {
        errors_.Add(*leaf.value, whose + " is of type " + type + " and cannot be a factor",
                    "declare it with 'type: number'");
      }
      return;
    }
    if (param.type != key.type &&
        !(param.type == ValueType::kInt && key.type == ValueType::kNumber)) {
      errors_.Add(*leaf.value,
                  whose + " is of type " + type + ", and '" + key.name + "' is of type " +
                      ToString(key.type),
                  std::string("declare it with 'type: ") + ToString(key.type) + "'");
      return;
    }
    std::vector<Json> values(param.choices.begin(), param.choices.end());
    if (!param.default_value.is_null()) values.push_back(param.default_value);
    for (const Json& value : values) {
      const std::string wrong = CheckValue(key, value);
      if (wrong.empty()) continue;
      errors_.Add(*leaf.value,
                  whose + " may be " + value.dump() + ", and '" + key.name + "' " + wrong);
      return;
    }
  }

  void RejectUnusedParameters() {
    for (const YamlNode* key : parameter_keys_) {
      const bool is_used = IsReferred(root_.Find("set"), "$" + key->text) ||
                           IsReferred(root_.Find("scale"), "$" + key->text);
      if (is_used) continue;
      errors_.Add(*key, "parameter '" + key->text + "' changes nothing",
                  "write '$" + key->text + "' in 'set' or 'scale'");
    }
  }

  static bool IsReferred(const YamlNode* node, const std::string& text) {
    if (node == nullptr) return false;
    if (node->IsScalar()) return node->text == text;
    return std::any_of(node->items.begin(), node->items.end(),
                       [&](const YamlNode& item) { return IsReferred(&item, text); });
  }

  void ReadRequirements(const YamlNode& node) {
    if (!CheckFilledMap(node, "'requires'", errors_)) return;
    Fields fields(node, "'requires'", errors_);
    if (const YamlNode* value = fields.Take("ranks")) {
      fault_.min_ranks = ReadInt(*value, "'ranks'", errors_, 1, 4096).value_or(1);
    }
    if (const YamlNode* value = fields.Take("features")) {
      fault_.features = ReadTexts(*value, "'features'", errors_);
    }
    fields.RejectRest();
  }

  const YamlNode& root_;
  const TargetDescription& target_;
  Errors& errors_;
  FaultInfo fault_;
  std::vector<const YamlNode*> parameter_keys_;
};

// Whether it asks for keys of another target: then nothing of it is wrong here.
bool IsForAnother(const YamlNode& root, const TargetDescription& target,
                  const LoadOptions& options) {
  const std::vector<std::string> lacking = LackingKeys(root, target);
  return std::any_of(lacking.begin(), lacking.end(), [&](const std::string& key) {
    return options.elsewhere.contains("recipe:" + key);
  });
}

bool IsLacking(const std::vector<std::string>& unserved, const LoadOptions& options) {
  return std::any_of(unserved.begin(), unserved.end(), [&](const std::string& what) {
    return !options.is_own || IsElsewhere(what, options);
  });
}

}  // namespace

bool IsFaultFile(const std::string& path) {
  std::string why;
  const std::string text = ReadSmallFile(path, why).value_or("");
  if (text.starts_with('{')) {  // JSON is YAML
    Errors errors;
    const std::optional<YamlNode> root = ParseYaml(text, errors.AddSource(path, text), errors);
    const YamlNode* kind = root ? root->Find("kind") : nullptr;
    return kind != nullptr && kind->text == "Fault";
  }
  for (const std::string& line : Lines(text)) {
    std::string bare;
    for (const char c : line.substr(0, line.find(" #"))) {
      if (std::string(" \t\r'\"").find(c) == std::string::npos) bare += c;
    }
    if (line.rfind("kind", 0) == 0 && bare == "kind:Fault") return true;
  }
  return false;
}

const std::string& SuiteFaults() {
  static const std::string text =
#include "faults/recipe.inc"
      ;
  return text;
}

std::string RoleLackedForFault(const std::string& fault, const TargetDescription& target) {
  for (const std::string& document : Documents(SuiteFaults())) {
    if (document.find("\nname: " + fault + "\n") == std::string::npos) continue;
    Errors errors;
    const std::optional<YamlNode> root =
        ParseYaml(document, errors.AddSource(kSuiteFile, SuiteFaults()), errors);
    return root ? LackingRole(*root, target) : "";
  }
  return "";
}

FaultCatalogue::FaultCatalogue(TargetDescription& target) : target_(target) {
  for (const FaultInfo& fault : target.faults) places_[fault.name] = "is one of the target's own";
}

void FaultCatalogue::AddSuite() {
  for (const std::string& document : Documents(SuiteFaults())) {
    Errors errors;
    const int source = errors.AddSource(kSuiteFile, SuiteFaults());
    const std::optional<YamlNode> root = ParseYaml(document, source, errors);
    if (!root) continue;
    FaultInfo fault = FaultReader(*root, target_, errors).Read();
    if (!errors.empty()) continue;  // of keys that this target lacks: a test reads them all
    const bool is_new = places_.emplace(fault.name, "comes with trainwreck").second;
    if (is_new) target_.faults.push_back(std::move(fault));
  }
}

std::vector<Diagnostic> FaultCatalogue::AddFile(const std::string& path,
                                                const LoadOptions& options) {
  std::string why;
  const std::optional<std::string> text = ReadSmallFile(path, why);
  if (text) return AddText(*text, path, options);
  return {{path, {}, "cannot read the fault: " + why, "", ""}};
}

std::vector<Diagnostic> FaultCatalogue::AddText(const std::string& text, const std::string& file,
                                                const LoadOptions& options) {
  std::vector<Diagnostic> all;
  const std::vector<std::string> documents = Documents(text);
  if (documents.size() > kMaxDocuments || text.size() > kMaxScenarioBytes) {
    return {{file, {}, "the file is too large: at most 256 faults and 256 KiB", "", ""}};
  }
  for (const std::string& document : documents) {
    Errors errors;
    const int source = errors.AddSource(file, text);
    const std::optional<YamlNode> root = ParseYaml(document, source, errors);
    if (root && IsForAnother(*root, target_, options)) continue;
    FaultInfo fault;
    if (root) fault = FaultReader(*root, target_, errors).Read();
    if (IsLacking(errors.unserved(), options)) continue;
    if (const YamlNode* name = root ? root->Find("name") : nullptr;
        name != nullptr && !fault.name.empty()) {
      const auto [place, is_new] = places_.emplace(
          fault.name, "stands in " + file + ":" + std::to_string(name->position.line));
      if (!is_new) {
        errors.Add(*name, "there is a fault '" + fault.name + "' already: it " + place->second,
                   "choose another name");
      }
    }
    const std::vector<Diagnostic> found = errors.Sorted();
    all.insert(all.end(), found.begin(), found.end());
    if (found.empty()) target_.faults.push_back(std::move(fault));
  }
  return all;
}

}  // namespace trainwreck
