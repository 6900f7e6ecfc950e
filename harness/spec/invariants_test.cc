// invariants.yaml: what it reads as, of which runs it is asked, and what is wrong with it.
#include "harness/spec/invariants.h"

#include <gtest/gtest.h>

#include "harness/spec/scenario.h"
#include "harness/spec/test_target.h"

namespace trainwreck {
namespace invariants_test {

constexpr char kHead[] = "apiVersion: trainwreck/v1\nkind: Invariants\ninvariants:\n";
constexpr char kClipped[] =
    "  clipped:\n"
    "    title: no more than the clip norm is applied\n"
    "    part: clipping\n"
    "    given:\n"
    "      optimizer: {clip_norm: \"> 0\", kind: [sgd, adamw]}\n"
    "    assert: always update_norm <= recipe(optimizer.clip_norm)\n";

InvariantsFile Parse(const std::string& text) {
  return ParseInvariants(kHead + text, "invariants.yaml", TestTarget());
}

std::string Error(const std::string& text) {
  ScenarioFile file;
  file.errors = Parse(text).errors;
  return Messages(file);
}

bool IsAsked(const std::string& text, const Recipe& recipe, const Recipe& changing = {}) {
  const InvariantsFile file = Parse(text);
  EXPECT_TRUE(file.errors.empty()) << Error(text);
  return AskedOf(file.invariants->at(0), recipe, changing, TestTarget()).has_value();
}

TEST(Invariants, AreReadWithTheirConditions) {
  const InvariantsFile file = Parse(kClipped);
  ASSERT_TRUE(file.errors.empty()) << Error(kClipped);
  const Invariant& clipped = file.invariants->at(0);
  EXPECT_EQ(clipped.name, "clipped");
  EXPECT_EQ(clipped.part, "clipping");
  ASSERT_EQ(clipped.given.size(), 2U);
  EXPECT_EQ(clipped.given[0].key, "optimizer.clip_norm");
  EXPECT_EQ(clipped.given[0].op, ">");
  EXPECT_EQ(clipped.given[1].values, (std::vector<Json>{"sgd", "adamw"}));
  EXPECT_EQ(clipped.position.line, 4);
}

TEST(Invariants, AreAskedWhereAllConditionsHold) {
  EXPECT_TRUE(IsAsked(kClipped, {{"optimizer.clip_norm", 1.0}}));
  EXPECT_FALSE(IsAsked(kClipped, {{"optimizer.clip_norm", 0.0}}));
  EXPECT_FALSE(IsAsked(kClipped, {{"optimizer.clip_norm", 1.0}, {"optimizer.kind", "lion"}}));
}

// A run whose later phases have another value has no one number to be asked for.
TEST(Invariants, AreNotAskedOfARunThatChangesTheKey) {
  EXPECT_FALSE(IsAsked(kClipped, {{"optimizer.clip_norm", 1.0}}, {{"optimizer.clip_norm", 2.0}}));
  EXPECT_TRUE(IsAsked(kClipped, {{"optimizer.clip_norm", 1.0}}, {{"optimizer.lr", 2.0}}));
}

TEST(Invariants, ThatNeedWhatATargetLacksAreNotAsked) {
  const std::string rest = "    title: a\n    part: b\n";
  EXPECT_FALSE(IsAsked("  a:\n" + rest + "    assert: always unheard_of == 0\n", {}));
  EXPECT_FALSE(IsAsked("  a:\n" + rest + "    assert: loss[0] < recipe(no.such.key)\n", {}));
  EXPECT_FALSE(IsAsked("  a:\n" + rest + "    features: no-such\n    assert: loss[0] < 3\n", {}));
  EXPECT_TRUE(IsAsked("  a:\n" + rest + "    assert: loss[0] < 3\n", {}));
}

TEST(Invariants, GetTheNumbersOfTheRecipe) {
  const InvariantsFile file = Parse(kClipped);
  const auto asked =
      AskedOf(file.invariants->at(0), {{"optimizer.clip_norm", 2.5}}, {}, TestTarget());
  ASSERT_TRUE(asked);
  RunTrace trace;
  trace.planned_steps = 1;
  trace.finished = true;
  trace.series[{"update_norm", 0}].Set(0, 2.4);
  EXPECT_EQ(asked->Evaluate({&trace, {}}, TestTarget()).truth, formula::Truth::kTrue);
  trace.series[{"update_norm", 0}].Set(0, 2.6);
  EXPECT_EQ(asked->Evaluate({&trace, {}}, TestTarget()).truth, formula::Truth::kFalse);
}

TEST(Invariants, MistakesHaveTheirPlace) {
  const std::string rest = "    title: a\n    part: b\n";
  EXPECT_EQ(Error("  a: {part: b, assert: \"loss[0] < 3\"}\n"),
            "4:6: invariant 'a' lacks 'title' (add 'title: WHAT HOLDS')\n");
  EXPECT_EQ(Error("  a:\n" + rest + "    assert: always loss\n"),
            "7:20: 'loss' is a signal, a number (compare it: < <= > >= == !=)\n");
  EXPECT_EQ(Error("  a:\n" + rest + "    assert: always loss < control.loss\n"),
            "7:13: an invariant is about one run, and this one reads the arm 'control' (the same "
            "arm's run with the next seed is 'other_seed')\n");
  EXPECT_EQ(Error("  a:\n" + rest + "    assert: eventually loss < other_seed.loss\n"), "");
  EXPECT_EQ(Error("  a:\n" + rest + "    assert: loss[0] < recipe(optimizer.kind)\n"),
            "7:13: recipe(optimizer.kind) is no number (say it in 'given')\n");
  EXPECT_EQ(
      Error("  a:\n" + rest + "    given: {optimizer.lr: \"> x\"}\n    assert: loss[0] < 3\n"),
      "7:27: a value, or a bound of one number, must stand here (such as adamw, [sgd, "
      "adamw], or \"> 0\")\n");
  EXPECT_EQ(Error("  A:\n" + rest + "    assert: loss[0] < 3\n").substr(0, 4), "4:3:");
}

TEST(Invariants, ABrokenOneIsLeftOut) {
  const InvariantsFile file =
      Parse(std::string("  a: {title: a, part: b, assert: \"loss\"}\n") + kClipped);
  EXPECT_EQ(file.errors.size(), 1U);
  ASSERT_EQ(file.invariants->size(), 1U);
  EXPECT_EQ(file.invariants->at(0).name, "clipped");
}

// `breaks` of a scenario.
std::string BreaksError(const std::string& breaks, const std::string& recipe) {
  LoadOptions options;
  options.invariants = Parse(kClipped).invariants;
  return Messages(ParseScenario(
      "apiVersion: trainwreck/v1\nkind: Scenario\ntitle: A test\nrecipe: {steps: 60" + recipe +
          "}\ninject: {hot: {fault: recipe.high_lr}}\nbreaks: " + breaks + "\nno_remedy: none\n",
      "test.yaml", TestTarget(), options));
}

TEST(Breaks, NamesInvariantsThatAreAsked) {
  EXPECT_EQ(BreaksError("clipped", ", optimizer.clip_norm: 1.0"), "");
  EXPECT_EQ(BreaksError("cliped", ", optimizer.clip_norm: 1.0"),
            "6:9: there is no invariant 'cliped' (did you mean 'clipped'?)\n");
  EXPECT_EQ(BreaksError("clipped", ", optimizer.clip_norm: 0.0"),
            "6:9: nothing asks for 'clipped' with this recipe (its 'given' in invariants.yaml says "
            "when it is asked for)\n");
}

TEST(Waives, NamesInvariantsOfATwin) {
  const auto errors = [](const std::string& waived) {
    LoadOptions options;
    options.invariants = Parse(kClipped).invariants;
    return Messages(ParseScenario(
        "apiVersion: trainwreck/v1\nkind: Scenario\ntitle: A test\nrecipe: {steps: 60}\n"
        "twins: {again: {waives: [" +
            waived +
            "]}}\nagree: {loss: {of: loss, within: bitwise}}\n"
            "must_notice: {hot: {fault: recipe.high_lr}}\n",
        "test.yaml", TestTarget(), options));
  };
  EXPECT_EQ(errors("clipped"), "");
  EXPECT_EQ(errors("cliped"), "5:26: there is no invariant 'cliped' (did you mean 'clipped'?)\n");
}

}  // namespace invariants_test
}  // namespace trainwreck
