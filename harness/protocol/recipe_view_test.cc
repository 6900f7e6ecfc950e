#include "harness/protocol/recipe_view.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>

namespace trainwreck {
namespace recipe_view_test {

TEST(RecipeView, TheRecipesValueComesBeforeTheDescriptionsDefault) {
  TargetDescription target;
  for (const auto& [name, value] : {std::pair<const char*, Json>{"steps", 100}, {"name", "x"}}) {
    ParamInfo info;
    info.name = name;
    info.default_value = value;
    target.recipe.push_back(info);
  }
  const Recipe recipe = {{"steps", 7}};
  EXPECT_EQ(RecipeView(recipe, &target).Int(kStepsKey), 7);
  EXPECT_EQ(RecipeView({}, &target).Int(kStepsKey), 100);
  EXPECT_EQ(RecipeView({}, &target).Text("name"), "x");
  EXPECT_EQ(RecipeView({}, &target).Text("gone"), std::nullopt);
  EXPECT_EQ(RecipeView({}).Int(kStepsKey), std::nullopt);
}

TEST(RecipeView, WhatIsOfAnotherTypeIsNotThere) {
  const Recipe recipe = {{"text", "3"}, {"yes", true},  {"half", 2.5},
                         {"null", {}},  {"big", 3.0e9}, {"nan", std::nan("")}};
  const RecipeView view(recipe);
  EXPECT_EQ(view.Number("text"), std::nullopt);
  EXPECT_EQ(view.Number("yes"), std::nullopt);
  EXPECT_EQ(view.Bool("yes"), true);
  EXPECT_EQ(view.Bool("half"), std::nullopt);
  EXPECT_EQ(view.Number("half"), 2.5);
  EXPECT_EQ(view.Int("half"), 2);
  EXPECT_EQ(view.Text("half"), std::nullopt);
  EXPECT_EQ(view.Number("null"), std::nullopt);
  EXPECT_EQ(view.Int("big"), std::nullopt);
  EXPECT_EQ(view.Int("nan"), std::nullopt);
  EXPECT_EQ(view.Number("big"), 3.0e9);
}

TEST(RecipeView, ARoleIsReadByWhateverKeyTheTargetGivesIt) {
  TargetDescription target;
  for (const auto& [name, role] : {std::pair{"steps", ""}, {"peak", "learning_rate"}}) {
    ParamInfo info;
    info.name = name;
    info.default_value = 0.5;
    info.role = role;
    target.recipe.push_back(info);
  }
  const Recipe recipe = {{"peak", 0.25}};
  EXPECT_EQ(RecipeView(recipe, &target).Number(KeyRole::kLearningRate), 0.25);
  EXPECT_EQ(RecipeView({}, &target).Number(KeyRole::kLearningRate), 0.5);
  EXPECT_EQ(RecipeView(recipe, &target).Number(KeyRole::kClipNorm), std::nullopt);
  EXPECT_EQ(RecipeView(recipe).Number(KeyRole::kLearningRate), std::nullopt);
  EXPECT_EQ(KeyWithRole(target, KeyRole::kLearningRate)->name, "peak");
  EXPECT_EQ(KeyWithRole(target, KeyRole::kCost), nullptr);
}

TEST(RecipeView, EveryRoleHasANameOfItsOwn) {
  std::set<std::string> names;
  for (int role = 0; role <= static_cast<int>(KeyRole::kCost); ++role) {
    const std::string name = ToString(KeyRole(role));
    EXPECT_TRUE(!name.empty() && names.insert(name).second) << name;
  }
  EXPECT_EQ(names.size(), KeyRoleNames().size());
}

}  // namespace recipe_view_test
}  // namespace trainwreck
