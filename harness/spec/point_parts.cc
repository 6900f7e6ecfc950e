#include "harness/spec/point_parts.h"

#include <algorithm>
#include <utility>

#include "harness/yaml/fields.h"

namespace trainwreck {
namespace {

YamlNode TextAt(const YamlNode& place, std::string text) {
  YamlNode node;
  node.kind = YamlNode::Kind::kScalar;
  node.source = place.source;
  node.position = place.position;
  node.text = std::move(text);
  return node;
}

void Append(YamlNode& map, YamlNode key, YamlNode value) {
  map.keys.push_back(std::move(key));
  map.items.push_back(std::move(value));
}

// The entry as it would stand in the section: with the points where it applies.
YamlNode WithWhen(const YamlNode& name, YamlNode entry, const std::vector<std::string>& points) {
  YamlNode when = TextAt(name, "");
  when.kind = YamlNode::Kind::kList;
  for (const std::string& point : points) when.items.push_back(TextAt(name, point));
  if (entry.IsScalar()) {
    YamlNode map = TextAt(entry, "");
    map.kind = YamlNode::Kind::kMap;
    YamlNode key = TextAt(entry, "assert");
    Append(map, std::move(key), std::move(entry));
    entry = std::move(map);
  }
  if (entry.IsMap()) Append(entry, TextAt(name, "when"), std::move(when));
  return entry;
}

// What `root` has under `section`, made where it has nothing.
YamlNode& SectionOf(YamlNode& root, const std::string& section, const YamlNode& place) {
  for (std::size_t i = 0; i < root.keys.size(); ++i) {
    if (root.keys[i].text == section) return root.items[i];
  }
  YamlNode map = TextAt(place, "");
  map.kind = YamlNode::Kind::kMap;
  Append(root, TextAt(place, section), std::move(map));
  return root.items.back();
}

void TakeOut(YamlNode& root, const std::string& section, const YamlNode& key, const YamlNode& node,
             const std::vector<std::string>& points, Errors& errors) {
  if (!CheckFilledMap(node, "'" + section + "' of a point", errors)) return;
  YamlNode& entries = SectionOf(root, section, key);
  if (!entries.IsMap()) return;  // has its own error
  for (std::size_t i = 0; i < node.keys.size(); ++i) {
    const YamlNode& name = node.keys[i];
    if (const YamlNode* when = node.items[i].FindKey("when")) {
      errors.Add(*when,
                 "'when' cannot stand here: the point says where '" + name.text + "' applies",
                 "move it to the scenario's '" + section + "', or leave 'when' out");
    } else if (const YamlNode* first = entries.FindKey(name.text)) {
      errors.Add(name, "the scenario has '" + name.text + "' in its '" + section + "' already",
                 "on line " + std::to_string(first->position.line) + "; choose another name");
    } else if (!points.empty()) {  // all excluded: the matrix has had its error
      Append(entries, name, WithWhen(name, node.items[i], points));
    }
  }
}

}  // namespace

const std::vector<std::string>& PointSections() {
  static const std::vector<std::string> kSections = {"healthy", "symptoms", "remedies",   "decoys",
                                                     "twins",   "agree",    "must_notice"};
  return kSections;
}

void TakeOutPointParts(YamlNode& root, const std::vector<Point>& points, Errors& errors) {
  const YamlNode* matrix = root.Find("matrix");
  if (matrix == nullptr || !matrix->IsMap()) return;
  const YamlNode axes = *matrix;  // the tree grows below
  for (std::size_t axis = 0; axis < axes.keys.size(); ++axis) {
    const YamlNode& node = axes.items[axis];
    if (axes.keys[axis].text == "exclude" || !node.IsMap()) continue;
    for (std::size_t i = 0; i < node.keys.size(); ++i) {
      std::vector<std::string> names;
      for (const Point& point : points) {
        const auto found = point.coordinates.find(axes.keys[axis].text);
        const bool is_here = found != point.coordinates.end() && found->second == node.keys[i].text;
        if (is_here) names.push_back(point.name);
      }
      for (const std::string& section : PointSections()) {
        const YamlNode* part = node.items[i].Find(section);
        if (part == nullptr) continue;
        TakeOut(root, section, *node.items[i].FindKey(section), *part, names, errors);
      }
    }
  }
}

}  // namespace trainwreck
