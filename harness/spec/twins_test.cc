// twins, agree and must_notice: what they read as, and what is wrong with them.
#include <gtest/gtest.h>

#include "harness/spec/scenario.h"
#include "harness/spec/test_target.h"

namespace trainwreck {
namespace twins_test {

constexpr char kHead[] =
    "apiVersion: trainwreck/v1\nkind: Scenario\ntitle: A test\nrecipe: {steps: 60}\n";
constexpr char kTwins[] =
    "twins:\n"
    "  slow: {set: {optimizer.momentum: 0.5}, note: Half.}\n"
    "  resumed: {phases: [{name: train, until: 13}, {name: resume}]}\n"
    "  again: {}\n";
constexpr char kAgree[] = "agree: {loss: {of: [loss, grad_norm], within: rounding}}\n";
constexpr char kBugs[] = "must_notice: {hot: {fault: recipe.high_lr, in: slow}}\n";

TargetDescription Target(bool can_round = true) {
  TargetDescription target = TestTarget();
  if (can_round) return target;
  std::erase_if(target.faults, [](const FaultInfo& fault) { return fault.name == kRoundingFault; });
  return target;
}

Scenario Read(const std::string& text) {
  ScenarioFile file = ParseScenario(kHead + text, "test.yaml", Target());
  if (!file.scenario) throw std::runtime_error(Messages(file));
  return *file.scenario;
}

std::string Error(const std::string& text, bool can_round = true) {
  return Messages(ParseScenario(kHead + text, "test.yaml", Target(can_round)));
}

TEST(Twins, NeedNoFault) {
  const Scenario scenario = Read(std::string(kTwins) + kAgree + kBugs);
  ASSERT_EQ(scenario.twins.size(), 3U);
  EXPECT_EQ(scenario.twins[0].name, "slow");
  EXPECT_EQ(scenario.twins[0].changes.set[0].second, 0.5);
  EXPECT_EQ(scenario.twins[0].note, "Half.");
  ASSERT_EQ(scenario.twins[1].phases.size(), 2U);
  EXPECT_EQ(scenario.twins[1].phases[0].until, 13);
  EXPECT_TRUE(scenario.twins[2].changes.set.empty());
  ASSERT_EQ(scenario.bugs.size(), 1U);
  EXPECT_EQ(scenario.bugs[0].fault.fault, "recipe.high_lr");
  EXPECT_EQ(scenario.bugs[0].twins, std::vector<std::string>{"slow"});
  EXPECT_TRUE(scenario.faults.empty());
  EXPECT_TRUE(ReadsRounding(scenario, scenario.points[0]));
}

TEST(Twins, ABugIsInAllTwinsWhereItNamesNone) {
  const Scenario scenario =
      Read(std::string(kTwins) + kAgree + "must_notice: {hot: {fault: recipe.high_lr}}\n");
  EXPECT_EQ(scenario.bugs[0].twins, (std::vector<std::string>{"slow", "resumed", "again"}));
}

TEST(Twins, MayBeMadeByAFault) {
  const Scenario scenario =
      Read("twins: {other: {fault: data.corrupt_sample, with: {samples: [3]}, at: 5}}\n" +
           std::string(kAgree) + "must_notice: {hot: {fault: recipe.high_lr}}\n");
  ASSERT_TRUE(scenario.twins[0].fault);
  EXPECT_EQ(scenario.twins[0].fault->id, "other");
  EXPECT_EQ(scenario.twins[0].fault->trigger.at, 5);
}

TEST(Agree, StandsForFormulas) {
  const auto read = [](const std::string& entry) {
    return Read(std::string(kTwins) + "agree: {it: " + entry + "}\n" + kBugs).agree.front();
  };
  const Check rounding = read("{of: [loss, 'update_norm{*}'], within: rounding}");
  EXPECT_EQ(rounding.formula.text(),
            "always distance(loss) <= 8 * rounding(loss) and "
            "always distance(update_norm{*}) <= 8 * rounding(update_norm{*})");
  EXPECT_EQ(rounding.min_margin->value, 1);
  EXPECT_EQ(rounding.min_margin->unit, formula::Unit::kOctave);
  EXPECT_EQ(read("{of: loss, within: bitwise}").formula.text(), "always distance(loss) == 0");
  EXPECT_FALSE(read("{of: loss, within: bitwise}").min_margin);
  EXPECT_EQ(read("{of: param_digest, within: bitwise}").formula.text(),
            "always param_digest == control.param_digest");
  const Check stated = read("{of: loss, within: 1e-4, min_margin: 2 octaves}");
  EXPECT_EQ(stated.formula.text(), "always distance(loss) <= 1e-4 * abs(control.loss)");
  EXPECT_EQ(stated.min_margin->value, 2);
  EXPECT_EQ(read("'loss[-1] < 2 * control.loss[-1]'").formula.text(),
            "loss[-1] < 2 * control.loss[-1]");
}

TEST(Twins, WhatIsMissingIsSaid) {
  EXPECT_EQ(
      Error(kTwins),
      "5:1: nothing says in what the twins agree with control (add 'agree: {loss: {of: loss, "
      "within: rounding}}')\n"
      "5:1: nothing shows that 'agree' can fail (add 'must_notice: {NAME: {fault: FAULT}}': a "
      "bug that it has to see)\n");
  EXPECT_EQ(Error("inject: {hot: {fault: recipe.high_lr}}\nsymptoms: {a: eventually loss > 9}\n"
                  "no_remedy: none\n" +
                  std::string(kAgree)),
            "8:8: this is about twins, and the scenario has none (add 'twins: {NAME: {set: "
            "...}}')\n");
}

TEST(Twins, MistakesAreToldAtTheirPlace) {
  const auto with_agree = [](const std::string& agree) {
    return Error(std::string(kTwins) + "agree: {it: " + agree + "}\n" + kBugs);
  };
  EXPECT_EQ(with_agree("{of: los, within: rounding}"),
            "9:18: unknown signal 'los' (did you mean 'loss'?)\n");
  EXPECT_EQ(with_agree("{of: loss, within: 2}"),
            "9:32: 'within' must be rounding, bitwise, or a share of control's value (above 0 and "
            "below 1, such as 1e-4)\n");
  EXPECT_EQ(with_agree("{of: loss, within: 1%}"),
            "9:32: 'within' must be rounding, bitwise, or a share of control's value (above 0 and "
            "below 1, such as 1e-4)\n");
  EXPECT_EQ(with_agree("{of: loss}"),
            "9:13: check 'it' lacks 'within' (add 'within: rounding, bitwise, or 1e-4')\n");
  EXPECT_EQ(with_agree("{of: param_digest, within: rounding}"),
            "9:18: 'param_digest' is exact, so no rounding changes it (always param_digest == "
            "control.param_digest)\n");
  EXPECT_EQ(Error(std::string(kTwins) + kAgree +
                  "must_notice: {hot: {fault: recipe.high_lr, in: fast}}\n"),
            "10:48: the scenario has no twin 'fast' (known: slow, resumed, again)\n");
  EXPECT_EQ(Error(std::string(kTwins) + kAgree +
                  "must_notice: {hot: {fault: recipe.high_lr, only_in_twins: perhaps}}\n"),
            "10:59: 'only_in_twins' must be true or false\n");
  EXPECT_EQ(Error("twins: {again: {}}\n" + std::string(kAgree) +
                  "must_notice: {bad: {fault: data.corrupt_sample, with: {samples: [3]}, at: 70, "
                  "only_in_twins: true}}\n"),
            "7:75: 'at' is after the run's last step, 59\n");
  EXPECT_EQ(Error("twins: {rounding_1: {}}\n" + std::string(kAgree) +
                  "must_notice: {hot: {fault: recipe.high_lr}}\n"),
            "5:9: names of arms that begin with 'rounding_' are the harness's own (choose another "
            "name)\n");
  EXPECT_EQ(Error(std::string(kTwins) + kAgree + "must_notice: {again: {fault: recipe.high_lr}}\n"),
            "10:15: a twin is called 'again', too (choose another name)\n");
}

TEST(Twins, ThatTakeABugOutAgainAreRefused) {
  EXPECT_EQ(Error(std::string(kTwins) + kAgree + kBugs), "");
  EXPECT_EQ(
      Error("twins: {hotter: {set: {optimizer.lr: 0.2}}}\n" + std::string(kAgree) +
            "must_notice: {hot: {fault: recipe.high_lr}}\n"),
      "7:15: fault 'hot' and twin 'hotter' both change 'optimizer.lr' (the twin's value would "
      "take the fault out again; leave it out with 'in')\n");
}

TEST(Agree, RoundingNeedsATargetThatCanShowIt) {
  EXPECT_EQ(Error(std::string(kTwins) + kAgree + kBugs, /*can_round=*/false),
            "9:1: the target cannot show what rounding does: it has no fault "
            "'model.round_weights' (state a tolerance: within: 1e-4)\n");
  EXPECT_EQ(Error(std::string(kTwins) + "agree: {loss: {of: loss, within: 1e-4}}\n" + kBugs,
                  /*can_round=*/false),
            "");
}

// Elsewhere no arm differs by rounding alone.
TEST(Agree, RoundingIsReadThereAlone) {
  EXPECT_EQ(Error("healthy: {a: always distance(loss) <= 8 * rounding(loss)}\n" +
                  std::string(kTwins) + kAgree + kBugs),
            "5:43: no arm here differs from control by rounding alone (rounding is for the `agree` "
            "of a scenario with twins)\n");
}

}  // namespace twins_test
}  // namespace trainwreck
