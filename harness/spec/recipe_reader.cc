#include "harness/spec/recipe_reader.h"

#include <algorithm>
#include <map>
#include <optional>

#include "harness/protocol/recipe_view.h"
#include "harness/text/nearest.h"

namespace trainwreck {
namespace {

// Walks a map of the recipe down to the target's keys.
class Flattener {
 public:
  Flattener(const std::string& what, const TargetDescription& target, Errors& errors)
      : what_(what), target_(target), errors_(errors) {}

  void Walk(const YamlNode& map, const std::string& prefix) {
    for (std::size_t i = 0; i < map.keys.size(); ++i) {
      const YamlNode& key = map.keys[i];
      const YamlNode& value = map.items[i];
      const std::string path = prefix.empty() ? key.text : prefix + "." + key.text;
      if (const ParamInfo* info = ResolveKey(target_, path)) {
        Keep({&key, &value, info, path.starts_with(kRolePrefix)});
      } else if (path + "." == kRolePrefix && value.IsMap() && !value.keys.empty()) {
        Walk(value, path);
      } else if (path.starts_with(kRolePrefix)) {
        RejectRole(key, path);
      } else if (!IsSection(path)) {
        RejectUnknown(key, path, prefix, value.IsMap());
      } else if (value.IsMap() && !value.keys.empty()) {
        Walk(value, path);
      } else {
        errors_.Add(value, "'" + path + "' holds several keys and must be a map that is not empty",
                    "such as {" + FirstOf(path).substr(path.size() + 1) + ": ...}");
      }
    }
  }

  const std::vector<RecipeLeaf>& leaves() const { return leaves_; }

 private:
  void Keep(RecipeLeaf leaf) {
    auto [found, is_new] = by_name_.emplace(leaf.info->name, leaves_.size());
    if (is_new) {
      leaves_.push_back(leaf);
      return;
    }
    RecipeLeaf& first = leaves_[found->second];
    if (first.key->source == leaf.key->source) {
      errors_.Add(*leaf.key, "'" + leaf.info->name + "' is given twice",
                  "first on line " + std::to_string(first.key->position.line));
    } else if (leaf.key->source < first.key->source) {
      first = leaf;  // the extending file outdoes the one that it extends
    }
  }

  bool IsSection(const std::string& path) const { return !FirstOf(path).empty(); }

  std::string FirstOf(const std::string& section) const {
    for (const ParamInfo& info : target_.recipe) {
      if (info.name.rfind(section + ".", 0) == 0) return info.name;
    }
    return "";
  }

  // A target of somebody's own has few keys: all of them are shown.
  std::string KeysHint(const std::string& path) const {
    constexpr std::size_t kShown = 12;
    const std::string last = path.substr(path.rfind('.') + 1);
    if (target_.FindRecipeKey(last) != nullptr) return "did you mean '" + last + "'?";
    std::size_t count = 0;
    std::string keys;
    for (const ParamInfo& info : target_.recipe) {
      if (info.name.rfind("supervisor.", 0) == 0) continue;
      keys += (count++ == 0 ? "" : ", ") + info.name;
    }
    return target_.level < 2 && count <= kShown
               ? "known: " + keys
               : "'trainwreck list recipe' shows the target's keys";
  }

  void RejectRole(const YamlNode& key, const std::string& path) {
    const std::string role = path.substr(std::string(kRolePrefix).size());
    if (RoleNamed(path)) {
      errors_.AddUnserved("role:" + role);
      errors_.Add(key, "no recipe key of the target has the role '" + role + "' (" + what_ + ")",
                  "add 'role: " + role + "' to that key of the target");
      return;
    }
    std::vector<std::string> known;
    for (const std::string& name : KeyRoleNames()) {
      if (RoleNamed(kRolePrefix + name)) known.push_back(name);
    }
    errors_.Add(key, "unknown role '" + role + "' in " + what_, SuggestName(role, known));
  }

  void RejectUnknown(const YamlNode& key, const std::string& path, const std::string& prefix,
                     bool is_map) {
    std::vector<std::string> known;
    for (const ParamInfo& info : target_.recipe) {
      const std::size_t dot = info.name.find('.', prefix.size() + 1);
      known.push_back(is_map && dot != std::string::npos ? info.name.substr(0, dot) : info.name);
    }
    std::string nearest = NearestName(path, known);
    if (nearest.empty()) {
      // The last word alone: `lr` for `optimizer.lr`.
      const std::string ending = "." + key.text;
      for (const ParamInfo& info : target_.recipe) {
        const std::string& name = info.name;
        if (name.size() > ending.size() &&
            name.compare(name.size() - ending.size(), ending.size(), ending) == 0) {
          nearest = name;
          break;
        }
      }
    } else if (!prefix.empty() && nearest.rfind(prefix + ".", 0) == 0) {
      nearest = nearest.substr(prefix.size() + 1);
    }
    if (nearest.empty() && target_.level < 2) errors_.AddUnserved("recipe:" + path);
    errors_.Add(key, "unknown recipe key '" + path + "' in " + what_,
                nearest.empty() ? KeysHint(path) : "did you mean '" + nearest + "'?");
  }

  const std::string& what_;
  const TargetDescription& target_;
  Errors& errors_;
  std::vector<RecipeLeaf> leaves_;
  std::map<std::string, std::size_t> by_name_;
};

void FindLackingKeys(const YamlNode& map, const std::string& prefix,
                     const TargetDescription& target, std::vector<std::string>& lacking) {
  for (std::size_t i = 0; i < map.keys.size(); ++i) {
    const std::string path = prefix + map.keys[i].text;
    if (ResolveKey(target, path) != nullptr) continue;
    if (map.items[i].IsMap() && !RoleNamed(path)) {
      FindLackingKeys(map.items[i], path + ".", target, lacking);
    } else {
      lacking.push_back(path);
    }
  }
}

}  // namespace

std::vector<std::string> LackingKeys(const YamlNode& changes, const TargetDescription& target) {
  std::vector<std::string> lacking;
  for (const char* key : {"set", "scale"}) {
    if (const YamlNode* map = changes.Find(key)) FindLackingKeys(*map, "", target, lacking);
  }
  return lacking;
}

std::string LackingRole(const YamlNode& changes, const TargetDescription& target) {
  for (const std::string& key : LackingKeys(changes, target)) {
    if (const auto role = RoleNamed(key)) return ToString(*role);
  }
  return "";
}

std::vector<RecipeLeaf> FlattenRecipe(const YamlNode& node, const std::string& what,
                                      const TargetDescription& target, Errors& errors) {
  if (!CheckFilledMap(node, what, errors)) return {};
  Flattener flattener(what, target, errors);
  flattener.Walk(node, "");
  return flattener.leaves();
}

bool CheckScalable(const RecipeLeaf& leaf, Errors& errors) {
  if (IsNumeric(leaf.info->type)) return true;
  errors.Add(*leaf.key, "'" + leaf.info->name + "' is no number and cannot be scaled", "use 'set'");
  return false;
}

std::vector<std::pair<std::string, Json>> ReadRecipe(const YamlNode& node, const std::string& what,
                                                     const TargetDescription& target,
                                                     Errors& errors) {
  std::vector<std::pair<std::string, Json>> set;
  for (const RecipeLeaf& leaf : FlattenRecipe(node, what, target, errors)) {
    std::optional<Json> value = ReadValue(*leaf.value, *leaf.info, errors);
    if (!value && leaf.is_by_role && target.level < 2) {
      errors.AddUnserved(std::string(kValuePrefix) +
                         leaf.info->name);  // it has bounds or a type of its own
    }
    if (value) set.emplace_back(leaf.info->name, std::move(*value));
  }
  return set;
}

Changes ReadChanges(Fields& fields, const std::string& what, const TargetDescription& target,
                    Errors& errors) {
  Changes changes;
  if (const YamlNode* set = fields.Take("set")) {
    changes.set = ReadRecipe(*set, "'set' of " + what, target, errors);
  }
  const YamlNode* scale = fields.Take("scale");
  if (scale == nullptr) return changes;
  for (const RecipeLeaf& leaf : FlattenRecipe(*scale, "'scale' of " + what, target, errors)) {
    if (!CheckScalable(leaf, errors)) continue;
    std::optional<double> factor = ReadNumber(*leaf.value, "'" + leaf.info->name + "'", errors);
    if (factor) changes.scale.emplace_back(leaf.info->name, *factor);
  }
  return changes;
}

}  // namespace trainwreck
