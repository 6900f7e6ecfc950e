#include "harness/spec/canonical.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "harness/spec/defaults.h"
#include "harness/spec/point_parts.h"
#include "harness/yaml/comments.h"
#include "harness/yaml/writer.h"

namespace trainwreck {
namespace {

using Path = std::vector<std::string>;
using Words = std::vector<std::string>;

bool IsPartSection(const std::string& key) {
  const Words& sections = PointSections();
  return std::count(sections.begin(), sections.end(), key) > 0;
}

// At a point of the matrix the sections begin anew.
Path WithoutPoint(const Path& path) {
  if (path.size() < 4 || path[0] != "matrix") return path;
  return IsPartSection(path[3]) ? Path(path.begin() + 3, path.end()) : path;
}

// The order of the keys of the map at `path`; empty: as the author has them.
const Words& OrderOf(const Path& whole) {
  static const Words kNone;
  static const Words kScenario = {
      "apiVersion", "kind",     "name",    "title",    "sources",     "tags",      "extends",
      "requires",   "strength", "recipe",  "phases",   "reference",   "seeds",     "budget",
      "inject",     "matrix",   "healthy", "symptoms", "breaks",      "no_remedy", "remedies",
      "decoys",     "quality",  "twins",   "agree",    "must_notice", "expect",    "reason"};
  static const Words kCheck = {"assert", "min_margin", "reason", "when"};
  static const Words kArm = {"set", "scale", "resolves", "keeps", "waives", "kind", "when", "note"};
  static const Words kFault = {"fault", "with",          "at",    "from",    "to",
                               "every", "ranks",         "phase", "attempt", "probability",
                               "in",    "only_in_twins", "when",  "note"};
  static const std::map<std::string, Words> kEntries = {
      {"inject", kFault},
      {"must_notice", kFault},
      {"twins",
       {"set", "scale", "fault", "with", "at", "from", "to", "every", "ranks", "phase", "attempt",
        "probability", "phases", "waives", "when", "note"}},
      {"agree", {"of", "within", "assert", "min_margin", "reason", "when"}},
      {"healthy", kCheck},
      {"symptoms", kCheck},
      {"remedies", kArm},
      {"decoys", kArm}};
  static const std::map<std::string, Words> kSections = {
      {"quality", kCheck},
      {"strength", {"default", "from", "to"}},
      {"seeds", {"count", "require", "repeat"}},
      {"budget", {"seconds", "stall_seconds"}},
      {"requires", {"ranks", "devices", "features", "memory"}},
      {"expect", {"verdict", "class", "reason"}}};
  static const Words kPoint = {"set",      "scale",  "with",  "healthy", "symptoms",
                               "remedies", "decoys", "twins", "agree",   "must_notice"};
  const Path path = WithoutPoint(whole);
  if (path.empty()) return kScenario;
  const auto find = [&](const std::map<std::string, Words>& orders) -> const Words& {
    const auto found = orders.find(path[0]);
    return found == orders.end() ? kNone : found->second;
  };
  if (path.size() == 1) return find(kSections);
  if (path.size() == 3 && path[0] == "matrix") return kPoint;
  return path.size() == 2 ? find(kEntries) : kNone;
}

// Sections whose entries have names stand one below the other.
bool IsBlock(const Path& whole) {
  const Path path = WithoutPoint(whole);
  if (path.size() == 1) {
    return path[0] == "inject" || path[0] == "recipe" || path[0] == "matrix" ||
           IsPartSection(path[0]);
  }
  return path.size() == 2 && path[0] == "matrix" && path[1] != "exclude";
}

bool IsPointWithParts(const YamlNode& node) {
  return std::any_of(node.keys.begin(), node.keys.end(),
                     [](const YamlNode& key) { return IsPartSection(key.text); });
}

class Canonizer {
 public:
  explicit Canonizer(Comments& comments) : comments_(comments) {}

  // Takes out of `node` what `given` has with the same value.
  void Remove(const YamlNode& given, YamlNode& node) {
    for (std::size_t i = node.keys.size(); i-- > 0;) {
      const YamlNode* same = given.Find(node.keys[i].text);
      if (same == nullptr) continue;
      YamlNode& value = node.items[i];
      const bool was_filled = !value.items.empty();
      if (same->IsMap() && value.IsMap()) Remove(*same, value);
      if (IsSameTree(*same, value) || (was_filled && value.items.empty())) Erase(node, i);
    }
  }

  void Erase(YamlNode& node, std::size_t index) {
    comments_.Detach(node, index);
    node.keys.erase(node.keys.begin() + static_cast<std::ptrdiff_t>(index));
    node.items.erase(node.items.begin() + static_cast<std::ptrdiff_t>(index));
  }

  // `{assert: FORMULA}` is FORMULA.
  void Simplify(YamlNode& root) {
    for (std::size_t i = 0; i < root.keys.size(); ++i) {
      YamlNode& section = root.items[i];
      if (root.keys[i].text == "quality") SimplifyCheck(section);
      if (root.keys[i].text == "healthy" || root.keys[i].text == "symptoms") {
        for (YamlNode& check : section.items) SimplifyCheck(check);
      }
      if (root.keys[i].text != "matrix") continue;
      for (YamlNode& axis : section.items) {
        for (YamlNode& point : axis.items) Simplify(point);
      }
    }
  }

  void Sort(YamlNode& node, Path& path) {
    if (node.IsMap()) SortKeys(node, OrderOf(path));
    for (std::size_t i = 0; i < node.items.size(); ++i) {
      path.push_back(node.IsMap() ? node.keys[i].text : "");
      Sort(node.items[i], path);
      path.pop_back();
    }
  }

 private:
  void SimplifyCheck(YamlNode& check) {
    const bool is_assert = check.IsMap() && check.keys.size() == 1 &&
                           check.keys[0].text == "assert" && check.items[0].IsScalar();
    if (!is_assert || comments_.AreBelow(check)) return;
    const YamlNode formula = check.items[0];
    check = formula;
  }

  static void SortKeys(YamlNode& node, const Words& order) {
    if (order.empty()) return;
    const auto rank = [&](std::size_t index) {
      return std::find(order.begin(), order.end(), node.keys[index].text) - order.begin();
    };
    std::vector<std::size_t> indices(node.keys.size());
    std::iota(indices.begin(), indices.end(), 0);
    std::stable_sort(indices.begin(), indices.end(),
                     [&](std::size_t a, std::size_t b) { return rank(a) < rank(b); });
    YamlNode sorted = node;
    for (std::size_t i = 0; i < indices.size(); ++i) {
      sorted.keys[i] = node.keys[indices[i]];
      sorted.items[i] = node.items[indices[i]];
    }
    node = std::move(sorted);
  }

  Comments& comments_;
};

// What the file need not say: what its folders say, but for what it extends, and its name.
std::optional<YamlNode> GivenTo(const YamlNode& root, const std::string& file,
                                const std::string& scenarios_root, Errors& errors) {
  YamlNode given;
  given.kind = YamlNode::Kind::kMap;
  if (IsDefaultsFile(file)) return given;
  std::optional<YamlNode> defaults = ParseDefaults(file, scenarios_root, errors);
  if (defaults && !defaults->IsMap()) return std::nullopt;
  if (defaults) given = std::move(*defaults);
  if (root.Find("extends") != nullptr) {  // what it extends outdoes the defaults
    for (std::size_t i = given.keys.size(); i-- > 0;) {
      if (given.keys[i].text == "apiVersion" || given.keys[i].text == "kind") continue;
      given.keys.erase(given.keys.begin() + static_cast<std::ptrdiff_t>(i));
      given.items.erase(given.items.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  YamlNode key;
  key.kind = YamlNode::Kind::kScalar;
  key.text = "name";
  YamlNode name = key;
  name.text = NameBelow(file, scenarios_root);
  given.keys.push_back(key);
  given.items.push_back(name);
  return given;
}

bool IsKept(const std::string& text, const YamlNode& root, const std::vector<std::string>& before) {
  Errors errors;
  const std::optional<YamlNode> read = ParseYaml(text, errors.AddSource("", text), errors);
  if (!read || !errors.empty() || !IsSameTree(*read, root)) return false;
  std::string why;
  std::optional<std::vector<std::string>> after = ListComments(*read, text, why);
  std::vector<std::string> wanted = before;
  if (!after) return false;
  std::sort(after->begin(), after->end());
  std::sort(wanted.begin(), wanted.end());
  return *after == wanted;
}

}  // namespace

std::optional<std::string> CanonicalScenario(const std::string& text, const std::string& file,
                                             const std::string& scenarios_root, Errors& errors) {
  const int source = errors.AddSource(file, text);
  std::optional<YamlNode> root = ParseYaml(text, source, errors);
  if (!root || !errors.empty()) return std::nullopt;
  const YamlNode* kind = root->Find("kind");
  if (!root->IsMap() || (kind != nullptr && kind->text != "Scenario")) {
    errors.Add(*root, "this is no scenario");
    return std::nullopt;
  }
  std::string why;
  std::optional<Comments> comments = FindComments(*root, text, why);
  const std::optional<std::vector<std::string>> all = ListComments(*root, text, why);
  const std::optional<YamlNode> given = GivenTo(*root, file, scenarios_root, errors);
  if (!given) return std::nullopt;
  if (!comments || !all) {
    errors.Add(source, {}, "this file is left as it is: " + why);
    return std::nullopt;
  }
  Canonizer canonizer(*comments);
  canonizer.Remove(*given, *root);
  canonizer.Simplify(*root);
  Path path;
  canonizer.Sort(*root, path);
  YamlStyle style;
  const YamlNode& tree = *root;
  style.is_block = [&](const Path& at) {
    if (IsBlock(at)) return true;
    const YamlNode* node = &tree;
    for (const std::string& word : at) node = node == nullptr ? nullptr : node->Find(word);
    return at.size() == 3 && at[0] == "matrix" && node != nullptr && IsPointWithParts(*node);
  };
  std::string formatted = WriteYaml(*root, *comments, style);
  if (IsKept(formatted, *root, *all)) return formatted;
  errors.Add(source, {}, "this file is left as it is: its new form would not say the same",
             "this is a fault of trainwreck; please report it with the file");
  return std::nullopt;
}

}  // namespace trainwreck
