// The one form of scenario files, and that it keeps what they mean.
#include "harness/spec/canonical.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "harness/spec/defaults.h"
#include "harness/spec/extends.h"
#include "harness/spec/invariants.h"
#include "harness/spec/test_target.h"
#include "harness/yaml/writer.h"

namespace trainwreck {
namespace canonical_test {

namespace fs = std::filesystem;

std::string Format(const std::string& text, const std::string& file = "elsewhere/x.yaml",
                   const std::string& root = "scenarios") {
  Errors errors;
  const std::optional<std::string> formatted = CanonicalScenario(text, file, root, errors);
  std::string messages;
  for (const Diagnostic& error : errors.Sorted()) messages += error.message + "\n";
  return formatted ? *formatted : "error: " + messages;
}

TEST(Canonical, OrdersKeysAndChoosesStyles) {
  EXPECT_EQ(
      Format("symptoms: {b: {when: [x,  'z'], assert: \"eventually[:50]  nonfinite(loss)\"},\n"
             "  a: {assert: 'loss[0] > 3'}}\n"
             "title: \"A title\"\n"
             "seeds: {require: 4,\n  count: 5}\n"
             "inject:\n  hot:\n    with:\n      factor: 15\n    fault: recipe.high_lr\n"),
      "title: A title\n"
      "seeds: {count: 5, require: 4}\n"
      "inject:\n"
      "  hot: {fault: recipe.high_lr, with: {factor: 15}}\n"
      "symptoms:\n"
      "  b: {assert: \"eventually[:50]  nonfinite(loss)\", when: [x, z]}\n"
      "  a: loss[0] > 3\n");
}

TEST(Canonical, FoldsWhatIsTooLong) {
  std::string formula = "mean(loss[-20:]) > 1.2 * control.mean(loss[-20:])";
  formula += " and " + formula;
  const std::string list = "[10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 120, 130, 140]";
  EXPECT_EQ(
      Format("symptoms: {long: '" + formula + "', both: {assert: '" + formula +
             "', min_margin: 1 octave}}\n"
             "inject: {f: {fault: data.x, with: {samples: " +
             list + ", value: 1}}}\n"),
      "inject:\n"
      "  f:\n"
      "    fault: data.x\n"
      "    with: {samples: " +
          list +
          ", value: 1}\n"
          "symptoms:\n"
          "  long: >-\n"
          "    mean(loss[-20:]) > 1.2 * control.mean(loss[-20:]) and mean(loss[-20:]) > 1.2 *\n"
          "    control.mean(loss[-20:])\n"
          "  both:\n"
          "    assert: >-\n"
          "      mean(loss[-20:]) > 1.2 * control.mean(loss[-20:]) and mean(loss[-20:]) > 1.2 *\n"
          "      control.mean(loss[-20:])\n"
          "    min_margin: 1 octave\n");
}

TEST(Canonical, KeepsCommentsAtTheirPlace) {
  const std::string text =
      "# At the top.\n"
      "title: A # one\n"
      "recipe:\n"
      "  steps: 64       # two epochs\n"
      "  model: {kind: mlp, # small\n"
      "    layers: 2}\n"
      "  # kept for later: lr\n"
      "symptoms:    # what is seen\n"
      "  # Above a.\n"
      "  a: 'loss[0] > 3 # not a comment'\n"
      "  b: >- # folded\n"
      "    loss[0] > 3\n"
      "    # text\n"
      "inject: {f: {fault: x.y}} # at the end\n"
      "# The last.\n";
  const std::string formatted = Format(text);
  EXPECT_EQ(formatted,
            "# At the top.\n"
            "title: A  # one\n"
            "recipe:\n"
            "  steps: 64  # two epochs\n"
            "  model: {kind: mlp, layers: 2}  # small\n"
            "  # kept for later: lr\n"
            "inject:  # at the end\n"
            "  f: {fault: x.y}\n"
            "symptoms:  # what is seen\n"
            "  # Above a.\n"
            "  a: \"loss[0] > 3 # not a comment\"\n"
            "  b: \"loss[0] > 3 # text\"  # folded\n"
            "# The last.\n");
  EXPECT_EQ(Format(formatted), formatted);
}

TEST(Canonical, QuotesWhatAReaderCouldTakeForANumber) {
  EXPECT_EQ(Format("title: '12'\ntags: ['true', \"smoke\", 'a, b', '1e5', '~', '-']\n"),
            "title: \"12\"\ntags: [\"true\", smoke, \"a, b\", \"1e5\", \"~\", \"-\"]\n");
  EXPECT_EQ(Format("title: 'say \"x\"'\nx-note: |\n  two\n  lines\n"),
            "title: say \"x\"\nx-note: \"two\\nlines\\n\"\n");
  EXPECT_EQ(Format("sources: ['*', '[a', 'a: b', \"it's\", 'b: \"\\']\nx-a:\n"),
            "sources: [\"*\", \"[a\", \"a: b\", it's, 'b: \"\\']\nx-a:\n");
}

TEST(Canonical, PointsHaveTheOrderOfTheScenario) {
  EXPECT_EQ(
      Format("matrix: {how: {b: {symptoms: {s: {when: x, assert: a}}, set: {steps: 5}}, a: {}}}\n"),
      "matrix:\n"
      "  how:\n"
      "    b:\n"
      "      set: {steps: 5}\n"
      "      symptoms:\n"
      "        s: {assert: a, when: x}\n"
      "    a: {}\n");
}

TEST(Canonical, LeavesOutWhatFoldersAndThePathGive) {
  const fs::path root = fs::path(std::getenv("TEST_TMPDIR")) / "canonical";
  fs::create_directories(root / "nan");
  std::ofstream(root / "defaults.yaml")
      << "apiVersion: trainwreck/v1\nkind: Scenario\nseeds: 5\n"
         "budget: {seconds: 30, stall_seconds: 20}\nrecipe: {eval: {at_epoch_end: false}}\n";
  const std::string head =
      "apiVersion: trainwreck/v1\n# About the kind.\nkind: Scenario\nname: nan/x\ntitle: T\n";
  const std::string rest =
      "seeds: 5\nbudget: {seconds: 30, stall_seconds: 10}\n"
      "recipe: {eval: {at_epoch_end: false}, steps: 9}\n";
  const std::string file = (root / "nan/x.yaml").string();
  EXPECT_EQ(Format(head + rest, file, root.string()),
            "# About the kind.\ntitle: T\nrecipe:\n  steps: 9\nbudget: {stall_seconds: 10}\n");
  // What it extends may say otherwise, so that its own words count.
  EXPECT_EQ(Format(head + "extends: a.yaml\n" + rest, file, root.string()),
            "# About the kind.\ntitle: T\nextends: a.yaml\n"
            "recipe:\n  eval: {at_epoch_end: false}\n  steps: 9\n"
            "seeds: 5\nbudget: {seconds: 30, stall_seconds: 10}\n");
}

TEST(Canonical, LeavesAloneWhatItCannotKeep) {
  EXPECT_EQ(Format("title: x\nkind: Fault\n"), "error: this is no scenario\n");
  EXPECT_EQ(Format("%YAML 1.2\n---\ntitle: x\n"),
            "error: this file is left as it is: it has a directive, on line 1\n");
  EXPECT_EQ(Format("x-a: |2\n    a\n  b\n"),
            "error: this file is left as it is: a block of text says its own indentation, on line "
            "1\n");
}

std::vector<std::string> FilesBelow(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string path = entry.path().string();
    if (entry.path().extension() == ".yaml" && !IsInvariantsFile(path)) files.push_back(path);
  }
  return files;
}

// The tree that is read from `text`, with all that it takes over.
YamlNode Effective(const std::string& text, const std::string& file) {
  LoadOptions options;
  Errors errors;
  std::optional<YamlNode> root = ParseWithExtends(text, file, options, errors);
  EXPECT_TRUE(root && errors.empty()) << file;
  return root ? *root : YamlNode{};
}

// The order of keys is what fmt may change; names of entries keep theirs.
YamlNode Sorted(YamlNode node) {
  std::vector<std::size_t> order(node.keys.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return node.keys[a].text < node.keys[b].text; });
  YamlNode sorted = node;
  for (std::size_t i = 0; i < order.size(); ++i) {
    sorted.keys[i] = node.keys[order[i]];
    sorted.items[i] = Sorted(node.items[order[i]]);
  }
  // {assert: FORMULA} is FORMULA.
  if (sorted.keys.size() == 1 && sorted.keys[0].text == "assert") {
    const YamlNode formula = sorted.items[0];
    return formula;
  }
  return sorted;
}

TEST(Canonical, OfAllScenariosSaysTheSameAndIsItsOwn) {
  const std::vector<std::string> files = FilesBelow("scenarios");
  EXPECT_GT(files.size(), 60U);
  for (const std::string& file : files) {
    std::string why;
    const std::string text = *ReadSmallFile(file, why);
    const std::string formatted = Format(text, file);
    ASSERT_EQ(formatted.rfind("error", 0), std::string::npos) << file << ": " << formatted;
    EXPECT_EQ(Format(formatted, file), formatted) << file;
    if (IsDefaultsFile(file)) continue;
    YamlNode before = Sorted(Effective(text, file)), after = Sorted(Effective(formatted, file));
    for (YamlNode* root : {&before, &after}) {
      for (std::size_t i = 0; i < root->keys.size(); ++i) {
        if (root->keys[i].text != "name") continue;
        root->keys.erase(root->keys.begin() + static_cast<std::ptrdiff_t>(i));
        root->items.erase(root->items.begin() + static_cast<std::ptrdiff_t>(i));
        break;
      }
    }
    EXPECT_TRUE(IsSameTree(before, after)) << file << "\n" << formatted;
  }
}

// --- The suite's own files

bool IsNegative(const std::string& file) { return file.find("/negative/") != std::string::npos; }

TEST(Suite, IsWrittenInItsOneForm) {
  for (const std::string& file : FilesBelow("scenarios")) {
    std::string why;
    const std::string text = *ReadSmallFile(file, why);
    EXPECT_EQ(Format(text, file), text) << "run: trainwreck fmt " << file;
  }
}

TEST(Suite, HasScenariosOfAtMost26LinesMostly) {
  std::vector<std::size_t> lines;
  for (const std::string& file : FilesBelow("scenarios")) {
    if (IsDefaultsFile(file) || IsNegative(file)) continue;
    std::string why;
    const std::string text = *ReadSmallFile(file, why);
    lines.push_back(static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')));
  }
  std::sort(lines.begin(), lines.end());
  ASSERT_GT(lines.size(), 50U);
  EXPECT_LE(lines[lines.size() / 2], 26U);
}

// The parts of a formula between and, or and implies, without their parentheses.
std::vector<std::string> PartsOf(std::string formula) {
  for (const char* word : {" and ", " or ", " implies "}) {
    for (std::size_t at = formula.find(word); at != std::string::npos; at = formula.find(word)) {
      formula.replace(at, std::string(word).size(), "\n");
    }
  }
  std::vector<std::string> parts;
  std::istringstream stream(formula);
  for (std::string part; std::getline(stream, part);) {
    while (!part.empty() && (part.front() == '(' || part.rfind("not ", 0) == 0)) {
      part.erase(0, part.front() == '(' ? 1 : 4);
    }
    while (std::count(part.begin(), part.end(), ')') > std::count(part.begin(), part.end(), '(')) {
      part.pop_back();
    }
    parts.push_back(part);
  }
  return parts;
}

struct WrittenCheck {
  std::string section;
  YamlNode node;
};

void CollectChecks(const YamlNode& root, std::vector<WrittenCheck>& checks) {
  for (const char* section : {"healthy", "symptoms"}) {
    const YamlNode* node = root.Find(section);
    if (node == nullptr) continue;
    for (const YamlNode& check : node->items) checks.push_back({section, check});
  }
  if (const YamlNode* quality = root.Find("quality")) checks.push_back({"quality", *quality});
  const YamlNode* matrix = root.Find("matrix");
  if (matrix == nullptr) return;
  for (const YamlNode& axis : matrix->items) {
    for (const YamlNode& point : axis.items) CollectChecks(point, checks);
  }
}

std::vector<WrittenCheck> ChecksOf(const std::string& file) {
  std::string why;
  const std::string text = *ReadSmallFile(file, why);
  Errors errors;
  const std::optional<YamlNode> root = ParseYaml(text, errors.AddSource(file, text), errors);
  std::vector<WrittenCheck> checks;
  if (root) CollectChecks(*root, checks);
  return checks;
}

TEST(Suite, RepeatsNoFormula) {
  constexpr std::size_t kLong = 25;  // what is shorter is no longer than a name
  std::size_t checks = 0;
  for (const std::string& file : FilesBelow("scenarios")) {
    std::map<std::string, int> counts;
    for (const WrittenCheck& check : ChecksOf(file)) {
      ++checks;
      const YamlNode* formula = check.node.IsMap() ? check.node.Find("assert") : &check.node;
      if (formula == nullptr) continue;
      for (const std::string& part : PartsOf(formula->text)) {
        if (part.size() >= kLong) ++counts[check.section + ": " + part];
      }
    }
    for (const auto& [part, count] : counts) {
      EXPECT_EQ(count, 1) << file << ": " << part << "\nlet one check name the other";
    }
  }
  EXPECT_GT(checks, 150U);
}

// Else it would be a check of which nobody knows whether it can fail.
TEST(Suite, BreaksEachInvariant) {
  std::set<std::string> broken;
  for (const std::string& file : FilesBelow("scenarios")) {
    std::string why;
    const YamlNode root = Effective(*ReadSmallFile(file, why), file);
    const YamlNode* breaks = root.Find("breaks");
    if (breaks == nullptr) continue;
    for (const YamlNode& name : breaks->items) broken.insert(name.text);
  }
  std::string why;
  Errors errors;
  const std::optional<YamlNode> all =
      ParseYaml(*ReadSmallFile("scenarios/invariants.yaml", why), errors.AddSource("", ""), errors);
  ASSERT_TRUE(all && all->Find("invariants") != nullptr);
  // No fault reaches what the logger writes; recipe_use_test breaks it by traces that it makes.
  broken.insert("loss_is_what_was_computed");
  std::set<std::string> names;
  for (const YamlNode& key : all->Find("invariants")->keys) names.insert(key.text);
  EXPECT_EQ(broken, names);
}

TEST(Suite, GivesAReasonForSmallMargins) {
  for (const std::string& file : FilesBelow("scenarios")) {
    for (const WrittenCheck& check : ChecksOf(file)) {
      const YamlNode* margin = check.node.IsMap() ? check.node.Find("min_margin") : nullptr;
      if (margin == nullptr || check.node.Find("reason") != nullptr) continue;
      EXPECT_GE(std::stod(margin->text), 0.1) << file << ": " << margin->position.line;
    }
  }
}

}  // namespace canonical_test
}  // namespace trainwreck
