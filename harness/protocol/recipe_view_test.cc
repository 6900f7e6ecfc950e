#include "harness/protocol/recipe_view.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>

namespace trainwreck {
namespace {

TEST(RecipeView, TheRecipesValueComesBeforeTheDescriptionsDefault) {
  TargetDescription target;
  for (const auto& [name, value] : {std::pair<const char*, Json>{"steps", 100}, {"name", "x"}}) {
    ParamInfo info;
    info.name = name;
    info.default_value = value;
    target.recipe.push_back(info);
  }
  const Recipe recipe = {{"steps", 7}};
  EXPECT_EQ(RecipeView(recipe, &target).Int(KeyRole::kSteps), 7);
  EXPECT_EQ(RecipeView({}, &target).Int(KeyRole::kSteps), 100);
  EXPECT_EQ(RecipeView({}, &target).Text("name"), "x");
  EXPECT_EQ(RecipeView({}, &target).Text("gone"), std::nullopt);
  EXPECT_EQ(RecipeView({}).Int(KeyRole::kSteps), std::nullopt);
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

TEST(RecipeView, EveryRoleHasAKeyOfItsOwn) {
  std::set<std::string> keys;
  for (int role = 0; role <= static_cast<int>(KeyRole::kStallSeconds); ++role) {
    EXPECT_TRUE(keys.insert(KeyOf(KeyRole(role))).second) << KeyOf(KeyRole(role));
  }
}

}  // namespace
}  // namespace trainwreck
