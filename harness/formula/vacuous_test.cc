// Formulas that no run can make true or false are told, others are not.
#include <gtest/gtest.h>

#include <string>

#include "harness/formula/formula.h"
#include "harness/formula/test_support.h"

namespace trainwreck::formula {
namespace vacuous_test {

// "begin-end: message" of the first part, "" where there is none.
std::string Vacuous(const std::string& text, const std::string& own_arm = "") {
  const Formula::ParseResult parsed = Formula::Parse(text);
  if (!parsed.formula) {
    ADD_FAILURE() << text << ": " << parsed.errors.front().message;
    return "?";
  }
  const auto found = parsed.formula->FindVacuous(testing::TestVocabulary(100, 2), own_arm);
  if (found.empty()) return "";
  return std::to_string(found[0].begin) + "-" + std::to_string(found[0].end) + ": " +
         found[0].message;
}

TEST(Vacuous, ComparisonsWithThemselves) {
  for (const char* text :
       {"always loss <= loss", "always loss - loss < 1", "always lr < lr + 1", "always lr + 1 < lr",
        "mean(loss[:]) * 2 < mean(loss[:]) + mean(loss[:]) + 1e-3", "loss[3] >= loss[3]",
        "control.mean(loss[:]) == control.mean(loss[:])", "always loss / loss < 2",
        "always 0.3 * lr - 0.1 * lr <= 0.2 * lr", "always -(lr) + lr < 1",
        "always abs(lr) < abs(lr)", "eventually (fired or skipped - skipped == 0)",
        "always param_digest{*} == param_digest{*}", "always spread(param_digest@0) == 0",
        "(mean(loss[:])) - mean(loss[:]) == 0"}) {
    EXPECT_NE(Vacuous(text), "") << text;
  }
  EXPECT_EQ(Vacuous("always loss <= loss"),
            "7-19: this is true in every run: both sides are made of the same, their difference is "
            "always 0");
  EXPECT_EQ(Vacuous("loss[0] - loss[0] < 1"),
            "0-21: this is true in every run: both sides are made of the same, their difference is "
            "always -1");
  EXPECT_EQ(Vacuous("1 < 2"), "0-5: this is true in every run: no signal takes part");
  EXPECT_EQ(Vacuous("always (loss < 3 and lr > lr + 1)"),
            "21-32: this is false in every run: both sides are made of the same, their difference "
            "is always -1");
}

TEST(Vacuous, ConstantsAndImpossibleBounds) {
  for (const char* text :
       {"1 < 2", "2 * 3 == 6", "abs(-1) > 2", "count(loss[:]) >= 0", "count(loss[:10]) <= 10",
        "count(loss[-20:]) > 20", "count(loss[:]) == 101", "count(loss[:]) < 0", "always loss >= 0",
        "always loss > -1", "eventually loss < 0", "std(lr[:]) >= 0", "always abs(lr - loss) >= 0",
        "always spread(lr) < -0.5", "mean(loss[:]) + 1 > 0.5",
        "overlap(sample_digest[:5], sample_digest[5:]) <= 5", "always loss * grad_norm >= 0",
        "always -3 * loss <= 0", "eventually loss / grad_norm < 0"}) {
    EXPECT_NE(Vacuous(text), "") << text;
  }
  EXPECT_EQ(Vacuous("always loss > -1"),
            "7-16: this is true in every run: the left side less the right one is never below 1");
}

TEST(Vacuous, OrderOfFunctionsOfOneSignal) {
  for (const char* text :
       {"mean(lr[:]) >= min(lr[:])", "max(lr[:]) >= max(lr[:10])", "min(lr[:]) <= lr[5]",
        "max(lr[:]) < median(lr[10:20])", "last(lr[60:]) <= max(lr[50:]) + 0.1",
        "min(lr[-20:]) - max(lr[-20:]) <= 0", "2 * max(lr[:]) >= 2 * lr[-1]"}) {
    EXPECT_NE(Vacuous(text), "") << text;
  }
  for (const char* text : {"mean(lr[:]) > min(lr[:])", "max(lr[:10]) >= max(lr[:])",
                           "min(lr[:10]) <= lr[10]", "max(lr[:]) >= 2 * mean(lr[:])",
                           "max(lr[:]) >= control.min(lr[:])", "max(lr@0[:]) >= min(lr@1[:])",
                           "max(lr[:]) >= std(lr[:])", "mean(lr[:]) <= median(lr[:])"}) {
    EXPECT_EQ(Vacuous(text), "") << text;
  }
}

TEST(Vacuous, LogicThatLeavesNoCase) {
  for (const char* text :
       {"fired(hot_lr) or not fired(hot_lr)", "always (loss < 3 or loss >= 3)",
        "always (loss < 3 implies 3 > loss)", "fired(hot_lr) and not fired(hot_lr)",
        "(always loss < 3) or eventually not loss < 3",
        "(never nonfinite(loss)) or "
        "eventually nonfinite(loss)",
        "(eventually loss > 3 and restarted) implies restarted",
        "always (lr < 1 or lr > 1 or not (lr < 1))", "nonfinite(loss) precedes nonfinite(loss)",
        "at_end (once loss > 3 or historically loss <= 3)"}) {
    EXPECT_NE(Vacuous(text), "") << text;
  }
  for (const char* text :
       {"fired(hot_lr) or not fired(bad_sample)", "always (loss < 3 or loss >= 4)",
        "(always[:5] loss < 3) or eventually not loss < 3",
        "always (nonfinite(loss) precedes "
        "nonfinite(loss))",
        "spike(loss, ratio=2, window=4) precedes nonfinite(loss)",
        "nonfinite(loss) precedes[0:] nonfinite(loss)"}) {
    EXPECT_EQ(Vacuous(text), "") << text;
  }
}

TEST(Vacuous, NotWhatARunDecides) {
  for (const char* text :
       {"always loss <= 1.25 * control.loss", "mean(loss[-20:]) < 0.8 * mean(loss[:5])",
        "count(loss[:]) >= 1", "count(loss[:]) == 100", "always loss > 0", "always lr >= 0",
        "always act_nonfinite{*} == 0", "always spread(param_digest) == 0", "eventually loss > 4",
        "always param_digest{a.*} == param_digest{b.*}", "always abs(lr - loss) <= 1e-6",
        "always loss@0 == loss@1", "slope(loss[:]) < 0", "sum(skipped[:]) == 1",
        "all_ranks(at_end loss < 3)", "loss < 5 until[1:40] nonfinite(loss)",
        "overlap(sample_digest[60:], sample_digest[:60]) == 0", "lr[0] < lr[1]"}) {
    EXPECT_EQ(Vacuous(text), "") << text;
  }
}

TEST(Vacuous, AnArmComparedWithItself) {
  const std::string text = "mean(loss[:]) <= 1.25 * control.mean(loss[:])";
  EXPECT_EQ(Vacuous(text), "");
  EXPECT_NE(Vacuous(text, "control"), "");
  EXPECT_NE(Vacuous("at_end param_digest == control.param_digest", "control"), "");
  EXPECT_EQ(Vacuous("mean(loss[-5:]) < 0.9 * control.mean(loss[:5])", "control"), "");
  EXPECT_FALSE(Formula::Parse("control.mean(loss[:]) < 3").formula->reads_own_run());
  EXPECT_TRUE(Formula::Parse(text).formula->reads_own_run());
}

}  // namespace vacuous_test
}  // namespace trainwreck::formula
