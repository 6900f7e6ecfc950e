// `merge`: shards give what one invocation gives; what does not belong together is refused, and
// what is missing is named.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <vector>

#include "harness/cli/tests/cli_testing.h"

namespace trainwreck {
namespace {

using Json = nlohmann::json;

class MergeTest : public testing::Test {
 protected:
  MergeTest() {
    for (const char* name : {"a", "b", "c"}) files.WritePassing(name);
    files.WritePassing("weak", "quality: at_end loss < 0.0001\n");
  }

  Called Run(const std::string& output, const std::string& options) const {
    return files.Call("run --history none --output " + output + " " + options);
  }

  Json Verdicts(const std::string& folder) const {
    return Json::parse(files.Read(folder + "/verdicts.json"));
  }

  std::multiset<std::string> CasesInJUnit(const std::string& file) const {
    static const std::regex kCase("<testcase name=\"([^\"]*)\"");
    const std::string xml = files.Read(file);
    std::multiset<std::string> names;
    for (std::sregex_iterator found(xml.begin(), xml.end(), kCase), end; found != end; ++found) {
      names.insert((*found)[1]);
    }
    return names;
  }

  CliFolder files;
};

TEST_F(MergeTest, ShardsAreAsOneInvocation) {
  const Called at_once = Run("all", "--report junit=all.xml");
  for (const char* index : {"1", "2", "3"}) {
    Run(std::string("s") + index, std::string("--shard ") + index + "/3");
  }
  const Called merged = files.Call(
      "merge s3 s1 s2 --output one --report junit=one.xml,shields=one.json --history h.db");
  EXPECT_EQ(merged.status, at_once.status) << merged.output();
  EXPECT_EQ(merged.status, 1);
  EXPECT_TRUE(Contains(merged.out, "# 4 cases: 3 pass, 1 fail; ")) << merged.out;
  EXPECT_TRUE(Contains(merged.out, "history: run 1 in h.db")) << merged.out;
  const Json one = Verdicts("one"), all = Verdicts("all");
  EXPECT_EQ(one["counts"], all["counts"]);
  EXPECT_EQ(one["run"]["runs"], all["run"]["runs"]);
  EXPECT_FALSE(one["run"].contains("selected_cases"));
  std::map<std::string, Json> expected;
  for (const Json& verdict : all["verdicts"]) expected[verdict["case"]] = verdict["checks"];
  ASSERT_EQ(one["verdicts"].size(), 4u);
  for (const Json& verdict : one["verdicts"]) {
    const Json& checks = expected.at(verdict["case"]);
    ASSERT_EQ(verdict["checks"].size(), checks.size());
    for (std::size_t i = 0; i < checks.size(); ++i) {
      EXPECT_EQ(verdict["checks"][i]["readings"], checks[i]["readings"]);
    }
  }
  EXPECT_TRUE(Contains(files.Read("one.xml"), "tests=\"4\" failures=\"1\""));
  EXPECT_EQ(CasesInJUnit("one.xml"), CasesInJUnit("all.xml"));
  EXPECT_EQ(CasesInJUnit("all.xml"),
            (std::multiset<std::string>{"fake/a", "fake/b", "fake/c", "fake/weak"}));
  EXPECT_TRUE(Contains(files.Read("one.json"), "1 of 4 failed"));
  EXPECT_TRUE(Contains(files.Read("one/report.html"), "fake/weak"));
  EXPECT_FALSE(files.Read("one/pictures.jsonl").empty());
  EXPECT_EQ(files.Call("compare all one --history none").status, 0);
}

TEST_F(MergeTest, MissingShardsAreNamed) {
  Run("s2", "--shard 2/4 fake/a fake/b fake/c");
  const Called merged = files.Call("merge s2 --output one --history h.db");
  EXPECT_EQ(merged.status, 5) << merged.output();
  EXPECT_TRUE(Contains(merged.err, "SHARDS ARE MISSING: 1/4, 3/4, 4/4")) << merged.err;
  EXPECT_FALSE(files.Has("h.db"));
  std::vector<std::string> others = {"fake/a", "fake/b", "fake/c"};
  ASSERT_EQ(Verdicts("s2")["verdicts"].size(), 1u);
  std::erase(others, Verdicts("s2")["verdicts"][0]["case"].get<std::string>());
  const std::string named = "cases without a verdict: " + others[0] + ", " + others[1] + "\n";
  EXPECT_TRUE(Contains(merged.err, named)) << merged.err;
  EXPECT_EQ(Verdicts("one")["run"]["selected_cases"].size(), 3u);
}

TEST_F(MergeTest, OfManyMissingCasesSomeAreNamed) {
  for (int i = 10; i < 35; ++i) files.WritePassing("many" + std::to_string(i));
  Run("s1", "--shard 1/25 -k many");
  const Called merged = files.Call("merge s1 --output one --history none");
  EXPECT_TRUE(Contains(merged.err, ", fake/many30 and 4 others\n")) << merged.err;
}

// Else the reports of 10,000 shards with a case each would have 10,000 names each.
TEST_F(MergeTest, OfManyShardsTheFirstNameAllCases) {
  for (int i = 10; i < 35; ++i) files.WritePassing("many" + std::to_string(i));
  Run("s9", "--shard 9/25 -k many");
  Run("s11", "--shard 11/25 -k many");
  EXPECT_EQ(Verdicts("s9")["run"]["selected_cases"].size(), 25u);
  EXPECT_FALSE(Verdicts("s11")["run"].contains("selected_cases"));
  const Called merged = files.Call("merge s11 s9 --output one --history none");
  EXPECT_TRUE(Contains(merged.err, ", fake/many")) << merged.err;
  EXPECT_TRUE(Contains(merged.err, " and 3 others\n")) << merged.err;
  EXPECT_EQ(Verdicts("one")["run"]["selected_cases"].size(), 25u);
}

TEST_F(MergeTest, ShardsOfEarlierVersionsDoNotSayWhatWasSelected) {
  Run("s2", "--shard 2/4 fake/a fake/b fake/c");
  Json stored = Verdicts("s2");
  ASSERT_EQ(stored["run"]["selected_cases"].size(), 3u);
  stored["run"].erase("selected_cases");
  files.Write("s2/verdicts.json", stored.dump());
  const Called merged = files.Call("merge s2 --output one --history none");
  EXPECT_EQ(merged.status, 5) << merged.output();
  EXPECT_TRUE(Contains(merged.err, "SHARDS ARE MISSING: 1/4, 3/4, 4/4")) << merged.err;
  EXPECT_FALSE(Contains(merged.err, "cases without a verdict")) << merged.err;
}

TEST_F(MergeTest, ShardsThatWereCutOffAreNotWhole) {
  Run("s1", "--shard 1/2 fake/a fake/b");
  Run("s2", "--shard 2/2 fake/a fake/b");
  std::string cut_off = files.Read("s2/verdicts.json");
  const std::string whole = "\"unjudged\": 0";
  const std::size_t at = cut_off.find(whole);
  ASSERT_NE(at, std::string::npos);
  files.Write("s2/verdicts.json", cut_off.replace(at, whole.size(), "\"unjudged\": 3"));
  const Called merged = files.Call("merge s1 s2 --output one --history h.db");
  EXPECT_EQ(merged.status, 5) << merged.output();
  EXPECT_TRUE(Contains(merged.err, "SHARDS ARE MISSING: 2/2 (cut off, without 3 cases)"))
      << merged.err;
  EXPECT_FALSE(files.Has("h.db"));
  EXPECT_EQ(Verdicts("one")["run"]["unjudged"], 3);
  // As a run writes it.
  std::string weak = files.Read("scenarios/fake/weak.yaml");
  files.Write("scenarios/fake/weak.yaml", weak.replace(weak.find("steps: 20"), 9, "steps: 40"));
  EXPECT_EQ(Run("fast", "--fail-fast -j 1 fake/weak fake/a").status, 1);  // long runs are first
  EXPECT_GE(Verdicts("fast")["run"]["unjudged"], 1);
}

TEST_F(MergeTest, RequirementsAreThoseOfAllShards) {
  Run("s1", "--shard 1/2 fake/a fake/b");
  Run("s2", "--shard 2/2 fake/a fake/b");
  const std::string merge = "merge s1 s2 --output one --history none ";
  EXPECT_EQ(files.Call(merge + "--require fake/a --require fake/b").status, 0);
  EXPECT_EQ(files.Call(merge + "--require fake/c").status, 6);
}

TEST_F(MergeTest, WhatDoesNotBelongTogetherIsRefused) {
  Run("s1", "--shard 1/2");
  Run("again", "--shard 1/2");
  Run("set", "--shard 2/2 --set steps=10");
  Run("less", "--shard 2/2 -k a");
  Run("of3", "--shard 2/3");
  files.Call("run --shard 2/2 --output commit --history none");
  const std::string weak = files.Read("scenarios/fake/weak.yaml");
  files.Write("scenarios/fake/weak.yaml", weak + "tags: [other]\n");
  Run("tagged", "--shard 2/2");  // claims the same
  files.WritePassing("weak", "quality: at_end loss < 0.0002\n");
  Run("claims", "--shard 2/2");
  EXPECT_LT(files.Call("merge s1 tagged --output tags --history none").status, 2);
  std::string other = files.Read("commit/verdicts.json");
  const std::size_t at = other.find("\"commit\": \"");
  ASSERT_NE(at, std::string::npos);
  files.Write("commit/verdicts.json", other.insert(at + 11, "0123abcd"));
  for (const auto& [folder, why] : std::map<std::string, std::string>{
           {"again", "shard 1 is there twice: in s1 and in again"},
           {"set", "the --set is '' in s1 and 'steps=10' in set"},
           {"less", "the selection is"},
           {"of3", "the number of shards is '2' in s1 and '3' in of3"},
           {"commit", "the commit is"},
           {"claims", "the digest of all selected scenarios is '"},
           {"scenarios", "is no finished invocation"}}) {
    const Called merged = files.Call("merge s1 " + folder + " --output one --history none");
    EXPECT_EQ(merged.status, 2) << folder << merged.output();
    EXPECT_TRUE(Contains(merged.err, why)) << merged.err;
  }
  EXPECT_FALSE(files.Has("one"));
}

// `slow` takes longer than all others.
std::string CostsWhere(const std::string& slow) {
  Json verdicts = Json::array();
  for (const char* name : {"fake/a", "fake/b", "fake/c", "fake/weak"}) {
    verdicts.push_back({{"case", name}, {"wall_seconds", name == slow ? 100 : 1}});
  }
  return Json({{"verdicts", verdicts}}).dump();
}

TEST_F(MergeTest, ShardsAreSplitByMeasuredCosts) {
  files.Write("costs.json", CostsWhere("fake/b"));
  const std::string costs = " --shard-costs costs.json";
  Run("s1", "--shard 1/2" + costs);
  EXPECT_EQ(Verdicts("s1")["verdicts"].size(), 1u);
  EXPECT_EQ(Verdicts("s1")["verdicts"][0]["case"], "fake/b");
  Run("s2", "--shard 2/2" + costs);
  const Called merged = files.Call("merge s1 s2 --output one --history none");
  EXPECT_TRUE(Contains(merged.out, "# 4 cases: ")) << merged.output();
  // The file changed between the shards: fake/b is in both, and nobody runs fake/c.
  files.Write("costs.json", CostsWhere("fake/c"));
  Run("other", "--shard 2/2" + costs);
  const Called refused = files.Call("merge s1 other --output two --history none");
  EXPECT_EQ(refused.status, 2);
  EXPECT_TRUE(Contains(refused.err, "fake/b is in s1 and in other")) << refused.err;
  EXPECT_EQ(Run("bad", "--shard 1/2 --shard-costs a.yaml").status, 2);
}

// With one file of costs, shard 1 has fake/a alone; with the other, shard 2 has two of the others.
TEST_F(MergeTest, ACaseThatNoShardHasIsNoticed) {
  const auto costs = [](int others) {
    Json verdicts = {{{"case", "fake/a"}, {"wall_seconds", 100}}};
    for (const char* name : {"fake/b", "fake/c", "fake/weak"}) {
      verdicts.push_back({{"case", name}, {"wall_seconds", others}});
    }
    return Json({{"verdicts", verdicts}}).dump();
  };
  files.Write("costs.json", costs(1));
  Run("s1", "--shard 1/2 --shard-costs costs.json");
  files.Write("costs.json", costs(60));
  Run("s2", "--shard 2/2 --shard-costs costs.json");
  ASSERT_EQ(Verdicts("s1")["verdicts"].size() + Verdicts("s2")["verdicts"].size(), 3u);
  const Called merged = files.Call("merge s1 s2 --output one --history h.db");
  EXPECT_EQ(merged.status, 2) << merged.output();
  EXPECT_TRUE(
      Contains(merged.err, "4 cases were selected, and together they have 3, without fake/"))
      << merged.err;
  EXPECT_FALSE(files.Has("h.db"));
}

TEST_F(MergeTest, AShardThatSkipsAllOfItsCasesIsOneOfTheOthers) {
  files.WritePassing("cuda", "requires: {devices: [cuda]}\n");
  const std::string cases = " fake/a fake/cuda";
  const Called first = Run("s1", "--shard 1/2" + cases), second = Run("s2", "--shard 2/2" + cases);
  EXPECT_EQ(first.status, 0) << first.output();
  EXPECT_EQ(second.status, 0) << second.output();
  const Called merged = files.Call("merge s1 s2 --output one --history none");
  EXPECT_EQ(merged.status, 0) << merged.output();
  EXPECT_TRUE(Contains(merged.out, "# 2 cases: 1 pass, 1 skip")) << merged.out;
  Run("n1", "--shard 1/2 fake/cuda");
  Run("n2", "--shard 2/2 fake/cuda");
  EXPECT_EQ(files.Call("merge n1 n2 --output none --history none").status, 4);
}

}  // namespace
}  // namespace trainwreck
