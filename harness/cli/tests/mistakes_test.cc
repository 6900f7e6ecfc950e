// 100 mistakes of new users (tests/mistakes/*.yaml): each is made in a project that is right, and
// must be answered with its place, the likely fix and the exit status, before any training.
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <filesystem>
#include <string>
#include <vector>

#include "harness/cli/tests/cli_testing.h"

namespace trainwreck {
namespace {

namespace fs = std::filesystem;

const char kFolder[] = "tests/mistakes";

// Replaces the first occurrence, or the whole text; a mistake that changes nothing is none.
void Replace(const CliFolder& folder, const std::string& file, const std::string& from,
             const std::string& to) {
  std::string text = folder.Read(file);
  if (from == "all") {
    text = to;
  } else {
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << file << " has no '" << from << "'";
    text.replace(at, from.size(), to);
  }
  folder.Write(file, text);
}

struct Table {
  std::string file, call;
  int status = 0;
  YAML::Node mistakes;
};

Table Load(const std::string& name) {
  const YAML::Node root = YAML::LoadFile(std::string(kFolder) + "/" + name + ".yaml");
  return {root["file"].as<std::string>(""), root["call"].as<std::string>(""),
          root["status"].as<int>(), root["mistakes"]};
}

// The good project, with its files as they are.
void CopyProject(const CliFolder& folder) {
  fs::copy(std::string(kFolder) + "/good", folder.path(),
           fs::copy_options::recursive | fs::copy_options::overwrite_existing);
}

Called Make(const Table& table, const YAML::Node& mistake, const CliFolder& folder) {
  const auto text = [&](const char* key, const std::string& fallback = "") {
    return mistake[key].as<std::string>(fallback);
  };
  CopyProject(folder);
  for (const auto& file : mistake["write"]) {
    fs::remove(folder.path() + "/" + file.first.as<std::string>());  // may be a link
    folder.Write(file.first.as<std::string>(), file.second.as<std::string>());
  }
  const std::string file = text("file", table.file);
  if (mistake["replace"]) Replace(folder, file, text("replace"), text("by"));
  if (mistake["replace_too"]) Replace(folder, file, text("replace_too"), text("by_too"));
  return folder.Shell(
      text("first", "true") + "; '" + folder.program() + "' " + text("call", table.call),
      "TRAINWRECK_TARGET= TRAINWRECK_HISTORY=none TEST_SRCDIR= RUNFILES_DIR=");
}

class MistakesTest : public testing::TestWithParam<const char*> {};

TEST_P(MistakesTest, AreAnsweredWithPlaceAndFix) {
  const Table table = Load(GetParam());
  for (const YAML::Node& mistake : table.mistakes) {
    SCOPED_TRACE(mistake["did"].as<std::string>());
    CliFolder folder;
    const Called called = Make(table, mistake, folder);
    EXPECT_EQ(called.status, mistake["status"].as<int>(table.status)) << called.output();
    const auto words = mistake["says"].as<std::vector<std::string>>();
    EXPECT_GE(words.size(), 2U) << "a place and a fix";
    for (const std::string& word : words) {
      EXPECT_TRUE(Contains(called.output(), word)) << "no '" << word << "' in\n" << called.output();
    }
    EXPECT_FALSE(folder.Has(".trainwreck/runs")) << "something was run";
  }
}

INSTANTIATE_TEST_SUITE_P(Tables, MistakesTest,
                         testing::Values("target_file", "scenario_file", "fault_file",
                                         "command_line", "running"),
                         [](const auto& info) { return std::string(info.param); });

TEST(MistakesTest, AreAHundredAndMore) {
  std::size_t count = 0;
  for (const char* name :
       {"target_file", "scenario_file", "fault_file", "command_line", "running"}) {
    count += Load(name).mistakes.size();
  }
  EXPECT_GE(count, 100U);
}

// Else every mistake would be found for another reason.
TEST(MistakesTest, AreMadeInAProjectThatIsRight) {
  CliFolder folder;
  CopyProject(folder);
  const char* environment = "TRAINWRECK_TARGET= TRAINWRECK_HISTORY=none";
  EXPECT_EQ(folder.Call("validate", environment).status, 0);
  const Called called = folder.Call("run", environment);
  EXPECT_EQ(called.status, 0) << called.output();
}

}  // namespace
}  // namespace trainwreck
