#include "harness/spec/scenario.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "harness/spec/test_target.h"

namespace trainwreck {
namespace scenario_test {

using Set = std::vector<std::pair<std::string, Json>>;
using Scale = std::vector<std::pair<std::string, double>>;

constexpr char kRoot[] = "harness/spec/testdata";

LoadOptions Options() {
  LoadOptions options;
  options.scenarios_root = kRoot;
  return options;
}

std::string AllMessages(const ScenarioFile& file) {
  std::string messages;
  for (const Diagnostic& error : file.errors) messages += Format(error);
  return messages;
}

Scenario Load(const std::string& name) {
  ScenarioFile file =
      LoadScenario(std::string(kRoot) + "/" + name + ".yaml", TestTarget(), Options());
  if (!file.scenario) throw std::runtime_error(AllMessages(file));
  return *file.scenario;
}

// A text with `extra` at its end, without the check of its name.
ScenarioFile Parse(const std::string& extra, const std::string& recipe = "{steps: 60}") {
  LoadOptions options = Options();
  options.check_name = false;
  return ParseScenario(
      "apiVersion: trainwreck/v1\nkind: Scenario\nname: test\ntitle: A test\nrecipe: " + recipe +
          "\n" + extra,
      "test.yaml", TestTarget(), options);
}

constexpr char kRest[] =
    "inject: {hot: {fault: recipe.high_lr}}\n"
    "symptoms: {blows_up: eventually nonfinite(loss)}\n"
    "remedies: {clip: {set: {optimizer.clip_norm: 1.0}}}\n";

TEST(LoadScenario, FillsInWhatIsNotSaid) {
  const Scenario scenario = Load("family/minimal");
  EXPECT_EQ(scenario.name, "family/minimal");
  EXPECT_EQ(scenario.file, std::string(kRoot) + "/family/minimal.yaml");
  EXPECT_EQ(scenario.seed_count, 5);
  EXPECT_EQ(scenario.seed_require, 5);
  ASSERT_EQ(scenario.points.size(), 1U);
  EXPECT_EQ(scenario.points[0].name, "");
  ASSERT_EQ(scenario.phases.size(), 1U);
  EXPECT_EQ(scenario.phases[0].name, "train");
  EXPECT_FALSE(scenario.phases[0].until);
  EXPECT_EQ(scenario.expect.verdict, VerdictKind::kPass);
  EXPECT_EQ(scenario.requires_.ranks, 1);
  EXPECT_EQ(scenario.budget.seconds, 120);
  EXPECT_EQ(scenario.remedies[0].resolves, std::vector<std::string>{"blows_up"});
  EXPECT_TRUE(scenario.remedies[0].is_correct);
  EXPECT_FALSE(scenario.has_reference);
}

TEST(LoadScenario, ReadsWhatIsShort) {
  const Scenario scenario = Load("short/short");
  EXPECT_EQ(scenario.name, "short/short");
  EXPECT_EQ(scenario.seed_count, 3);
  EXPECT_EQ(scenario.symptoms.size(), 4U);
  EXPECT_EQ(scenario.remedies[0].resolves,
            (std::vector<std::string>{"blows_up", "sgd_tells", "adamw_tells"}));
}

TEST(LoadScenario, ReadsHeadAndRecipe) {
  const Scenario scenario = Load("family/everything");
  EXPECT_EQ(scenario.title, "Every key at least once");
  EXPECT_EQ(scenario.sources, (std::vector<std::string>{"guide", "checklist"}));
  EXPECT_EQ(scenario.tags, std::vector<std::string>{"smoke"});
  EXPECT_EQ(scenario.recipe.set, (Set{{"model.kind", "gpt"},
                                      {"model.layers", 2},
                                      {"model.norm", "post"},
                                      {"data.kind", "markov"},
                                      {"optimizer.kind", "sgd"},
                                      {"optimizer.lr", 0.1},
                                      {"optimizer.momentum", 0.9},
                                      {"parallel.ranks", 2},
                                      {"steps", 60}}));
  EXPECT_EQ(scenario.seed_count, 10);
  EXPECT_EQ(scenario.seed_require, 9);
  EXPECT_TRUE(scenario.repeats_seed);
  EXPECT_TRUE(scenario.has_reference);
}

TEST(LoadScenario, MultipliesTheMatrixLessTheExcluded) {
  const Scenario scenario = Load("family/everything");
  ASSERT_EQ(scenario.points.size(), 3U);
  EXPECT_EQ(scenario.points[0].name, "sgd-small");
  EXPECT_EQ(scenario.points[1].name, "sgd-wide-deep");
  EXPECT_EQ(scenario.points[2].name, "adamw-small");
  EXPECT_EQ(scenario.points[1].changes.scale, (Scale{{"model.width", 2}, {"model.layers", 1.5}}));
  EXPECT_EQ(scenario.points[2].changes.set, (Set{{"optimizer.kind", "adamw"}}));
  EXPECT_EQ(scenario.points[2].with.at("hot_lr").at("factor"), 30.0);
  EXPECT_TRUE(scenario.points[0].with.empty());
}

TEST(LoadScenario, ReadsFaultsWithDefaultsAndTriggers) {
  const Scenario scenario = Load("family/everything");
  ASSERT_EQ(scenario.faults.size(), 3U);
  const InjectedFault& bad = scenario.faults[1];
  EXPECT_EQ(bad.id, "bad");
  EXPECT_EQ(bad.with.at("value"), "inf");
  EXPECT_EQ(bad.with.at("samples"), (Json{1, 2}));
  EXPECT_EQ(bad.with.at("position"), 0);  // not given: the default
  EXPECT_EQ(bad.trigger.from, 3);
  EXPECT_EQ(bad.trigger.to, 50);
  EXPECT_EQ(bad.trigger.every, 2);
  EXPECT_FALSE(bad.trigger.at);
  EXPECT_EQ(bad.position.line, 26);
  const Trigger& killed = scenario.faults[2].trigger;
  EXPECT_EQ(killed.at, 40);
  EXPECT_EQ(killed.ranks, std::vector<int>{1});
  EXPECT_EQ(killed.phase, "resume");
  EXPECT_EQ(killed.attempt, 0);
  EXPECT_EQ(killed.probability, 0.5);
}

TEST(LoadScenario, ReadsChecks) {
  const Scenario scenario = Load("family/everything");
  ASSERT_EQ(scenario.symptoms.size(), 3U);
  const Check& blows_up = scenario.symptoms[0];
  EXPECT_EQ(blows_up.formula.text(), "eventually[:50] nonfinite(loss)");
  ASSERT_TRUE(blows_up.min_margin);
  EXPECT_EQ(blows_up.min_margin->value, 10);
  EXPECT_EQ(blows_up.min_margin->unit, formula::Unit::kStep);
  EXPECT_EQ(scenario.symptoms[1].when, std::vector<std::string>{"sgd-*"});
  EXPECT_EQ(scenario.symptoms[1].formula.text(),
            "spike(grad_norm, ratio=4, window=8) precedes[1:20] nonfinite(loss)");
  ASSERT_TRUE(scenario.quality);
  EXPECT_EQ(scenario.quality->name, "quality");
  EXPECT_EQ(scenario.quality->min_margin->unit, formula::Unit::kOctave);
  EXPECT_EQ(scenario.healthy.size(), 2U);
}

TEST(LoadScenario, ReadsRemediesAndDecoys) {
  const Scenario scenario = Load("family/everything");
  ASSERT_EQ(scenario.remedies.size(), 2U);
  EXPECT_EQ(scenario.remedies[0].changes.scale, (Scale{{"optimizer.lr", 0.1}}));
  EXPECT_EQ(scenario.remedies[0].resolves,
            (std::vector<std::string>{"blows_up", "smoke_alarm", "stuck"}));
  const Remedy& clip = scenario.remedies[1];
  EXPECT_EQ(clip.changes.set, (Set{{"optimizer.clip_norm", 1.0}, {"supervisor.max_restarts", 2}}));
  EXPECT_EQ(clip.resolves, (std::vector<std::string>{"blows_up", "smoke_alarm"}));
  EXPECT_EQ(clip.waives, (std::vector<std::string>{"quality", "clean"}));
  EXPECT_FALSE(clip.is_correct);
  EXPECT_EQ(clip.when, std::vector<std::string>{"sgd-*"});
  EXPECT_EQ(clip.note, "saves the run");
  ASSERT_EQ(scenario.decoys.size(), 1U);
  EXPECT_EQ(scenario.decoys[0].keeps, std::vector<std::string>{"stuck"});
  EXPECT_FALSE(scenario.no_remedy.empty());
}

TEST(LoadScenario, ReadsTheRest) {
  const Scenario scenario = Load("family/everything");
  ASSERT_EQ(scenario.phases.size(), 2U);
  EXPECT_EQ(scenario.phases[0].until, 30);
  EXPECT_EQ(scenario.phases[1].name, "resume");
  EXPECT_EQ(scenario.expect.verdict, VerdictKind::kFail);
  EXPECT_EQ(scenario.expect.failure_class, FailureClass::kSymptomWeak);
  EXPECT_EQ(scenario.expect.reason, "only an example");
  EXPECT_EQ(scenario.requires_.devices, std::vector<std::string>{"cpu"});
  EXPECT_EQ(scenario.requires_.features, std::vector<std::string>{"backend:gloo"});
  EXPECT_EQ(scenario.requires_.memory_bytes, 3LL << 29);
  EXPECT_EQ(scenario.budget.seconds, 30);
  EXPECT_EQ(scenario.budget.stall_seconds, 3);
}

TEST(LoadScenario, ExtendsMergesMapsAndReplacesLists) {
  const Scenario scenario = Load("family/child");
  EXPECT_EQ(scenario.name, "family/child");
  EXPECT_EQ(scenario.tags, std::vector<std::string>{"slow"});
  Recipe recipe;
  Apply(scenario.recipe, recipe);
  EXPECT_EQ(recipe, (Recipe{{"optimizer.lr", 0.2},  // dotted there, nested here: the child's counts
                            {"optimizer.kind", "sgd"},
                            {"model.width", 128},
                            {"steps", 60}}));
  EXPECT_EQ(scenario.faults[0].with.at("factor"), 40.0);
  EXPECT_EQ(scenario.faults[0].fault, "recipe.high_lr");
  ASSERT_EQ(scenario.symptoms.size(), 2U);
  EXPECT_EQ(scenario.symptoms[0].file, std::string(kRoot) + "/family/minimal.yaml");
  EXPECT_EQ(scenario.symptoms[1].file, std::string(kRoot) + "/family/child.yaml");
  EXPECT_EQ(scenario.symptoms[1].position.line, 10);
}

TEST(LoadScenario, SaysWhyAFileCannotBeRead) {
  const ScenarioFile missing = LoadScenario("no/such.yaml", TestTarget());
  ASSERT_EQ(missing.errors.size(), 1U);
  EXPECT_NE(missing.errors[0].message.find("No such file"), std::string::npos);
  EXPECT_FALSE(LoadScenario("harness", TestTarget()).errors.empty());
}

TEST(LoadScenario, RefusesALinkOutOfTheRoot) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(std::getenv("TEST_TMPDIR")) / "links";
  fs::create_directories(folder / "root");
  fs::copy_file(std::string(kRoot) + "/family/minimal.yaml", folder / "outside.yaml",
                fs::copy_options::overwrite_existing);
  fs::remove(folder / "root/link.yaml");
  fs::create_symlink("../outside.yaml", folder / "root/link.yaml");
  std::ofstream(folder / "root/child.yaml")
      << "apiVersion: trainwreck/v1\nkind: Scenario\nname: child\ntitle: A\nextends: link.yaml\n";
  LoadOptions options;
  options.scenarios_root = folder / "root";
  const ScenarioFile file = LoadScenario(folder / "root/child.yaml", TestTarget(), options);
  ASSERT_EQ(file.errors.size(), 1U);
  EXPECT_NE(file.errors[0].message.find("leads out of the folder"), std::string::npos);
}

TEST(ParseScenario, BoundsTheSize) {
  const ScenarioFile file = Parse(std::string(300 * 1024, '\n'));
  ASSERT_EQ(file.errors.size(), 1U);
  EXPECT_NE(file.errors[0].message.find("larger than 256 KiB"), std::string::npos);
}

TEST(ParseScenario, BoundsTheNumberOfErrors) {
  std::string text = kRest;
  for (int i = 0; i < 5000; ++i) text += "wrong" + std::to_string(i) + ": 1\n";
  const ScenarioFile file = Parse(text);
  EXPECT_GE(file.errors.size(), 100U);
  EXPECT_LE(file.errors.size(), 101U);
}

TEST(ParseScenario, RejectsBytesThatAreNoText) {
  for (const std::string& bytes : {std::string("\xff\xfe"), std::string("\xc0\x80"),
                                   std::string("\xed\xa0\x80"), std::string("\xf5\x80\x80\x80"),
                                   std::string("\0", 1), std::string("\r"), std::string("\x7f")}) {
    EXPECT_FALSE(Parse("x-note: a" + bytes + "b\n" + kRest).scenario);
  }
  EXPECT_TRUE(Parse(std::string("x-note: \"äß€😀\"\r\n") + kRest).scenario);
}

TEST(ParseScenario, FindsNoFaultWithAGoodText) {
  const ScenarioFile file = Parse(kRest);
  EXPECT_TRUE(file.scenario) << AllMessages(file);
}

TEST(ParseScenario, ReadsNumbersAsPeopleWriteThem) {
  for (const auto& [text, value] : std::map<std::string, double>{
           {"1e-3", 1e-3}, {"1.0e-3", 1e-3}, {"+.5", 0.5}, {"3.", 3}, {"2", 2}, {"1E2", 100}}) {
    const ScenarioFile file = Parse(kRest, "{steps: 60, optimizer.lr: " + text + "}");
    ASSERT_TRUE(file.scenario) << text << AllMessages(file);
    EXPECT_EQ(file.scenario->recipe.set[1].second, value);
  }
  for (const char* text : {".nan", ".inf", "0x10", "1_000", "1e", "e3", ".", "-", "1 2"}) {
    EXPECT_FALSE(Parse(kRest, std::string("{steps: 60, optimizer.lr: ") + text + "}").scenario)
        << text;
  }
}

TEST(ParseScenario, NamesTheFileWhereItLies) {
  const std::string text =
      std::string("apiVersion: trainwreck/v1\nkind: Scenario\nname: NAME\ntitle: A\n") + kRest;
  const auto is_valid = [&](const std::string& file, const std::string& name,
                            const std::string& root) {
    std::string named = text;
    named.replace(named.find("NAME"), 4, name);
    LoadOptions options;
    options.scenarios_root = root;
    return ParseScenario(named, file, TestTarget(), options).errors.empty();
  };
  EXPECT_TRUE(is_valid("scenarios/nan/x.yaml", "nan/x", "scenarios"));
  EXPECT_TRUE(is_valid("./scenarios/nan/x.yaml", "nan/x", "scenarios/"));
  EXPECT_FALSE(is_valid("scenarios/nan/x.yaml", "x", "scenarios"));
  EXPECT_FALSE(is_valid("scenarios/nan/x.yaml", "nan/y", "scenarios"));
  EXPECT_TRUE(is_valid(std::filesystem::absolute("scenarios/nan/x.yaml"), "nan/x", "scenarios"));
  EXPECT_TRUE(is_valid("scenarios/nan/x.yaml", "nan/x", std::filesystem::absolute("scenarios")));
  // Elsewhere only the last word can be compared.
  EXPECT_TRUE(is_valid("/tmp/x.yaml", "nan/x", "scenarios"));
  EXPECT_FALSE(is_valid("/tmp/x.yaml", "nan/y", "scenarios"));
}

TEST(ParseScenario, DerivesTheRanksThatItRequires) {
  const ScenarioFile file = Parse(kRest, "{steps: 60, parallel.ranks: 4}");
  ASSERT_TRUE(file.scenario) << AllMessages(file);
  EXPECT_EQ(file.scenario->requires_.ranks, 4);
}

TEST(ParseScenario, SaysAnErrorOfAllPointsOnce) {
  const ScenarioFile file = Parse(
      "matrix: {a: {x: {}, y: {set: {model.width: 32}}}}\n"
      "inject: {hot: {fault: recipe.high_lr}}\n"
      "symptoms: {blows_up: eventually nonfinite(los)}\n"
      "remedies: {clip: {set: {optimizer.clip_norm: 1.0}}}\n");
  ASSERT_EQ(file.errors.size(), 1U) << AllMessages(file);
  EXPECT_EQ(file.errors[0].message.find("at point"), std::string::npos);
}

TEST(ResolveRecipe, PutsOverridesOverPointOverRecipeOverDefaults) {
  const ScenarioFile file = Parse(
      std::string("matrix: {a: {x: {set: {model.heads: 8}, scale: {model.width: 2}}}}\n") + kRest,
      "{steps: 60, model.width: 32, model.heads: 2}");
  ASSERT_TRUE(file.scenario) << AllMessages(file);
  const Recipe recipe =
      ResolveRecipe(TestTarget(), *file.scenario, file.scenario->points[0],
                    {{{"steps", 70}, {"model.heads", 16}}, {{"optimizer.lr", 2.0}}});
  EXPECT_EQ(recipe.at("steps"), 70);
  EXPECT_EQ(recipe.at("model.width"), 64);
  EXPECT_EQ(recipe.at("model.heads"), 16);
  EXPECT_EQ(recipe.at("optimizer.lr"), 0.006);
  EXPECT_EQ(recipe.at("supervisor.max_restarts"), 0);
  EXPECT_EQ(recipe.size(), TestTarget().recipe.size());
}

TEST(Apply, SetsFirstAndKeepsWholeNumbersWhole) {
  Recipe recipe = {{"steps", 70}, {"lr", 0.5}, {"kind", "sgd"}};
  Apply({{{"lr", 1.0}}, {{"lr", 0.25}, {"steps", 0.1}, {"kind", 2}}}, recipe);
  EXPECT_EQ(recipe.at("lr"), 0.25);
  EXPECT_EQ(recipe.at("steps"), 7);
  EXPECT_TRUE(recipe.at("steps").is_number_integer());
  EXPECT_EQ(recipe.at("kind"), "sgd");
}

TEST(Amend, TellsBeforeAndAfter) {
  const TargetDescription target = TestTarget();
  Recipe recipe = {{"optimizer.lr", 0.5}, {"schedule.warmup_steps", 20}};
  const auto hot = Amend(*target.FindFault("recipe.high_lr"), {{"factor", 4.0}}, recipe);
  ASSERT_EQ(hot.size(), 1U);
  EXPECT_EQ(hot[0].key, "optimizer.lr");
  EXPECT_EQ(hot[0].before, 0.5);
  EXPECT_EQ(hot[0].after, 2.0);
  EXPECT_EQ(recipe.at("optimizer.lr"), 2.0);
  const auto cold = Amend(*target.FindFault("recipe.no_warmup"), {}, recipe);
  EXPECT_EQ(cold[0].before, 20);
  EXPECT_EQ(recipe.at("schedule.warmup_steps"), 0);
}

TEST(AppliesTo, ReadsGlobs) {
  const Point point{"sgd-small", {}, {}};
  EXPECT_TRUE(AppliesTo({}, point));
  EXPECT_TRUE(AppliesTo({"adamw", "sgd-*"}, point));
  EXPECT_FALSE(AppliesTo({"adamw"}, point));
}

}  // namespace scenario_test
}  // namespace trainwreck
