// Every file here is wrong, and NAME.expected says in which words NAME.yaml must be rejected. After
// a change of wording, write them anew and read the difference:
//   BAD_SCENARIOS_UPDATE=$PWD/tests/bad_scenarios bazel-bin/tests/bad_scenarios/bad_scenarios_test
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "harness/spec/scenario.h"

namespace trainwreck {
namespace {

namespace fs = std::filesystem;

const char kFolder[] = "tests/bad_scenarios";

std::string ReadAll(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

TargetDescription Target() {
  TargetDescription target =
      DescriptionFromJson(Json::parse(ReadAll(fs::path(kFolder) / "target.json")));
  AddHarnessVocabulary(target);
  return target;
}

std::vector<fs::path> BadScenarios() {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(kFolder)) {
    if (entry.path().extension() == ".yaml") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string MessagesOf(const fs::path& file, const TargetDescription& target) {
  LoadOptions options;
  options.scenarios_root = kFolder;
  const ScenarioFile result = LoadScenario(file.string(), target, options);
  EXPECT_EQ(result.scenario.has_value(), result.errors.empty());
  std::string messages;
  for (const Diagnostic& error : result.errors) messages += Format(error);
  return messages;
}

TEST(BadScenarios, AreRejectedInTheExpectedWords) {
  const TargetDescription target = Target();
  const char* update = std::getenv("BAD_SCENARIOS_UPDATE");
  for (const fs::path& file : BadScenarios()) {
    SCOPED_TRACE(file.string());
    const std::string messages = MessagesOf(file, target);
    EXPECT_FALSE(messages.empty()) << "is valid";
    fs::path expected = file;
    expected.replace_extension(".expected");
    if (update != nullptr) std::ofstream(fs::path(update) / expected.filename()) << messages;
    ASSERT_TRUE(fs::exists(expected)) << "has no .expected";
    EXPECT_EQ(messages, ReadAll(expected));
  }
}

TEST(BadScenarios, AreAtLeastSixty) { EXPECT_GE(BadScenarios().size(), 60U); }

TEST(BadScenarios, HaveNoOrphanedExpectations) {
  for (const fs::directory_entry& entry : fs::directory_iterator(kFolder)) {
    if (entry.path().extension() != ".expected") continue;
    fs::path scenario = entry.path();
    EXPECT_TRUE(fs::exists(scenario.replace_extension(".yaml"))) << entry.path();
  }
}

// What the others extend is itself right, but for the file that is wrong on purpose.
TEST(BadScenarios, ExtendAGoodScenario) {
  EXPECT_EQ(MessagesOf(fs::path(kFolder) / "support/good.yaml", Target()), "");
}

}  // namespace
}  // namespace trainwreck
