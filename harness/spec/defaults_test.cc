// Defaults of folders, and names that follow from the path.
#include "harness/spec/defaults.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "harness/spec/test_target.h"

namespace trainwreck {
namespace defaults_test {

namespace fs = std::filesystem;

constexpr char kBody[] =
    "title: A test\n"
    "inject: {hot: {fault: recipe.high_lr}}\n"
    "symptoms: {blows_up: eventually nonfinite(loss)}\n"
    "remedies: {clip: {set: {optimizer.clip_norm: 1.0}}}\n";

constexpr char kHead[] = "apiVersion: trainwreck/v1\nkind: Scenario\n";

class Folder : public ::testing::Test {
 protected:
  Folder() {
    fs::remove_all(root_);
    fs::create_directories(root_);
  }

  std::string Write(const std::string& path, const std::string& text) {
    const fs::path file = root_ / path;
    fs::create_directories(file.parent_path());
    std::ofstream(file) << text;
    return file.string();
  }

  ScenarioFile Load(const std::string& path) {
    LoadOptions options;
    options.scenarios_root = root_.string();
    return LoadScenario((root_ / path).string(), TestTarget(), options);
  }

  static std::string Messages(const ScenarioFile& file) {
    std::string messages;
    for (const Diagnostic& error : file.errors) messages += Format(error);
    return messages;
  }

  Scenario Read(const std::string& path) {
    ScenarioFile file = Load(path);
    if (!file.scenario) throw std::runtime_error(Messages(file));
    return *file.scenario;
  }

  fs::path root_ = fs::path(std::getenv("TEST_TMPDIR")) / "defaults";
};

TEST_F(Folder, GivesWhatAScenarioLeavesOutAndTheNearestWins) {
  Write("defaults.yaml", std::string(kHead) +
                             "seeds: 3\nbudget: {seconds: 30, stall_seconds: 10}\n"
                             "recipe: {steps: 70, optimizer: {lr: 0.2, kind: sgd}}\nx-note: n\n");
  Write("family/defaults.yaml", "tags: [smoke]\nbudget: {seconds: 40}\nrecipe: {steps: 80}\n");
  Write("family/deep/one.yaml", std::string(kBody) + "recipe: {optimizer.lr: 0.5}\n");
  const Scenario scenario = Read("family/deep/one.yaml");
  EXPECT_EQ(scenario.name, "family/deep/one");
  EXPECT_EQ(scenario.seed_count, 3);
  EXPECT_EQ(scenario.tags, std::vector<std::string>{"smoke"});
  EXPECT_EQ(scenario.budget.seconds, 40);
  EXPECT_TRUE(scenario.budget.has_seconds);
  EXPECT_EQ(scenario.budget.stall_seconds, 10);
  const Recipe recipe = ResolveRecipe(TestTarget(), scenario, scenario.points[0], {});
  EXPECT_EQ(recipe.at("steps"), 80);
  EXPECT_EQ(recipe.at("optimizer.lr"), 0.5);
  EXPECT_EQ(scenario.extended, (std::vector<std::string>{(root_ / "family/defaults.yaml").string(),
                                                         (root_ / "defaults.yaml").string()}));
}

TEST_F(Folder, DefaultsLieBelowWhatIsExtended) {
  Write("defaults.yaml", std::string(kHead) + "seeds: 3\n");
  Write("a/base.yaml", std::string(kBody) + "seeds: 2\nrecipe: {steps: 60}\n");
  Write("b/defaults.yaml", "tags: [b]\nrecipe: {steps: 90, optimizer.lr: 0.3}\n");
  Write("b/child.yaml", "title: Child\nextends: a/base.yaml\n");
  const Scenario child = Read("b/child.yaml");
  EXPECT_EQ(child.seed_count, 2);
  EXPECT_EQ(child.tags, std::vector<std::string>{"b"});
  const Recipe recipe = ResolveRecipe(TestTarget(), child, child.points[0], {});
  EXPECT_EQ(recipe.at("steps"), 60);
  EXPECT_EQ(recipe.at("optimizer.lr"), 0.3);
  EXPECT_EQ(child.extended.size(), 3U);  // the base and two files of defaults, each once
}

TEST_F(Folder, MistakesAreShownWhereTheyStand) {
  Write("defaults.yaml", std::string(kHead) + "seeds: many\nsymptoms: {x: fired}\n");
  Write("a/one.yaml", kBody);
  const std::string messages = Messages(Load("a/one.yaml"));
  EXPECT_NE(messages.find("defaults.yaml:3:8: error: 'seeds' must be a whole number"),
            std::string::npos)
      << messages;
  EXPECT_NE(messages.find("defaults.yaml:4:1: error: 'symptoms' cannot stand in the defaults"),
            std::string::npos)
      << messages;
}

TEST_F(Folder, AMistakeOfDefaultsThatAreTakenOverTwiceIsToldOnce) {
  Write("defaults.yaml", std::string(kHead) + "title: no\n");
  Write("a/base.yaml", kBody);
  Write("a/child.yaml", "title: Child\nextends: a/base.yaml\n");
  EXPECT_EQ(Load("a/child.yaml").errors.size(), 1U);
}

TEST_F(Folder, AreNoScenarioThemselves) {
  Write("defaults.yaml", std::string(kHead) + kBody);
  EXPECT_NE(Messages(Load("defaults.yaml")).find("this is no scenario"), std::string::npos);
}

TEST_F(Folder, OutsideOfTheRootHasNoDefaults) {
  Write("defaults.yaml", kHead);
  const std::string file = Write("one.yaml", kBody);
  LoadOptions options;
  options.scenarios_root = (root_ / "elsewhere").string();
  const ScenarioFile loaded = LoadScenario(file, TestTarget(), options);
  EXPECT_NE(Messages(loaded).find("lacks 'apiVersion'"), std::string::npos) << Messages(loaded);
}

TEST_F(Folder, ANameThatIsGivenMustStillBeThePath) {
  Write("a/one.yaml", std::string(kHead) + "name: a/two\n" + kBody);
  EXPECT_NE(Messages(Load("a/one.yaml")).find("'name' must be the file's path"), std::string::npos);
  Write("a/Three.yaml", std::string(kHead) + kBody);
  EXPECT_NE(Messages(Load("a/Three.yaml")).find("the file's path gives no name: 'a/Three'"),
            std::string::npos);
}

}  // namespace defaults_test
}  // namespace trainwreck
