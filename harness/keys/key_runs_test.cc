// The search with real runs, of a target that forgets some of its options, in every context.
#include "harness/keys/key_runs.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

#include "harness/keys/other_values.h"
#include "harness/keys/search.h"
#include "harness/launch/fake_runs.h"
#include "harness/process/interruption.h"

namespace trainwreck {
namespace key_runs_test {

class KeyRunsTest : public ::testing::Test {
 protected:
  KeyRunsTest() {
    setenv("TRAINWRECK_CACHE", (FreshFolder("cache")).c_str(), 1);
    session_.target.command = {std::filesystem::absolute("harness/keys/forgetful_target")};
    session_.target.has_fork_server = true;
    session_.description = Describe(session_.target, FreshFolder("descriptions"));
    for (const ParamInfo& key : session_.description.recipe) base_[key.name] = key.default_value;
  }

  SearchResult Search(KeyContext context, const SearchResult* plain = nullptr) {
    plan_ = PlanContext(context, base_, session_.description);
    EXPECT_EQ(plan_.lacking, "");
    SearchInput input;
    input.base = plan_.recipe;
    for (const ParamInfo& key : session_.description.recipe) {
      if (!ReasonToLeaveOut(key.name, context, session_.description).empty()) continue;
      input.values[key.name] = OtherValues(key, input.base.at(key.name));
      (key.choices.empty() ? input.numbers : input.switches)[key.name] = input.values[key.name];
      if (plain == nullptr || !plain->keys.at(key.name).acts) continue;
      input.known[key.name] = *plain->keys.at(key.name).acts;
    }
    KeyRuns runs(session_, {.seed = 1, .cores = 2});
    return SearchKeys(input, runs.ObserverOf(plan_));
  }

  static std::set<std::string> IgnoredIn(const SearchResult& result) {
    std::set<std::string> ignored;
    for (const auto& [key, reading] : result.keys) {
      if (reading.IsIgnored()) ignored.insert(key);
    }
    return ignored;
  }

  Session session_;
  Recipe base_;
  ContextPlan plan_;
};

TEST_F(KeyRunsTest, EachContextShowsWhatIsForgottenInIt) {
  const SearchResult plain = Search(KeyContext::kPlain);
  EXPECT_EQ(plain.failure + plain.unsteady, "");
  EXPECT_EQ(IgnoredIn(plain), (std::set<std::string>{"optimizer.clip_norm"}));
  EXPECT_EQ(plain.keys.at("optimizer.momentum").acts->condition,
            (Recipe{{"optimizer.kind", "sgd"}}));
  EXPECT_EQ(plain.keys.at("parallel.bucket").acts->condition, (Recipe{{"parallel.ranks", 2}}));
  EXPECT_FALSE(plain.keys.at("model.heads").acts);
  EXPECT_NE(plain.keys.at("model.heads").refusal.find("must be 4"), std::string::npos);
  EXPECT_EQ(IgnoredIn(Search(KeyContext::kResume, &plain)),
            (std::set<std::string>{"optimizer.clip_norm", "schedule.warmup"}));
  EXPECT_EQ(IgnoredIn(Search(KeyContext::kRanks, &plain)),
            (std::set<std::string>{"optimizer.clip_norm"}));
  EXPECT_EQ(IgnoredIn(Search(KeyContext::kAccumulation, &plain)),
            (std::set<std::string>{"optimizer.clip_norm", "loss.smoothing"}));
}

TEST_F(KeyRunsTest, ATargetThatDriftsIsSaidToDoSo) {
  session_.target.environment["FORGETFUL_DRIFTS"] = "1";
  EXPECT_EQ(Search(KeyContext::kPlain).unsteady, "loss of rank 0");
}

TEST_F(KeyRunsTest, AResumedRunHasTheChangeInItsSecondPhaseAlone) {
  const ContextPlan plan = PlanContext(KeyContext::kResume, base_, session_.description);
  const trainwreck::Run run = RunOf(plan, {{{"accumulation", 3}}, {{"optimizer.lr", 7}}, 0},
                                    "keys/0", session_.description);
  ASSERT_EQ(run.phases.size(), 2u);
  EXPECT_EQ(run.phases[0].until, 2);
  EXPECT_EQ(run.plan.recipe.at("optimizer.lr"), 0.1);
  EXPECT_EQ(run.plan.recipe.at("accumulation"), 3) << "a condition holds in all of the run";
  EXPECT_EQ(run.later_changes, (Recipe{{"optimizer.lr", 7}}));
}

TEST_F(KeyRunsTest, AContextIsLeftOutWithItsReason) {
  const TargetDescription& target = session_.description;
  base_["parallel.ranks"] = 2;
  EXPECT_NE(PlanContext(KeyContext::kRanks, base_, target).lacking.find("above 1"),
            std::string::npos);
  base_["steps"] = 1;
  EXPECT_NE(PlanContext(KeyContext::kResume, base_, target).lacking, "");
  TargetDescription poor;
  poor.level = 0;
  EXPECT_NE(PlanContext(KeyContext::kRanks, {}, poor).lacking, "");
  EXPECT_NE(PlanContext(KeyContext::kAccumulation, {}, poor).lacking, "");
  EXPECT_EQ(PlanContext(KeyContext::kResume, {}, poor).lacking,
            "the target cannot stop at a step and resume");
  EXPECT_EQ(PlanContext(KeyContext::kPlain, {}, poor).lacking, "");
}

TEST(OtherValues, FitTheDescription) {
  ParamInfo info{.name = "k", .type = ValueType::kInt, .min = 1, .max = 5};
  EXPECT_EQ(OtherValues(info, 4), (std::vector<Json>{1, 2, 5}));
  info = {.name = "k", .type = ValueType::kNumber, .min = 0, .max = 1};
  EXPECT_EQ(OtherValues(info, 0.0), (std::vector<Json>{1.0, 0.1, 0.001, 0.5}));
  info = {.name = "k", .type = ValueType::kString, .choices = {"a", "b", "c"}};
  EXPECT_EQ(OtherValues(info, "b"), (std::vector<Json>{"a", "c"}));
  info = {.name = "k", .type = ValueType::kString};
  EXPECT_EQ(OtherValues(info, ""), (std::vector<Json>{"another", "*"}));
  info = {.name = "k", .type = ValueType::kBool};
  EXPECT_EQ(OtherValues(info, true), (std::vector<Json>{false}));
  info = {.name = "k", .type = ValueType::kIntList};
  EXPECT_TRUE(OtherValues(info, Json::array()).empty());
}

}  // namespace key_runs_test
}  // namespace trainwreck
