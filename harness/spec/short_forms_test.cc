// What keeps scenarios short: names of other checks in formulas, parts of points, `all but`.
#include <gtest/gtest.h>

#include "harness/spec/scenario.h"
#include "harness/spec/test_target.h"

namespace trainwreck {
namespace short_forms_test {

constexpr char kHead[] =
    "apiVersion: trainwreck/v1\nkind: Scenario\ntitle: A test\nrecipe: {steps: 60}\n"
    "inject: {hot: {fault: recipe.high_lr}}\n";
constexpr char kRemedies[] = "remedies: {clip: {set: {optimizer.clip_norm: 1.0}}}\n";

ScenarioFile Parse(const std::string& text, const std::string& remedies = kRemedies) {
  return ParseScenario(kHead + text + remedies, "test.yaml", TestTarget());
}

Scenario Read(const std::string& text, const std::string& remedies = kRemedies) {
  ScenarioFile file = Parse(text, remedies);
  if (!file.scenario) throw std::runtime_error(Messages(file));
  return *file.scenario;
}

// The message of the only error, with its place.
std::string Error(const std::string& text, const std::string& remedies = kRemedies) {
  return Messages(Parse(text, remedies));
}

TEST(References, StandForTheFormulaOfTheCheck) {
  const Scenario scenario = Read(
      "symptoms:\n"
      "  later: blows_up and not (quiet and mean(loss[:5]) < 1)\n"
      "  blows_up: eventually nonfinite(loss)\n"
      "  quiet: blows_up or loss[0] < 3\n");
  EXPECT_EQ(scenario.symptoms[0].formula.text(),
            "(eventually nonfinite(loss)) and not (((eventually nonfinite(loss)) or loss[0] < 3) "
            "and mean(loss[:5]) < 1)");
  EXPECT_EQ(scenario.symptoms[1].formula.text(), "eventually nonfinite(loss)");
}

TEST(References, OfQualityAreHealthyChecks) {
  const Scenario scenario = Read(
      "symptoms: {blows_up: eventually nonfinite(loss)}\n"
      "healthy: {learns: 'mean(loss[-5:]) < 3'}\n"
      "quality: learns and mean(loss[-5:]) < 2\n");
  EXPECT_EQ(scenario.quality->formula.text(), "(mean(loss[-5:]) < 3) and mean(loss[-5:]) < 2");
}

TEST(References, ThatAreWrongAreToldAtTheirPlace) {
  const std::string blows_up = "symptoms:\n  blows_up: eventually nonfinite(loss)\n";
  EXPECT_EQ(Error(blows_up + "  b: blow_up and loss[0] < 3\n"),
            "8:6: unknown event or signal 'blow_up' (did you mean 'blows_up'?)\n");
  EXPECT_EQ(Error("symptoms:\n  a: b and loss[0] < 3\n  b: loss[0] < 3 or a\n"),
            "8:21: 'a' leads back to 'b' (checks cannot name each other in a circle)\n");
  EXPECT_EQ(Error("symptoms:\n  a: a and loss[0] < 3\n"),
            "7:6: 'a' leads back to 'a' (checks cannot name each other in a circle)\n");
  EXPECT_EQ(Error(blows_up + "  b: always (blows_up and loss < 3)\n"),
            "8:14: 'blows_up' is a check and says something of the whole run, not of a step (join "
            "checks with and, or, not and implies only)\n");
  EXPECT_EQ(Error(blows_up + "  b: control.blows_up and loss[0] < 3\n"),
            "8:6: a check cannot be read in another arm (write its formula out)\n");
  EXPECT_EQ(Error("healthy: {learns: 'mean(loss[-5:]) < 3'}\nsymptoms:\n  b: not learns\n"),
            "8:10: 'learns' is a healthy check, which cannot be named here (a healthy check holds "
            "without the fault, too: name a symptom, or write it out)\n");
}

TEST(References, AreNotConfusedWithEventsAndSignals) {
  // As before there were references: a check may have the name of the event that it is about.
  EXPECT_EQ(Read("symptoms:\n  restarted: restarted\n").symptoms[0].formula.text(), "restarted");
  EXPECT_EQ(Error("symptoms:\n  restarted: restarted and loss[0] < 3\n  b: restarted\n"),
            "8:6: 'restarted' is a check here and an event of the target (rename the check; with "
            "parentheses, restarted(), it is the event)\n");
  Read("symptoms:\n  restarted: restarted and loss[0] < 3\n  b: restarted()\n");
  EXPECT_EQ(Error("symptoms:\n  loss: loss[0] > 3\n  b: loss and lr[0] < 3\n"),
            "8:6: 'loss' is a check here and a signal of the target (rename the check; with "
            "parentheses, loss(), it is the event)\n");
}

TEST(References, MistakesInsideAreToldOnceAndTheRestInItsPlace) {
  EXPECT_EQ(Error("symptoms:\n  a: loss[77] < 3\n  b: a and lr[88] < 3\n"),
            "7:10: outside the run, which has 60 steps: 0 to 59\n"
            "8:14: outside the run, which has 60 steps: 0 to 59\n");
}

TEST(Points, HaveSymptomsRemediesAndDecoysOfTheirOwn) {
  const std::string matrix =
      "matrix:\n"
      "  size:\n"
      "    small:\n"
      "      symptoms: {blows_up: eventually nonfinite(loss)}\n"
      "      decoys: {wider: {set: {model.width: 128}}}\n"
      "    large:\n"
      "      set: {model.width: 64}\n"
      "      healthy: {learns: {assert: 'mean(loss[-5:]) < 3', min_margin: 1 octave}}\n"
      "      symptoms: {stuck: 'mean(loss[-5:]) > 3'}\n"
      "      remedies: {lower_lr: {scale: {optimizer.lr: 0.1}}}\n"
      "  update:\n"
      "    plain: {}\n"
      "    other: {set: {optimizer.lr: 0.3}}\n";
  const Scenario scenario = Read(matrix);
  using Names = std::vector<std::string>;
  EXPECT_EQ(scenario.symptoms[0].when, (Names{"small-plain", "small-other"}));
  EXPECT_EQ(scenario.symptoms[1].when, (Names{"large-plain", "large-other"}));
  EXPECT_EQ(scenario.healthy[0].when, (Names{"large-plain", "large-other"}));
  EXPECT_EQ(scenario.decoys[0].when, (Names{"small-plain", "small-other"}));
  EXPECT_TRUE(scenario.remedies[0].when.empty());
  EXPECT_EQ(scenario.remedies[1].when, (Names{"large-plain", "large-other"}));
  EXPECT_EQ(scenario.symptoms[1].position.line, 14);
  EXPECT_EQ(scenario.healthy[0].min_margin->value, 1);
}

TEST(Points, MistakesInTheirPartsAreToldAtTheirPlace) {
  const auto with = [](const std::string& part) {
    return Error("matrix: {size: {small: {}, large: {symptoms: " + part + "}}}\n" +
                 "symptoms: {blows_up: eventually nonfinite(loss)}\n");
  };
  EXPECT_EQ(with("{a: {assert: 'loss[0] < 3', when: small}}"),
            "6:74: 'when' cannot stand here: the point says where 'a' applies (move it to the "
            "scenario's 'symptoms', or leave 'when' out)\n");
  EXPECT_EQ(
      with("{blows_up: 'loss[0] < 3'}"),
      "6:47: the scenario has 'blows_up' in its 'symptoms' already (on line 7; choose another "
      "name)\n");
  EXPECT_EQ(with("{a: 'loss[99] < 3'}"),
            "6:55: outside the run, which has 60 steps: 0 to 59 (at point 'large')\n");
  EXPECT_EQ(with("{}"),
            "6:46: 'symptoms' of a point is an empty map (it needs at least one entry)\n");
}

TEST(AllBut, NamesWhatIsLeftOut) {
  const std::string symptoms = "symptoms: {a: 'loss[0] > 3', b: 'loss[1] > 3', c: 'loss[2] > 3'}\n";
  using Names = std::vector<std::string>;
  const auto remedies = [](const std::string& names) {
    return "remedies: {clip: {set: {optimizer.clip_norm: 1.0}, resolves: " + names + "}}\n";
  };
  EXPECT_EQ(Read(symptoms, remedies("all but b")).remedies[0].resolves, (Names{"a", "c"}));
  EXPECT_EQ(Read(symptoms, remedies("[all but b, c]")).remedies[0].resolves, Names{"a"});
  const std::string decoy = "decoys: {wider: {set: {model.width: 128}, keeps: [all but a]}}\n";
  EXPECT_EQ(Read(symptoms + decoy).decoys[0].keeps, (Names{"b", "c"}));
  EXPECT_EQ(Error(symptoms, remedies("all but d")),
            "7:62: the scenario has no symptom 'd' (known: a, b, c)\n");
  EXPECT_EQ(Error(symptoms, remedies("[all but a, b, c]")),
            "7:62: 'resolves' leaves no symptom (name those that are meant)\n");
}

TEST(MinMargin, OfLessThanATenthNeedsAReason) {
  const auto remarks = [](const std::string& margin) {
    return RemarksOn(
        Read("symptoms: {a: {assert: 'mean(loss[:5]) < 3', min_margin: " + margin + "}}\n"));
  };
  EXPECT_TRUE(remarks("0.1 octaves").empty());
  EXPECT_TRUE(remarks("0.05 octaves, reason: it is bounded").empty());
  ASSERT_EQ(remarks("0.05 octaves").size(), 1U);
  EXPECT_EQ(remarks("0.05 octaves")[0],
            "test.yaml:6:24: remark: check 'a' has a min_margin of 0.05 octaves: less than 0.1 is "
            "hardly one; raise it, or say in 'reason' why it is enough");
  EXPECT_EQ(Error("symptoms: {a: {assert: 'loss[0] > 3', reason: why}}\n"),
            "6:47: 'reason' belongs to 'min_margin', which is missing\n");
}

TEST(MinMargin, OfEveryKindOfCheckIsLookedAtAndAStepIsTheLeastOfSteps) {
  const auto count = [](const std::string& more) {
    return RemarksOn(Read("symptoms: {a: 'loss[0] > 3'}\n" + more)).size();
  };
  EXPECT_EQ(count(""), 0U);
  EXPECT_EQ(count("healthy: {b: {assert: 'loss[0] < 3', min_margin: 0.05 octaves}}\n"), 1U);
  EXPECT_EQ(count("quality: {assert: 'loss[0] < 3', min_margin: 0.05 octaves}\n"), 1U);
  const std::string late = "healthy: {b: {assert: 'eventually[:5] loss < 3', min_margin: ";
  EXPECT_EQ(count(late + "0.5 steps}}\n"), 1U);
  EXPECT_EQ(count(late + "1 steps}}\n"), 0U);
}

}  // namespace short_forms_test
}  // namespace trainwreck
