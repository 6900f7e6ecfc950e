#include "harness/spec/fault_file.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "harness/spec/test_target.h"

namespace trainwreck {
namespace fault_file_test {

constexpr char kHead[] = "apiVersion: trainwreck/v1\nkind: Fault\n";

std::string Fault(const std::string& name, const std::string& changes) {
  return kHead + ("name: " + name) + "\nsummary: Breaks it.\n" + changes + "\n";
}

struct Read {
  TargetDescription target = TestTarget();
  std::vector<Diagnostic> errors;

  explicit Read(const std::string& text, const LoadOptions& options = {}, int level = 2) {
    target.level = level;
    errors = FaultCatalogue(target).AddText(text, "f.yaml", options);
  }
};

TEST(FaultFile, SaysAllThatADescriptionSays) {
  const Read read(Fault("recipe.new",
                        "parameters:\n"
                        "  by: {type: number, default: 3, min: 1, max: 9, unit: times, doc: Why.}\n"
                        "  how: {type: string, choices: [sgd, adamw]}\n"
                        "set: {optimizer: {kind: $how}, steps: 50}\n"
                        "scale: {optimizer.lr: $by}\n"
                        "requires: {ranks: 2, features: [backend:gloo]}\n"
                        "x-note: mine"));
  ASSERT_TRUE(read.errors.empty()) << Format(read.errors[0]);
  const FaultInfo* fault = read.target.FindFault("recipe.new");
  ASSERT_NE(fault, nullptr);
  EXPECT_EQ(fault->doc, "Breaks it.");
  EXPECT_FALSE(fault->has_trigger);
  EXPECT_EQ(fault->min_ranks, 2);
  EXPECT_EQ(fault->features, std::vector<std::string>{"backend:gloo"});
  EXPECT_EQ(fault->evidence, "each key, and its value before and after");
  ASSERT_EQ(fault->params.size(), 2U);
  EXPECT_EQ(fault->params[0].default_value, 3.0);
  EXPECT_EQ(fault->params[0].min, 1.0);
  EXPECT_EQ(fault->params[0].max, 9.0);
  EXPECT_EQ(fault->params[0].unit, "times");
  EXPECT_TRUE(fault->params[1].default_value.is_null());
  Recipe recipe = {{"optimizer.kind", "none"}, {"optimizer.lr", 0.5}, {"steps", 7}};
  Amend(*fault, {{"by", 4.0}, {"how", "sgd"}}, recipe);
  EXPECT_EQ(recipe, (Recipe{{"optimizer.kind", "sgd"}, {"optimizer.lr", 2.0}, {"steps", 50}}));
}

TEST(FaultFile, HoldsSeveralDocumentsWithTheirPlaces) {
  const Read read("# Two.\n---\n" + Fault("recipe.one", "set: {steps: 1}") +
                  "---\n# The second.\n" + Fault("recipe.two", "set: {stepz: 1}") +
                  "--- # the third\n" + Fault("recipe.three", "set: {steps: 3}") + "---\n");
  ASSERT_EQ(read.errors.size(), 1U);
  EXPECT_EQ(read.errors[0].position.line, 14);
  EXPECT_EQ(read.errors[0].position.column, 7);
  EXPECT_EQ(read.errors[0].source_line, "set: {stepz: 1}");
  EXPECT_NE(read.target.FindFault("recipe.one"), nullptr);
  EXPECT_EQ(read.target.FindFault("recipe.two"), nullptr);
  EXPECT_NE(read.target.FindFault("recipe.three"), nullptr);
}

TEST(FaultFile, ManyDocumentsAreRefusedAndSoonSo) {
  std::string text;
  while (text.size() < 200'000) text += "---\na\n";
  const Read read(text);
  ASSERT_EQ(read.errors.size(), 1U);
  EXPECT_NE(read.errors[0].message.find("at most 256 faults"), std::string::npos);
}

TEST(FaultFile, TakesNoNameTwice) {
  const Read twice(Fault("recipe.a", "set: {steps: 1}") + "---\n" +
                   Fault("recipe.a", "set: {steps: 2}"));
  ASSERT_EQ(twice.errors.size(), 1U);
  EXPECT_NE(twice.errors[0].message.find("stands in f.yaml:3"), std::string::npos);
  const Read own(Fault("recipe.high_lr", "set: {steps: 1}"));
  ASSERT_EQ(own.errors.size(), 1U);
  EXPECT_NE(own.errors[0].message.find("the target's own"), std::string::npos);
}

TEST(FaultFile, LeavesOutWhatIsForAnotherTarget) {
  const std::string text = Fault("recipe.a", "set: {warp.speed: 1}");
  LoadOptions own;
  own.is_own = true;
  EXPECT_EQ(Read(text, own, 0).errors.size(), 1U);
  EXPECT_TRUE(Read(text, {}, 0).errors.empty()) << "written for some other target";
  EXPECT_EQ(Read(text, {}, 2).errors.size(), 1U);
  own.elsewhere = {"recipe:warp.speed"};
  for (const int level : {0, 2}) {
    const Read read(text, own, level);
    EXPECT_TRUE(read.errors.empty());
    EXPECT_EQ(read.target.FindFault("recipe.a"), nullptr);
  }
}

// The suite's are only for targets that have their keys, and never in the place of the target's.
TEST(FaultCatalogue, AddsTheSuiteWhereItFits) {
  TargetDescription target;
  target.recipe = {{.name = "optimizer.lr", .default_value = 0.1},
                   {.name = "eval.mode", .type = ValueType::kString, .choices = {"a", "b"}},
                   {.name = "model.layer_norm", .type = ValueType::kInt}};
  target.faults = {{.name = "recipe.low_lr", .doc = "The target's."}};
  FaultCatalogue catalogue(target);
  catalogue.AddSuite();
  ASSERT_EQ(target.faults.size(), 2U);
  EXPECT_EQ(target.faults[0].doc, "The target's.");
  EXPECT_EQ(target.faults[1].name, "recipe.high_lr");
  const auto errors = catalogue.AddText(Fault("recipe.high_lr", "set: {optimizer.lr: 1}"), "f", {});
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_NE(errors[0].message.find("comes with trainwreck"), std::string::npos);
}

TEST(FaultFile, IsToldFromAScenario) {
  const std::string folder = std::string(std::getenv("TEST_TMPDIR")) + "/";
  const auto is_fault = [&](const std::string& text) {
    std::ofstream(folder + "x.yaml") << text;
    return IsFaultFile(folder + "x.yaml");
  };
  EXPECT_TRUE(is_fault(Fault("recipe.a", "")));
  EXPECT_TRUE(is_fault("# x\n---\nkind:  \"Fault\"  # y\r\n"));
  EXPECT_FALSE(is_fault("kind: Scenario\nrecipe:\n  kind: Fault\n"));
  EXPECT_TRUE(is_fault("{\"kind\": \"Fault\"}"));
  EXPECT_FALSE(is_fault("{\"kind\": \"Scenario\", \"title\": \"kind: Fault\"}"));
  EXPECT_FALSE(is_fault("kind: Faulty\n"));
  EXPECT_FALSE(IsFaultFile(folder + "none.yaml"));
}

}  // namespace fault_file_test
}  // namespace trainwreck
