#include "harness/plan/device.h"

#include <algorithm>

#include "harness/protocol/recipe_view.h"

namespace trainwreck {
namespace {

constexpr char kAuto[] = "auto";
constexpr char kCpu[] = "cpu";
constexpr char kOwnLauncher[] = "own";

bool Contains(const std::vector<std::string>& texts, const std::string& text) {
  return std::find(texts.begin(), texts.end(), text) != texts.end();
}

// What is missing to give each rank a device of the kind; empty: nothing.
std::string Lacking(const std::string& kind, int ranks, const TargetDescription& target,
                    const std::vector<std::string>& beyond) {
  std::string feature = "device:" + kind;
  if (!Contains(target.features, feature) && !Contains(beyond, feature)) return feature;
  const int count = target.CountDevices(kind);
  const bool shared = kind == kCpu || count == 0;  // 0: the target does not say how many
  return shared || count >= ranks ? "" : feature + ":" + std::to_string(ranks);
}

}  // namespace

DevicePick PickDevice(const Recipe& recipe, const Requirements& needs,
                      const TargetDescription& target, const std::vector<std::string>& beyond) {
  const ParamInfo* key = target.FindRecipeKey(kDeviceKey);
  const RecipeView view(recipe);
  const std::optional<std::string> wanted = view.Text(kDeviceKey);
  if (key == nullptr || !Contains(key->choices, kAuto) || !wanted) return {};
  const int ranks =
      std::max(view.Int(kRanksKey).value_or(1), view.Int(kResumeRanksKey).value_or(0));
  auto pick = [&](const std::string& kind) {
    return DevicePick{kind, Lacking(kind, ranks, target, beyond)};
  };
  if (*wanted != kAuto) {
    const std::string& kind = *wanted;
    if (needs.devices.empty() || Contains(needs.devices, kind)) {
      // The ranks of another launcher may be on other machines: each looks for its device there.
      const bool are_here = view.Text(kLauncherKey).value_or(kOwnLauncher) == kOwnLauncher;
      return are_here ? pick(kind) : DevicePick{kind, Lacking(kind, 1, target, beyond)};
    }
    return DevicePick{kind, "device:" + needs.devices.front()};
  }
  for (const std::string& kind : needs.devices) {
    if (kind != kCpu) return pick(kind);
  }
  if (needs.devices.empty()) {
    for (const DeviceInfo& device : target.devices) {
      if (device.kind != kCpu && pick(device.kind).lacking.empty()) return pick(device.kind);
    }
  }
  return pick(kCpu);
}

std::string DescribeDevice(const std::string& kind, const TargetDescription& target) {
  std::vector<std::string> names;
  for (const DeviceInfo& device : target.devices) {
    if (device.kind != kind || device.name.empty() || Contains(names, device.name)) continue;
    names.push_back(device.name);
  }
  std::string text = kind;
  for (std::size_t i = 0; i < names.size(); ++i) text += (i == 0 ? " (" : ", ") + names[i];
  return names.empty() ? text : text + ")";
}

}  // namespace trainwreck
