#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

#include "harness/spec/defaults.h"
#include "harness/spec/fault_file.h"
#include "harness/spec/scenario.h"
#include "harness/spec/test_target.h"
#include "harness/spec/yaml_json.h"

namespace trainwreck {
namespace schema_test {

class SchemaTest : public ::testing::Test {
 protected:
  explicit SchemaTest(const Json& json) {
    valijson::SchemaParser parser(valijson::SchemaParser::kDraft7);
    parser.populateSchema(valijson::adapters::NlohmannJsonAdapter(json), schema_);
  }

  // What is wrong with a file, empty when nothing is.
  std::string Check(const std::string& text) {
    const Json json = YamlToJson(YAML::Load(text));
    valijson::Validator validator;
    valijson::ValidationResults results;
    if (validator.validate(schema_, valijson::adapters::NlohmannJsonAdapter(json), &results)) {
      return "";
    }
    std::string messages;
    valijson::ValidationResults::Error error;
    while (results.popError(error)) {
      for (const std::string& context : error.context) messages += context;
      messages += ": " + error.description + "\n";
    }
    return messages.empty() ? "invalid" : messages;
  }

  std::string CheckFile(const std::string& path) { return Check(ReadTestFile(path)); }

  valijson::Schema schema_;
};

class ScenarioSchemaTest : public SchemaTest {
 protected:
  ScenarioSchemaTest() : SchemaTest(ScenarioSchema(TestTarget())) {}
};

class FaultSchemaTest : public SchemaTest {
 protected:
  FaultSchemaTest() : SchemaTest(FaultFileSchema(TestTarget())) {}
};

TEST_F(ScenarioSchemaTest, AcceptsGoodScenarios) {
  for (const char* name : {"minimal", "everything", "child"}) {
    EXPECT_EQ(CheckFile(std::string("harness/spec/testdata/family/") + name + ".yaml"), "") << name;
  }
  EXPECT_EQ(CheckFile("harness/spec/testdata/short/short.yaml"), "");
  EXPECT_EQ(CheckFile("tests/bad_scenarios/support/good.yaml"), "");
}

TEST_F(ScenarioSchemaTest, RejectsWhatAnEditorShouldMark) {
  for (const char* name : {"head-api-version",
                           "head-kind",
                           "head-missing",
                           "head-unknown-keys",
                           "head-title-empty",
                           "recipe-unknown-key",
                           "recipe-unknown-section",
                           "recipe-wrong-types",
                           "recipe-choice",
                           "recipe-out-of-range",
                           "matrix-empty",
                           "matrix-unknown-keys",
                           "inject-unknown-fault",
                           "inject-unknown-parameter",
                           "inject-wrong-parameter",
                           "inject-trigger-on-recipe",
                           "inject-misspelled-key",
                           "symptoms-missing",
                           "symptoms-list",
                           "check-unknown-key",
                           "remedy-unknown-keys",
                           "remedies-empty",
                           "seeds-wrong",
                           "phases-shape",
                           "phases-not-a-list",
                           "expect-unknown-verdict",
                           "requires-wrong",
                           "budget-zero",
                           "yaml-null-value",
                           "several-mistakes"}) {
    EXPECT_NE(CheckFile(std::string("tests/bad_scenarios/") + name + ".yaml"), "") << name;
  }
}

TEST_F(ScenarioSchemaTest, KnowsTheTargetsKeysAndFaults) {
  const Json schema = ScenarioSchema(TestTarget());
  const Json& recipe = schema["properties"]["recipe"]["properties"];
  EXPECT_EQ(recipe["optimizer.lr"]["description"], "Peak learning rate");
  EXPECT_EQ(recipe["optimizer"]["properties"]["kind"]["enum"], (Json{"sgd", "adamw"}));
  EXPECT_EQ(recipe["steps"]["minimum"], 1);
  EXPECT_EQ(recipe["steps"]["default"], 100);
  const Json& fault =
      schema["properties"]["inject"]["patternProperties"].begin().value()["properties"]["fault"];
  EXPECT_EQ(fault["enum"].size(), TestTarget().faults.size());
  // Only numbers can be scaled.
  const Json& remedy = schema["properties"]["remedies"]["patternProperties"].begin().value();
  EXPECT_FALSE(remedy["properties"]["scale"]["properties"].contains("optimizer.kind"));
  EXPECT_TRUE(remedy["properties"]["scale"]["properties"].contains("optimizer.lr"));
}

class DefaultsSchemaTest : public SchemaTest {
 protected:
  DefaultsSchemaTest() : SchemaTest(DefaultsSchema(TestTarget())) {}
};

// What `validate` says of a scenario below a folder with these defaults.
std::size_t ErrorsBelow(const std::string& defaults) {
  const std::string root = ::testing::TempDir() + "/defaults";
  std::filesystem::create_directories(root + "/nan");
  std::ofstream(root + "/nan/defaults.yaml") << defaults;
  const std::string body =
      "apiVersion: trainwreck/v1\nkind: Scenario\ntitle: x\n"
      "inject: {hot: {fault: recipe.high_lr}}\nsymptoms: {dies: eventually nonfinite(loss)}\n"
      "remedies: {clip: {set: {optimizer.clip_norm: 1}}}\n";
  LoadOptions options;
  options.scenarios_root = root;
  return ParseScenario(body, root + "/nan/x.yaml", TestTarget(), options).errors.size();
}

TEST_F(DefaultsSchemaTest, AcceptsWhatIsReadAndMarksWhatIsNot) {
  EXPECT_EQ(CheckFile("harness/spec/testdata/short/defaults.yaml"), "");
  const std::string all =
      "apiVersion: trainwreck/v1\nkind: Scenario\ntags: [slow]\nrequires: {ranks: 1}\n"
      "recipe: {optimizer: {lr: 0.1}}\nbudget: {seconds: 9}\nx-note: why\n";
  for (const std::string seeds : {"seeds: 3\n", "seeds: {count: 3}\n"}) {
    EXPECT_EQ(Check(all + seeds), "") << seeds;
    EXPECT_EQ(ErrorsBelow(all + seeds), 0U) << seeds;
  }
  for (const char* bad : {"title: x\n", "inject: {hot: {fault: recipe.high_lr}}\n",
                          "no_remedy: none\n", "recipe: {stepz: 5}\n", "recipe: {steps: five}\n",
                          "seeds: 0\n", "budget: {second: 9}\n", "sedes: 3\n", "- x\n"}) {
    EXPECT_NE(Check(bad), "") << bad;
    EXPECT_NE(ErrorsBelow(bad), 0U) << bad;
  }
  // What the scenario itself says takes the place of these.
  for (const char* bad : {"kind: Fault\n", "apiVersion: trainwreck/v2\n"}) {
    EXPECT_NE(Check(bad), "") << bad;
  }
}

// One part of a map may stand in the defaults and the other in the scenario.
TEST_F(DefaultsSchemaTest, HalfOfAMapIsNoMistake) {
  EXPECT_EQ(Check("seeds: {require: 2}\n"), "");
  EXPECT_EQ(Check("budget: {stall_seconds: 2}\n"), "");
}

// The schema must never mark what `validate` accepts, so every key that it knows is tried here.
TEST_F(ScenarioSchemaTest, MentionsEveryKeyOfTheDocument) {
  const Json schema = ScenarioSchema(TestTarget());
  const std::string document = ReadTestFile("docs/guide/scenario.md");
  for (const auto& [key, value] : schema["properties"].items()) {
    EXPECT_NE(document.find("`" + key + "`"), std::string::npos) << key << " is not in docs";
    EXPECT_TRUE(value.contains("description") || value.contains("const")) << key;
  }
}

TEST_F(FaultSchemaTest, AcceptsWhatIsReadAndMarksWhatIsNot) {
  const std::string head =
      "apiVersion: trainwreck/v1\nkind: Fault\nname: recipe.a\nsummary: Breaks it.\n";
  const std::string params =
      "parameters: {by: {type: number, default: 2, min: 0, max: 9, unit: times, doc: Why.},\n"
      "  how: {type: string, choices: [sgd]}}\n";
  for (const std::string& good :
       {params + "scale: {optimizer.lr: $by}\nset: {optimizer: {kind: $how}}\nx-note: 1\n",
        std::string("set: {steps: 5}\nrequires: {ranks: 2, features: cuda}\n")}) {
    EXPECT_EQ(Check(head + good), "") << good;
    TargetDescription target = TestTarget();
    EXPECT_TRUE(FaultCatalogue(target).AddText(head + good, "f").empty()) << good;
  }
  for (const char* bad :
       {"", "x: 1", "set: {}", "set: {stepz: 5}", "set: {steps: five}", "set: {steps: 0}",
        "scale: {optimizer.kind: 2}", "scale: {optimizer.lr: by}", "set: {steps: 1}\nrequires: {}",
        "set: {steps: 1}\nparameters: {by: {default: 1}}",
        "set: {steps: 1}\nparameters: {by: {type: float}}"}) {
    EXPECT_NE(Check(head + bad), "") << bad;
    TargetDescription target = TestTarget();
    EXPECT_FALSE(FaultCatalogue(target).AddText(head + bad, "f").empty()) << bad;
  }
}

}  // namespace schema_test
}  // namespace trainwreck
