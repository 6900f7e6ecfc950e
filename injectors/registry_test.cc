// The registry against the folder, and the form of every entry.
#include "injectors/registry.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

namespace trainwreck {
namespace {

// What scenario files of format version 1 call a fault that was one of the recipe.
const std::map<std::string, std::string> kKeptNames = {
    {"loss.softmax_over_batch", "recipe.softmax_over_batch"},
    {"loss.softmax_over_positions", "recipe.softmax_over_positions"},
    {"loss.summed_micro_batches", "recipe.summed_micro_batches"},
    {"loss.wrong_reduction", "recipe.wrong_reduction"},
    {"model.mask_hides_itself", "recipe.mask_hides_itself"},
    {"model.mask_looks_ahead", "recipe.mask_looks_ahead"},
    {"model.eval_in_train_mode", "recipe.eval_in_train_mode"},
};

// injectors/<site>/<fault>.cc of the source tree, as "site.fault".
std::set<std::string> FaultFiles() {
  std::set<std::string> names;
  for (const auto& site : std::filesystem::directory_iterator("injectors")) {
    if (!site.is_directory()) continue;
    for (const auto& file : std::filesystem::directory_iterator(site)) {
      const std::string stem = file.path().stem();
      if (file.path().extension() != ".cc" || stem.ends_with("_test")) continue;
      names.insert(site.path().filename().string() + "." + stem);
    }
  }
  return names;
}

TEST(FaultRegistry, HasOneEntryPerFile) {
  std::set<std::string> registered;
  for (const auto& [name, fault] : FaultRegistry()) registered.insert(name);
  std::set<std::string> expected;
  for (const std::string& file : FaultFiles()) {
    const auto kept = kKeptNames.find(file);
    expected.insert(kept == kKeptNames.end() ? file : kept->second);
  }
  EXPECT_EQ(registered, expected);
  EXPECT_GE(registered.size(), 7U);
}

TEST(FaultRegistry, EveryFileHasATestBesideIt) {
  for (const std::string& name : FaultFiles()) {
    const auto dot = name.find('.');
    const std::string test =
        "injectors/" + name.substr(0, dot) + "/" + name.substr(dot + 1) + "_test.cc";
    EXPECT_TRUE(std::filesystem::exists(test)) << test;
  }
}

TEST(FaultRegistry, EveryEntryIsDocumented) {
  for (const auto& [name, fault] : FaultRegistry()) {
    SCOPED_TRACE(name);
    EXPECT_EQ(fault.info.name, name);
    EXPECT_TRUE(fault.info.doc.ends_with(".")) << fault.info.doc;
    EXPECT_FALSE(fault.info.evidence.empty());
    for (const ParamInfo& param : fault.info.params) {
      SCOPED_TRACE(param.name);
      EXPECT_FALSE(param.doc.empty());
      // A choice or a switch has no unit; everything else has one.
      const bool is_plain = param.type == ValueType::kBool || !param.choices.empty();
      EXPECT_EQ(param.unit.empty(), is_plain);
      if (!param.default_value.is_null()) {
        EXPECT_EQ(CheckValue(param, param.default_value), "");
      }
    }
  }
}

TEST(FaultRegistry, AmendmentsNameTheirParameters) {
  for (const auto& [name, fault] : FaultRegistry()) {
    SCOPED_TRACE(name);
    EXPECT_NE(fault.info.amends.empty(), fault.make == nullptr);
    for (const Amendment& amendment : fault.info.amends) {
      EXPECT_FALSE(amendment.key.empty());
      const bool has_param =
          std::any_of(fault.info.params.begin(), fault.info.params.end(),
                      [&](const ParamInfo& p) { return p.name == amendment.param; });
      EXPECT_NE(has_param, amendment.param.empty() && !amendment.value.is_null());
    }
    if (!fault.info.amends.empty()) {
      EXPECT_FALSE(fault.info.has_trigger) << "a recipe is amended once, before any step";
    }
  }
}

// What `--describe` prints must come back as it was.
TEST(FaultRegistry, SurvivesTheDescription) {
  TargetDescription described;
  for (const auto& [name, fault] : FaultRegistry()) described.faults.push_back(fault.info);
  const Json json = ToJson(described);
  const TargetDescription read = DescriptionFromJson(json);
  EXPECT_EQ(read.faults.size(), FaultRegistry().size());
  EXPECT_EQ(ToJson(read), json);
}

}  // namespace
}  // namespace trainwreck
