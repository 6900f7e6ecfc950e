// The examples of docs/guide/scenario.md are scenarios: whole ones begin with apiVersion and are
// read as they stand, others are sections and take the place of those of a small scenario. A fault
// among them is there for those that follow.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "harness/spec/fault_file.h"
#include "harness/spec/scenario.h"
#include "harness/spec/test_target.h"

namespace trainwreck {
namespace docs_test {

namespace fs = std::filesystem;

const std::map<std::string, std::string>& BaseSections() {
  static const std::map<std::string, std::string> sections = {
      {"recipe", "recipe: {parallel.ranks: 2, steps: 60}\n"},
      {"matrix", "matrix: {update: {sgd: {}, adamw: {set: {optimizer.kind: sgd}}}}\n"},
      {"inject", "inject: {hot_lr: {fault: recipe.high_lr}}\n"},
      {"symptoms", "symptoms: {blows_up: eventually nonfinite(loss)}\n"},
      {"remedies", "remedies: {clip: {set: {optimizer.clip_norm: 1.0}}}\n"},
      {"quality", "quality: mean(loss[-5:]) < 3\n"},
  };
  return sections;
}

std::vector<std::string> Examples() {
  const std::string document = ReadTestFile("docs/guide/scenario.md");
  const std::string open = "```yaml\n";
  std::vector<std::string> examples;
  for (std::size_t at = document.find(open); at != std::string::npos;) {
    const std::size_t begin = at + open.size();
    const std::size_t end = document.find("```", begin);
    examples.push_back(document.substr(begin, end - begin));
    at = document.find(open, end);
  }
  return examples;
}

std::string NameIn(const std::string& example) {
  const std::size_t begin = example.find("\nname: ") + 7;
  return example.substr(begin, example.find('\n', begin) - begin);
}

std::string Complete(const std::string& part) {
  std::string text =
      "apiVersion: trainwreck/v1\nkind: Scenario\nname: part\ntitle: A part\n" + part;
  for (const auto& [key, section] : BaseSections()) {
    if (("\n" + part).find("\n" + key + ":") == std::string::npos) text += section;
  }
  return text;
}

TEST(Document, ExamplesAreValid) {
  const fs::path root = fs::path(std::getenv("TEST_TMPDIR")) / "scenarios";
  LoadOptions options;
  options.scenarios_root = root;
  int whole = 0;
  int parts = 0;
  int faults = 0;
  TargetDescription target = TestTarget();
  FaultCatalogue catalogue(target);
  for (const std::string& example : Examples()) {
    SCOPED_TRACE(example);
    if (example.find("\nkind: Fault\n") != std::string::npos) {
      ++faults;
      const auto errors = catalogue.AddText(example, NameIn(example));
      for (const Diagnostic& error : errors) ADD_FAILURE() << Format(error);
      continue;
    }
    const bool is_whole = example.rfind("apiVersion", 0) == 0;
    ++(is_whole ? whole : parts);
    const fs::path file = root / ((is_whole ? NameIn(example) : "part") + ".yaml");
    fs::create_directories(file.parent_path());
    std::ofstream(file) << (is_whole ? example : Complete(example));
    const ScenarioFile result = LoadScenario(file, target, options);
    for (const Diagnostic& error : result.errors) ADD_FAILURE() << Format(error);
  }
  EXPECT_EQ(faults, 1);
  EXPECT_GE(whole, 3);
  EXPECT_GE(parts, 5);
}

}  // namespace docs_test
}  // namespace trainwreck
