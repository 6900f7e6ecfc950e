#include "harness/spec/left_out.h"

#include <string>
#include <utility>

#include "harness/spec/recipe_reader.h"

namespace trainwreck {
namespace {

YamlNode* SectionOf(YamlNode& root, const std::string& name) {
  for (std::size_t i = 0; i < root.keys.size(); ++i) {
    if (root.keys[i].text == name && root.items[i].IsMap()) return &root.items[i];
  }
  return nullptr;
}

}  // namespace

std::vector<LeftOut> LeaveOutArms(YamlNode& root, const TargetDescription& target) {
  std::vector<LeftOut> all;
  for (const auto& [section, kind] : {std::pair{"remedies", ArmKind::kRemedy},
                                      {"decoys", ArmKind::kDecoy},
                                      {"twins", ArmKind::kTwin}}) {
    YamlNode* arms = SectionOf(root, section);
    if (arms == nullptr) continue;
    std::vector<LeftOut> here;
    std::vector<YamlNode> keys, items;
    for (std::size_t i = 0; i < arms->keys.size(); ++i) {
      std::string role = LackingRole(arms->items[i], target);
      if (!role.empty()) {
        here.push_back({kind, arms->keys[i].text, std::move(role)});
        continue;
      }
      keys.push_back(arms->keys[i]);
      items.push_back(arms->items[i]);
    }
    if (here.empty() || (keys.empty() && kind != ArmKind::kDecoy)) continue;
    arms->keys = std::move(keys);
    arms->items = std::move(items);
    arms->is_partial = true;  // nobody is to blame where it is empty now
    all.insert(all.end(), here.begin(), here.end());
  }
  return all;
}

}  // namespace trainwreck
