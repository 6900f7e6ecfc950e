#include "harness/spec/matrix_reader.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "harness/spec/parts_reader.h"
#include "harness/spec/point_parts.h"
#include "harness/spec/recipe_reader.h"
#include "harness/yaml/fields.h"

namespace trainwreck {
namespace {

constexpr std::size_t kMaxPoints = 64;

struct Axis {
  std::string name;
  std::vector<Point> points;
};

struct Exclusion {
  std::map<std::string, std::string> coordinates;  // axis -> point
  const YamlNode* node = nullptr;
  bool is_used = false;
};

class MatrixReader {
 public:
  MatrixReader(const std::map<std::string, const FaultInfo*>& faults,
               const TargetDescription& target, Errors& errors)
      : faults_(faults), target_(target), errors_(errors) {}

  std::vector<Point> Read(const YamlNode& node) {
    if (!CheckFilledMap(node, "'matrix'", errors_)) return {};
    std::size_t count = 1;
    for (std::size_t i = 0; i < node.keys.size(); ++i) {
      if (node.keys[i].text == "exclude") continue;
      ReadAxis(node.keys[i], node.items[i]);
      count *= std::max<std::size_t>(axes_.empty() ? 1 : axes_.back().points.size(), 1);
      if (count > kMaxPoints) {
        errors_.Add(node.keys[i],
                    "the matrix has more than " + std::to_string(kMaxPoints) + " points");
        return {};
      }
    }
    const YamlNode* exclude = node.Find("exclude");
    if (exclude != nullptr) ReadExclusions(*exclude);
    if (!axes_.empty()) return Multiply(count, node);
    if (node.keys.size() == 1) errors_.Add(node.keys[0], "'matrix' has no axis");
    return {};
  }

 private:
  void ReadAxis(const YamlNode& key, const YamlNode& node) {
    CheckName(key, "the name of an axis", errors_);
    if (!CheckFilledMap(node, "axis '" + key.text + "'", errors_)) return;
    Axis axis{key.text, {}};
    for (std::size_t i = 0; i < node.keys.size(); ++i) {
      axis.points.push_back(ReadPoint(node.keys[i], node.items[i]));
    }
    axes_.push_back(std::move(axis));
  }

  Point ReadPoint(const YamlNode& key, const YamlNode& node) {
    Point point;
    point.name = key.text;
    CheckName(key, "the name of a point", errors_, /*may_have_dash=*/true);
    const std::string what = "point '" + key.text + "'";
    Fields fields(node, what, errors_);
    point.changes = ReadChanges(fields, what, target_, errors_);
    if (const YamlNode* with = fields.Take("with")) ReadWith(*with, what, point);
    for (const std::string& section : PointSections()) fields.Take(section);
    fields.RejectRest();
    return point;
  }

  void ReadWith(const YamlNode& node, const std::string& what, Point& point) {
    if (!CheckFilledMap(node, "'with' of " + what, errors_)) return;
    std::vector<std::string> known;
    for (const auto& [id, info] : faults_) known.push_back(id);
    for (std::size_t i = 0; i < node.keys.size(); ++i) {
      const std::string& id = node.keys[i].text;
      auto found = faults_.find(id);
      if (found == faults_.end()) {
        errors_.Add(node.keys[i], "the scenario injects no fault '" + id + "'",
                    SuggestName(id, known));
      } else if (found->second != nullptr) {
        point.with[id] = ReadParameters(node.items[i], *found->second, errors_);
      }
    }
  }

  void ReadExclusions(const YamlNode& node) {
    if (!node.IsList()) {
      errors_.Add(node, std::string("'exclude' must be a list of maps, but is ") + Describe(node),
                  "such as [{AXIS: POINT, OTHER_AXIS: POINT}]");
      return;
    }
    for (const YamlNode* item : ReadList(node, "'exclude'", errors_)) {
      if (!CheckFilledMap(*item, "an entry of 'exclude'", errors_)) continue;
      Exclusion exclusion;
      exclusion.node = item;
      for (std::size_t i = 0; i < item->keys.size(); ++i) {
        ReadCoordinate(item->keys[i], item->items[i], exclusion);
      }
      if (exclusion.coordinates.size() == item->keys.size()) {
        exclusions_.push_back(std::move(exclusion));
      }
    }
  }

  void ReadCoordinate(const YamlNode& key, const YamlNode& value, Exclusion& exclusion) {
    std::vector<std::string> axis_names;
    for (const Axis& axis : axes_) {
      axis_names.push_back(axis.name);
      if (axis.name != key.text) continue;
      std::optional<std::string> name = ReadText(value, "a point to exclude", errors_);
      if (!name) return;
      std::vector<std::string> point_names;
      for (const Point& point : axis.points) point_names.push_back(point.name);
      if (std::count(point_names.begin(), point_names.end(), *name) == 0) {
        errors_.Add(value, "axis '" + axis.name + "' has no point '" + *name + "'",
                    SuggestName(*name, point_names));
        return;
      }
      exclusion.coordinates.emplace(axis.name, *name);
      return;
    }
    errors_.Add(key, "the matrix has no axis '" + key.text + "'",
                SuggestName(key.text, axis_names));
  }

  std::vector<Point> Multiply(std::size_t count, const YamlNode& node) {
    std::vector<Point> points;
    for (std::size_t index = 0; index < count; ++index) {
      Point point;
      std::map<std::string, std::string> coordinates;
      std::size_t stride = count;
      for (const Axis& axis : axes_) {
        stride /= axis.points.size();
        const Point& part = axis.points[index / stride % axis.points.size()];
        coordinates.emplace(axis.name, part.name);
        Combine(part, point);
      }
      if (IsExcluded(coordinates)) continue;
      point.coordinates = std::move(coordinates);
      const bool is_new = std::none_of(points.begin(), points.end(), [&](const Point& other) {
        return other.name == point.name;
      });
      if (!is_new) {
        errors_.Add(node, "two combinations of the matrix are called '" + point.name + "'",
                    "choose names that stay apart when they are joined with '-'");
      }
      points.push_back(std::move(point));
    }
    for (const Exclusion& exclusion : exclusions_) {
      if (!exclusion.is_used) {
        errors_.Add(*exclusion.node, "this excludes no point of the matrix",
                    "the entries before it have left nothing for it");
      }
    }
    if (points.empty()) {
      const YamlNode* key = node.FindKey("exclude");
      errors_.Add(key == nullptr ? node : *key, "'exclude' leaves no point of the matrix");
    }
    return points;
  }

  bool IsExcluded(const std::map<std::string, std::string>& coordinates) {
    bool is_excluded = false;
    for (Exclusion& exclusion : exclusions_) {
      const auto& wanted = exclusion.coordinates;
      if (!std::includes(coordinates.begin(), coordinates.end(), wanted.begin(), wanted.end())) {
        continue;
      }
      if (is_excluded) continue;  // an entry that only repeats others is of no use
      is_excluded = exclusion.is_used = true;
    }
    return is_excluded;
  }

  static void Combine(const Point& part, Point& whole) {
    whole.name += (whole.name.empty() ? "" : "-") + part.name;
    auto append = [](const auto& from, auto& to) { to.insert(to.end(), from.begin(), from.end()); };
    append(part.changes.set, whole.changes.set);
    append(part.changes.scale, whole.changes.scale);
    for (const auto& [id, parameters] : part.with) {
      for (const auto& [name, value] : parameters) whole.with[id][name] = value;
    }
  }

  const std::map<std::string, const FaultInfo*>& faults_;
  const TargetDescription& target_;
  Errors& errors_;
  std::vector<Axis> axes_;
  std::vector<Exclusion> exclusions_;
};

}  // namespace

std::vector<Point> ReadMatrix(const YamlNode& node,
                              const std::map<std::string, const FaultInfo*>& faults,
                              const TargetDescription& target, Errors& errors) {
  return MatrixReader(faults, target, errors).Read(node);
}

}  // namespace trainwreck
