#include "harness/spec/defaults.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "harness/text/words.h"
#include "harness/yaml/fields.h"

namespace trainwreck {
namespace {

namespace fs = std::filesystem;

YamlNode Broken() {
  YamlNode node;
  node.kind = YamlNode::Kind::kBad;
  return node;
}

// One file, without what cannot stand in it.
YamlNode ParseOne(const std::string& file, Errors& errors) {
  std::string why;
  const std::optional<std::string> text = ReadSmallFile(file, why);
  const int source = errors.AddSource(file, text.value_or(""));
  if (!text) {
    errors.Add(source, {}, "cannot read the defaults of this folder: " + why);
    return Broken();
  }
  std::optional<YamlNode> root = ParseYaml(*text, source, errors);
  if (!root) return Broken();
  if (!root->IsMap()) {
    errors.Add(*root, std::string("defaults must be a map, but are ") + Describe(*root));
    return Broken();
  }
  YamlNode kept = *root;
  kept.keys.clear();
  kept.items.clear();
  const std::vector<std::string>& known = DefaultsKeys();
  for (std::size_t i = 0; i < root->keys.size(); ++i) {
    const YamlNode& key = root->keys[i];
    if (key.text.rfind("x-", 0) == 0) continue;
    if (std::count(known.begin(), known.end(), key.text) == 0) {
      errors.Add(key, "'" + key.text + "' cannot stand in the defaults of a folder",
                 "they may give: " + Join(DefaultsKeys()));
      continue;
    }
    kept.keys.push_back(key);
    kept.items.push_back(root->items[i]);
  }
  return kept;
}

}  // namespace

const std::vector<std::string>& DefaultsKeys() {
  static const std::vector<std::string> kKeys = {"apiVersion", "kind",  "tags",  "requires",
                                                 "recipe",     "seeds", "budget"};
  return kKeys;
}

bool IsDefaultsFile(const std::string& path) { return fs::path(path).filename() == kDefaultsFile; }

std::string NameBelow(const std::string& file, const std::string& scenarios_root) {
  const fs::path path(file);
  const fs::path stem = path.parent_path() / path.stem();
  fs::path relative = stem.lexically_normal().lexically_relative(
      fs::path(scenarios_root.empty() ? "." : scenarios_root).lexically_normal());
  if (relative.empty() || *relative.begin() == "..") {
    std::error_code error;
    relative = fs::absolute(stem, error)
                   .lexically_normal()
                   .lexically_relative(fs::absolute(scenarios_root, error).lexically_normal());
  }
  const bool is_inside = !relative.empty() && *relative.begin() != "..";
  return is_inside ? relative.generic_string() : "";
}

std::optional<YamlNode> ParseDefaults(const std::string& file, const std::string& scenarios_root,
                                      Errors& errors) {
  const std::string name = NameBelow(file, scenarios_root);
  if (name.empty()) return std::nullopt;
  std::optional<YamlNode> nearer;
  for (fs::path below(name);;) {
    below = below.parent_path();
    const fs::path path = (fs::path(scenarios_root) / below / kDefaultsFile).lexically_normal();
    std::error_code error;
    if (fs::exists(path, error)) {
      YamlNode here = ParseOne(path.string(), errors);
      if (!here.IsMap()) return here;
      if (nearer) MergeInto(here, std::move(*nearer));
      nearer = std::move(here);
    }
    if (below.empty()) return nearer;
  }
}

void MergeInto(YamlNode& base, YamlNode child) {
  for (std::size_t i = 0; i < child.keys.size(); ++i) {
    auto same = std::find_if(base.keys.begin(), base.keys.end(),
                             [&](const YamlNode& key) { return key.text == child.keys[i].text; });
    if (same == base.keys.end()) {
      base.keys.push_back(std::move(child.keys[i]));
      base.items.push_back(std::move(child.items[i]));
      continue;
    }
    YamlNode& value = base.items[same - base.keys.begin()];
    *same = std::move(child.keys[i]);
    if (value.IsMap() && child.items[i].IsMap() && !child.items[i].keys.empty()) {
      MergeInto(value, std::move(child.items[i]));
    } else {
      value = std::move(child.items[i]);
    }
  }
}

}  // namespace trainwreck
