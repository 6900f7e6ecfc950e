// The search over keys, against trainings that are functions of the recipe: no processes.
#include "harness/keys/search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace trainwreck {
namespace search_test {

// A stack in miniature. What it records, or what it says when it refuses the recipe.
struct Stack {
  Recipe base;
  std::function<Json(const Recipe&)> train;  // a string: refused
  std::vector<KeyTrial> asked;

  KeyObserver observer() {
    return [this](const std::vector<KeyTrial>& trials) {
      std::vector<KeyObservation> seen;
      for (const KeyTrial& trial : trials) {
        asked.push_back(trial);
        Recipe recipe = base;
        for (const auto& [key, value] : trial.condition) recipe[key] = value;
        for (const auto& [key, value] : trial.changes) recipe[key] = value;
        const Json record = train(recipe);
        KeyObservation& one = seen.emplace_back();
        if (record.is_string()) {
          one.words = record;
          one.records["end"] = "failed";
          continue;
        }
        one.is_whole = one.has_begun = true;
        one.records = {{"end", "completed"}, {"loss of rank 0", record.dump()}};
      }
      return seen;
    };
  }

  SearchResult Search(SearchInput input) {
    input.base = base;
    return SearchKeys(input, observer());
  }
};

// Switches of two choices and numbers, each with other values.
SearchInput InputOf(const std::map<std::string, std::vector<Json>>& switches,
                    const std::map<std::string, std::vector<Json>>& numbers) {
  SearchInput input;
  input.switches = switches;
  input.numbers = numbers;
  input.values = switches;
  input.values.insert(numbers.begin(), numbers.end());
  return input;
}

std::set<std::string> IgnoredIn(const SearchResult& result) {
  std::set<std::string> ignored;
  for (const auto& [key, reading] : result.keys) {
    if (reading.IsIgnored()) ignored.insert(key);
  }
  return ignored;
}

TEST(SearchKeys, NamesTheKeyThatNothingReads) {
  Stack stack{
      {{"lr", 0.1}, {"dead", 1}, {"momentum", 0.9}, {"kind", "adam"}},
      [](const Recipe& r) -> Json {
        return {r.at("lr"), r.at("kind"), r.at("kind") == "sgd" ? r.at("momentum") : Json()};
      },
      {}};
  const SearchResult result = stack.Search(
      InputOf({{"kind", {"sgd"}}}, {{"lr", {0.2}}, {"dead", {2, 3}}, {"momentum", {0.5}}}));
  EXPECT_EQ(IgnoredIn(result), std::set<std::string>{"dead"});
  const KeyReading& momentum = result.keys.at("momentum");
  ASSERT_TRUE(momentum.acts);
  EXPECT_EQ(momentum.acts->condition, (Recipe{{"kind", "sgd"}})) << "it acts there alone";
  EXPECT_EQ(momentum.acts->value, 0.5);
  EXPECT_EQ(momentum.acts->record, "loss of rank 0");
  EXPECT_TRUE(result.keys.at("lr").acts->condition.empty());
}

TEST(SearchKeys, AValueThatShowsNothingIsFollowedByOthers) {
  Stack stack{
      {{"warmup", 0}}, [](const Recipe& r) -> Json { return {r.at("warmup").get<int>() > 5}; }, {}};
  EXPECT_TRUE(stack.Search(InputOf({}, {{"warmup", {1, 2, 10}}})).keys.at("warmup").acts);
  EXPECT_EQ(IgnoredIn(stack.Search(InputOf({}, {{"warmup", {1, 2}}}))),
            std::set<std::string>{"warmup"});
}

TEST(SearchKeys, WhatIsRefusedIsNeverIgnored) {
  Stack stack{{{"heads", 4}, {"restart", 0}, {"schedule", "constant"}},
              [](const Recipe& r) -> Json {
                if (r.at("heads") != 4) return "heads: must be 4";
                if (r.at("restart") != 0 && r.at("schedule") == "constant") return "no schedule";
                return {r.at("schedule"), r.at("restart")};
              },
              {}};
  const SearchResult result =
      stack.Search(InputOf({{"schedule", {"cosine"}}}, {{"heads", {8, 2}}, {"restart", {3}}}));
  EXPECT_TRUE(IgnoredIn(result).empty());
  EXPECT_FALSE(result.keys.at("heads").acts);
  EXPECT_EQ(result.keys.at("heads").refusal, "heads: must be 4");
  ASSERT_TRUE(result.keys.at("restart").acts) << "taken under another schedule";
  EXPECT_EQ(result.keys.at("restart").acts->condition, (Recipe{{"schedule", "cosine"}}));
}

// gpt is refused without tokens and tokens without gpt; positions act in it, and their scale with
// rotary ones.
TEST(SearchKeys, ConditionsAreRepairedAndDeepened) {
  Stack stack{{{"model", "mlp"}, {"data", "features"}, {"positions", "learned"}, {"scale", 1}},
              [](const Recipe& r) -> Json {
                const bool gpt = r.at("model") == "gpt";
                if (gpt != (r.at("data") == "tokens")) return "model and data do not fit";
                if (!gpt) return {"mlp"};
                const bool rotary = r.at("positions") == "rotary";
                return {"gpt", r.at("positions"), rotary ? r.at("scale") : Json()};
              },
              {}};
  const SearchResult result = stack.Search(
      InputOf({{"model", {"gpt"}}, {"data", {"tokens"}}, {"positions", {"none", "rotary"}}},
              {{"scale", {2}}}));
  ASSERT_TRUE(result.keys.at("scale").acts);
  EXPECT_EQ(result.keys.at("scale").acts->condition,
            (Recipe{{"model", "gpt"}, {"data", "tokens"}, {"positions", "rotary"}}));
  EXPECT_EQ(result.keys.at("positions").acts->condition,
            (Recipe{{"model", "gpt"}, {"data", "tokens"}}));
}

// The only other kind of data needs another model, and acts beside a third kind under that.
TEST(SearchKeys, AChoiceThatIsRefusedAloneIsChangedUnderAnotherOfItsKey) {
  Stack stack{{{"model", "mlp"}, {"data", "features"}},
              [](const Recipe& r) -> Json {
                if ((r.at("model") == "mlp") != (r.at("data") == "features")) return "do not fit";
                return {r.at("model"), r.at("data")};
              },
              {}};
  const SearchResult result =
      stack.Search(InputOf({{"model", {"gpt"}}, {"data", {"markov", "text"}}}, {}));
  ASSERT_TRUE(result.keys.at("data").acts);
  EXPECT_EQ(result.keys.at("data").acts->value, "text");
  EXPECT_FALSE(result.keys.at("model").acts) << "there is no other model for these data";
  EXPECT_FALSE(result.keys.at("model").IsIgnored());
}

// One group of many keys under each condition, not a run for each.
TEST(SearchKeys, ManyDeadKeysCostFewRunsUnderAcondition) {
  SearchInput input = InputOf({{"kind", {"b", "c", "d"}}}, {});
  Stack stack{{{"kind", "a"}}, [](const Recipe& r) { return Json::array({r.at("kind")}); }, {}};
  for (int i = 0; i < 40; ++i) {
    const std::string key = "dead" + std::to_string(i);
    stack.base[key] = 0;
    input.values[key] = {1, 2};
  }
  const SearchResult result = stack.Search(input);
  EXPECT_EQ(IgnoredIn(result).size(), 40u);
  EXPECT_EQ(result.conditions, 3);
  EXPECT_LT(result.runs, 2 + 81 + 3 * 6 + 1);
}

// A factor of 1 hides how often it is applied, where both are changed at once.
TEST(SearchKeys, AKeyDoesNotHideItsNeighbour) {
  Stack stack{{{"scaler", "none"}, {"factor", 2}, {"interval", 2000}},
              [](const Recipe& r) -> Json {
                if (r.at("scaler") == "none") return {0};
                return {r.at("interval") == 1 ? r.at("factor").get<int>() : 1};
              },
              {}};
  const SearchResult result = stack.Search(
      InputOf({{"scaler", {"dynamic"}}}, {{"factor", {4, 1}}, {"interval", {4000, 1}}}));
  ASSERT_TRUE(result.keys.at("interval").acts);
  ASSERT_TRUE(result.keys.at("factor").acts);
  EXPECT_EQ(result.keys.at("factor").acts->condition,
            (Recipe{{"scaler", "dynamic"}, {"interval", 1}}));
}

TEST(SearchKeys, AGroupIsHalvedUntilTheKeyIsFound) {
  SearchInput input = InputOf({{"kind", {"b"}}}, {});
  Stack stack{{{"kind", "a"}},
              [](const Recipe& r) -> Json {
                return {r.at("kind"), r.at("kind") == "b" ? r.at("key17") : Json()};
              },
              {}};
  for (int i = 0; i < 40; ++i) {
    const std::string key = "key" + std::to_string(i);
    stack.base[key] = 0;
    input.values[key] = {1};
  }
  const SearchResult result = stack.Search(input);
  EXPECT_EQ(IgnoredIn(result).size(), 39u);
  EXPECT_TRUE(result.keys.at("key17").acts);
}

TEST(SearchKeys, ATargetWithoutEqualRunsIsNotJudged) {
  int calls = 0;
  Stack stack{{{"lr", 0.1}}, [&](const Recipe&) -> Json { return {++calls}; }, {}};
  const SearchResult result = stack.Search(InputOf({}, {{"lr", {0.2}}}));
  EXPECT_EQ(result.unsteady, "loss of rank 0");
  EXPECT_TRUE(result.keys.empty());
  EXPECT_EQ(stack.asked.size(), 2u);
}

// Under such a condition every key would seem to act.
TEST(SearchKeys, AConditionWithoutEqualRunsIsDropped) {
  int calls = 0;
  Stack stack{{{"mode", "a"}, {"dead", 0}},
              [&](const Recipe& r) -> Json {
                return {r.at("mode"), r.at("mode") == "drifts" ? ++calls : 0};
              },
              {}};
  const SearchResult result = stack.Search(InputOf({{"mode", {"drifts"}}}, {{"dead", {1}}}));
  EXPECT_EQ(IgnoredIn(result), std::set<std::string>{"dead"});
}

TEST(SearchKeys, ABaseThatFailsSaysWhy) {
  Stack stack{{{"lr", 0.1}}, [](const Recipe&) -> Json { return "no data"; }, {}};
  EXPECT_EQ(stack.Search(InputOf({}, {{"lr", {0.2}}})).failure, "no data");
}

// In another context a key is asked where it is known to act, and nowhere else.
TEST(SearchKeys, AKeyThatActsElsewhereIsAskedThereAlone) {
  SearchInput input = InputOf({{"kind", {"sgd", "lion"}}}, {{"momentum", {0.5}}, {"init", {2}}});
  input.known["momentum"] = {{{"kind", "sgd"}}, 0.5, ""};
  input.known["init"] = {{}, 2, ""};
  Stack stack{{{"kind", "adam"}, {"momentum", 0.9}, {"init", 1}},
              [](const Recipe& r) -> Json {
                return {r.at("kind"), r.at("kind") == "sgd" ? r.at("momentum") : Json(),
                        r.at("kind") == "lion" ? r.at("init") : Json()};
              },
              {}};
  const SearchResult result = stack.Search(input);
  EXPECT_TRUE(result.keys.at("momentum").acts);
  EXPECT_EQ(IgnoredIn(result), std::set<std::string>{"init"})
      << "that it acts under lion is no excuse";
}

TEST(SearchKeys, RunsAreBounded) {
  SearchInput input = InputOf({}, {{"dead", {1}}});
  for (int i = 0; i < 100; ++i) input.numbers["n" + std::to_string(i)] = {1, 2, 3};
  input.max_runs = 50;
  Stack stack{{{"dead", 0}}, [](const Recipe&) -> Json { return {0}; }, {}};
  const SearchResult result = stack.Search(input);
  EXPECT_TRUE(result.is_cut_off);
  EXPECT_LT(result.runs, 50 + 8 * 3 + 1);
}

}  // namespace search_test
}  // namespace trainwreck
