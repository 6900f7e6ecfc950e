#include "harness/session/selection.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "harness/session/session.h"

namespace trainwreck {
namespace selection_test {

namespace fs = std::filesystem;

bool Matches(const std::string& expression, const std::vector<std::string>& words) {
  return WordExpression(expression, "-k").Matches([&](const std::string& word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  });
}

std::string Refusal(const std::string& expression) {
  try {
    WordExpression(expression, "-t");
    return "";
  } catch (const UsageError& error) {
    return error.what();
  }
}

TEST(WordExpression, NotBindsBeforeAndAndAndBeforeOr) {
  EXPECT_TRUE(Matches("", {}));
  EXPECT_TRUE(Matches("a or b and c", {"a"}));
  EXPECT_FALSE(Matches("(a or b) and c", {"a"}));
  EXPECT_FALSE(Matches("not a or b", {"a"}));
  EXPECT_TRUE(Matches("not a or b", {"a", "b"}));
  EXPECT_FALSE(Matches("not (a or b)", {"b"}));
  EXPECT_TRUE(Matches("not not a", {"a"}));
  EXPECT_TRUE(Matches("nan and not(sgd or adamw)", {"nan"}));
  EXPECT_TRUE(Matches("a-b/c[d]", {"a-b/c[d]"})) << "all but blanks and parentheses is a word";
}

TEST(WordExpression, WhatIsNoExpressionIsToldWithItsOption) {
  const std::map<std::string, std::string> refusals = {
      {"a and", "-t 'a and': ends where a word should stand"},
      {"(a", "-t '(a': a ')' is missing"},
      {"a b", "-t 'a b': 'b' stands where 'and' or 'or' should"},
      {"a && b", "-t 'a && b': for '&&' write 'and'"},
      {"or a", "-t 'or a': 'or' stands where a word should"},
      {"a)", "-t 'a)': ')' stands where 'and' or 'or' should"},
  };
  for (const auto& [expression, refusal] : refusals) EXPECT_EQ(Refusal(expression), refusal);
  EXPECT_EQ(Refusal("((a))"), "");
  const std::string deep = std::string(200, '(') + "a" + std::string(200, ')');
  EXPECT_NE(Refusal(deep).find("too deep"), std::string::npos);
}

Case MakeCase(const std::string& scenario, const std::string& point, double cost,
              const std::vector<std::string>& tags = {}) {
  auto made = std::make_shared<Scenario>();
  made->name = scenario;
  made->file = "scenarios/" + scenario + ".yaml";
  made->tags = tags;
  made->points = {{point, {}, {}}};
  Case one;
  one.scenario = made;
  one.point = {one.scenario, &one.scenario->points.front()};
  one.name = scenario + (point.empty() ? "" : "[" + point + "]");
  one.arms.emplace_back();
  one.arms.front().runs.emplace_back();
  one.arms.front().runs.front().cost = cost;
  return one;
}

std::string Names(const std::vector<Case>& cases) {
  std::string names;
  for (const Case& one : cases) names += (names.empty() ? "" : " ") + one.name;
  return names;
}

TEST(SelectCases, AllConditionsHaveToHold) {
  const std::vector<Case> cases = {MakeCase("nan/a", "sgd", 1, {"smoke"}),
                                   MakeCase("nan/a", "adamw", 1, {"smoke"}),
                                   MakeCase("oom/b", "", 1, {"slow"})};
  const auto select = [&](const std::string& keyword, const std::string& tag,
                          const std::vector<SelectedFile>& files,
                          const std::vector<std::string>& points) {
    SelectionOptions options;
    options.keyword = keyword;
    options.tag = tag;
    return Names(SelectCases(cases, options, files, points));
  };
  EXPECT_EQ(select("", "", {}, {}), "nan/a[sgd] nan/a[adamw] oom/b");
  EXPECT_EQ(select("nan and not adamw", "", {}, {}), "nan/a[sgd]");
  EXPECT_EQ(select("", "smo", {}, {}), "") << "a tag is a whole word, a keyword a part of one";
  EXPECT_EQ(select("", "slow or smoke", {}, {"ada*"}), "nan/a[adamw]");
  EXPECT_EQ(select("", "", {{"scenarios/nan/a.yaml", "s*"}, {"scenarios/oom/b.yaml", ""}}, {}),
            "nan/a[sgd] oom/b");
}

TEST(Shards, EveryCaseIsInOneAndTheLoadIsEven) {
  std::vector<Case> cases;
  for (int i = 0; i < 9; ++i) cases.push_back(MakeCase("x/" + std::to_string(i), "", 9 - i));
  std::map<std::string, int> seen;
  std::vector<double> load;
  for (int shard = 1; shard <= 3; ++shard) {
    SelectionOptions options;
    options.shard_index = shard;
    options.shard_count = 3;
    load.push_back(0);
    for (const Case& one : KeepShard(cases, options)) {
      ++seen[one.name];
      load.back() += one.arms.front().runs.front().cost;
    }
  }
  EXPECT_EQ(seen.size(), cases.size());
  for (const auto& [name, times] : seen) EXPECT_EQ(times, 1) << name;
  for (const double of_shard : load) EXPECT_NEAR(of_shard, 15, 1);  // dealt out in turn: 18, 15, 12
  // The order of the cases does not matter: every machine computes the same.
  std::vector<Case> turned(cases.rbegin(), cases.rend());
  const std::vector<int> there = AssignShards(cases, 3), back = AssignShards(turned, 3);
  EXPECT_EQ(there, std::vector<int>(back.rbegin(), back.rend()));
}

TEST(Shards, MeasuredCostsGoBeforeEstimates) {
  // x/0 looks cheap and takes long; x/3 was not measured: ten times its estimate.
  const std::vector<Case> cases = {MakeCase("x/0", "", 1), MakeCase("x/1", "", 3),
                                   MakeCase("x/2", "", 6), MakeCase("x/3", "", 4)};
  const auto shards = AssignShards(cases, 2, {{"x/0", 80}, {"x/1", 10}, {"x/2", 10}});
  EXPECT_EQ(shards, (std::vector<int>{0, 1, 1, 1}));
  EXPECT_EQ(AssignShards(cases, 2), (std::vector<int>{0, 1, 0, 1}));
}

TEST(Shards, CostsAreReadFromTheirFile) {
  const std::string path = ::testing::TempDir() + "/costs.json";
  const std::vector<Case> cases = {MakeCase("x/0", "", 1), MakeCase("x/1", "", 2),
                                   MakeCase("x/2", "", 3)};
  SelectionOptions options;
  options.shard_index = 1;
  options.shard_count = 2;
  options.shard_costs = path;
  std::ofstream(path) << CostsText({{"x/0", 30}, {"x/1", 10}, {"x/2", 10}});
  ASSERT_EQ(KeepShard(cases, options).size(), 1U);
  EXPECT_EQ(KeepShard(cases, options)[0].name, "x/0");
  std::ofstream(path) << R"({"schema": "trainwreck/costs", "version": 2, "seconds": {}})";
  EXPECT_THROW(KeepShard(cases, options), UsageError);
}

TEST(Shards, CostsThatCannotBeReadAreNamed) {
  SelectionOptions options;
  options.shard_count = 2;
  options.shard_costs = "/nowhere/verdicts.json";
  EXPECT_THROW(KeepShard({}, options), UsageError);
}

class FilesTest : public ::testing::Test {
 protected:
  FilesTest() : root_(::testing::TempDir() + "/selection") {
    fs::remove_all(root_);
    for (const char* name : {"nan/b.yaml", "nan/a.yaml", "oom/c.yml", "oom/notes.txt"}) {
      fs::create_directories(fs::path(root_ + "/" + name).parent_path());
      std::ofstream(root_ + "/" + name) << "title: x\n";
    }
  }

  std::string Find(const std::vector<std::string>& words) {
    std::string found;
    for (const SelectedFile& file : FindScenarioFiles(words, root_)) {
      found += fs::relative(file.path, root_).string();
      found += file.point.empty() ? " " : "@" + file.point + " ";
    }
    return found;
  }

  std::string root_;
};

TEST_F(FilesTest, NamesGlobsFoldersAndPointsAreFoundOnceAndSorted) {
  EXPECT_EQ(Find({}), "nan/a.yaml nan/b.yaml oom/c.yml ");
  EXPECT_EQ(Find({"nan", "nan/a"}), "nan/a.yaml nan/b.yaml ");
  EXPECT_EQ(Find({"*/a"}), "nan/a.yaml ");
  EXPECT_EQ(Find({"nan/a[sgd*]"}), "nan/a.yaml@sgd* ");
  EXPECT_EQ(Find({root_ + "/nan/b.yaml"}), "nan/b.yaml ");
  EXPECT_EQ(PathsOf({{"a", "x"}, {"a", "y"}, {"b", ""}}), (std::vector<std::string>{"a", "b"}));
}

TEST_F(FilesTest, TheFileOfInvariantsLeavesTheNameToAFolder) {
  fs::create_directories(root_ + "/invariants");
  std::ofstream(root_ + "/invariants.yaml") << "kind: Invariants\n";
  std::ofstream(root_ + "/invariants/d.yaml") << "title: x\n";
  EXPECT_EQ(Find({"invariants"}), "invariants/d.yaml ");
}

TEST_F(FilesTest, WhatNamesNothingIsRefusedWithWhatWasMeant) {
  EXPECT_THROW(Find({"gone"}), UsageError);
  try {
    Find({"a"});
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean 'nan/a'?"), std::string::npos);
  }
  std::ofstream(root_ + "/nan.yaml") << "title: x\n";
  EXPECT_THROW(Find({"nan"}), UsageError) << "a scenario and a folder";
}

}  // namespace selection_test
}  // namespace trainwreck
