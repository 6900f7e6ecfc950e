// What a person sees who wrote a formula wrong: one line an error, "begin-end: message (hint)".
#include <gtest/gtest.h>

#include <string>

#include "harness/formula/nearest.h"
#include "harness/formula/parser.h"
#include "harness/formula/test_support.h"

namespace trainwreck::formula {
namespace {

using testing::Errors;
using testing::TestVocabulary;

struct Case {
  const char* text;
  const char* errors;
};

void ExpectErrors(const Case& c, const Vocabulary& vocabulary) {
  EXPECT_EQ(Errors(c.text, vocabulary), std::string(c.errors) + "\n") << c.text;
}

TEST(ParseErrors, NameTheirPlaceAndTheLikelyFix) {
  const Case cases[] = {
      {"", ""},
      {"eventually", ""},
      {"loss < ", ""},
      {"always loss << 3", ""},
      {"always loss = 3", ""},
      {"always loss != 3", ""},
      {"always loss < 3 && fired", ""},
      {"always loss < 3 adn fired", ""},
      {"always (loss < 3", ""},
      {"always loss < 3)", ""},
      {"1 < loss[0] < 3", ""},
      {"always loss", ""},
      {"loss + 1", ""},
      {"mean(loss[:5])", ""},
      {"(loss < 3) + 1 < 3", ""},
      {"maen(loss[:5]) < 3", ""},
      {"mean() < 3", ""},
      {"mean(loss[:5], loss[:6]) < 3", ""},
      {"overlap(sample_digest[:5]) > 0", ""},
      {"eventually spike(grad_norm, ratio=4)", ""},
      {"eventually spike(grad_norm, ration=4, window=8)", ""},
      {"eventually spike(grad_norm, ratio=4, ratio=4, window=8)", ""},
      {"eventually spike(grad_norm, ratio=x, window=8)", ""},
      {"eventually[5] loss < 3", ""},
      {"always[-20:] loss < 3", ""},
      {"always[1.5:] loss < 3", ""},
      {"always[1:5s] loss < 3", ""},
      {"always[1 5] loss < 3", ""},
      {"mean(loss[5s:]) < 3", ""},
      {"mean(loss[0.5:]) < 3", ""},
      {"mean(loss[:) < 3", ""},
      {"loss@one[3] < 3", ""},
      {"always loss < 5s", ""},
      {"always loss < 3x", ""},
      {"always update_norm{} > 0", ""},
      {"always update_norm{head > 0", ""},
      {"event(\"x\")", ""},
      {"fired(hot_lr", ""},
      {"fired(rank=)", ""},
      {"exited(why='killed)", ""},
      {"loss < 3 until lr > 1 until lr > 2", ""},
      {"control. < 3", ""},
      {"always loss < 3 \xc3\xa4", ""},
      {"always loss -> fired", ""},
      {"not", ""},
      {"always and", ""},
      {"always loss < 1e999", ""},
  };
  for (const Case& c : cases) ExpectErrors(c, TestVocabulary(60));
}

TEST(CheckErrors, NameTheirPlaceAndTheLikelyFix) {
  const Case cases[] = {
      {"always los < 3", ""},
      {"always stalled < 3", ""},
      {"loss < 3", ""},
      {"nonfinite(loss)", ""},
      {"holds(loss < 3, for=3)", ""},
      {"loss", ""},
      {"eventually loss", ""},
      {"eventually staled", ""},
      {"eventually staled(waiting_rank=0)", ""},
      {"eventually stalled(waiting_rnk=0)", ""},
      {"eventually stalled(banana=0)", ""},
      {"fired(hot_rl)", ""},
      {"contrl.loss[0] < 3", ""},
      {"other.loss[0] < 3", ""},
      {"loss@3[0] < 3", ""},
      {"loss[:5] < 3", ""},
      {"mean(loss) < 3", ""},
      {"mean(loss[3]) < 3", ""},
      {"mean(loss + 1) < 3", ""},
      {"mean(loss[:61]) < 3", ""},
      {"mean(loss[-61:]) < 3", ""},
      {"loss[60] < 3", ""},
      {"mean(loss[5:5]) < 3", ""},
      {"mean(loss[-5:20]) < 3", ""},
      {"always[:60] loss < 3", ""},
      {"always[70:] loss < 3", ""},
      {"always[7:3] loss < 3", ""},
      {"at_end[:3] loss < 3", ""},
      {"loss < 3 until[:3s] lr > 1", ""},
      {"always (loss < 3 precedes[:3s] lr > 1)", ""},
      {"always loss == 3", ""},
      {"mean(skipped[:]) == 0", ""},
      {"always skipped == 0.5", ""},
      {"1 < 2", ""},
      {"always eval_loss < 3", ""},
      {"eventually nonfinite(eval_loss)", ""},
      {"eventually nonfinite(loss[:3])", ""},
      {"always loss{head} < 3", ""},
      {"eventually spike(grad_norm, ratio=0, window=8)", ""},
      {"eventually spike(grad_norm, ratio=2, window=0)", ""},
      {"eventually plateau(loss, window=99, tolerance=-1)", ""},
      {"eventually oscillates(loss, window=5, crossings=4)", ""},
      {"eventually holds(loss < 3, for=2.5)", ""},
      {"all_ranks(any_rank(always loss < 3))", ""},
      {"always spread(loss) < 3", ""},
      {"any_module(always loss < 3)", ""},
      {"always any_module(any_module(update_norm{*} < 3))", ""},
      {"always grad_norm{a} < param_norm{b} + update_norm{c}", ""},
      {"overlap(loss[:5], sample_digest[:3]) > 0", ""},
      {"always los < 3 and mean(grd_norm[:99]) < contrl.lr", ""},
  };
  for (const Case& c : cases) ExpectErrors(c, TestVocabulary(60));
}

TEST(CheckErrors, AreAbsentFromGoodFormulas) {
  for (const char* text : {
           "eventually[:59] nonfinite(loss)",
           "spike(grad_norm, ratio=4, window=8) precedes[1:20] nonfinite(loss)",
           "mean(loss[-20:]) <= 1.25 * control.mean(loss[-20:])",
           "always[1:] updated{head.*} == 0",
           "eventually stalled(waiting_rank=0)",
           "fired(hot_lr)",
           "event(sample_rejected, sample=17)",
           "exited(rank=1, signal=9)",
           "loss@0[5] < 3",
           "all_ranks(always loss < 3)",
           "at_end param_digest == reference.param_digest",
           "eventually[:5s] stalled",
           "fired precedes[:5s] stalled(waiting_rank=0)",
           "overlap(sample_digest[30:], reference.sample_digest[:30]) == 0",
           "last(eval_loss[:]) < 3",
           "control.fired",
       }) {
    EXPECT_EQ(Errors(text, TestVocabulary(60)), "") << text;
  }
  EXPECT_EQ(Errors("always spread(loss) < 3 and loss@1[0] < 3", TestVocabulary(60, 2)), "");
}

TEST(CheckErrors, WithoutAKnownLengthWindowsMayReachAnywhere) {
  EXPECT_EQ(Errors("always[:1000] loss < 3 and mean(loss[:1000]) < 3", TestVocabulary(0)), "");
}

std::string Repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

TEST(Limits, AreErrorsNotCrashes) {
  const std::string deep = "63-64: nested more than 64 deep (make it several checks)\n";
  const Vocabulary vocabulary = TestVocabulary(60);
  for (const auto& [open, close] :
       std::vector<std::pair<std::string, std::string>>{{"(", ")"},
                                                        {"not ", ""},
                                                        {"always ", ""},
                                                        {"-", ""},
                                                        {"abs(", ")"},
                                                        {"holds(", ", for=1)"},
                                                        {"loss[0] > 0 implies ", ""},
                                                        {"1 + (", ")"}}) {
    for (int times : {65, 200, 500}) {
      const std::string text = Repeated(open, times) + "loss[0] > 0" + Repeated(close, times);
      const auto parsed = Formula::Parse(text);
      ASSERT_EQ(parsed.errors.size(), 1u) << open;
      EXPECT_FALSE(parsed.formula) << open;
      EXPECT_NE(parsed.errors[0].message.find(text.size() > kMaxFormulaBytes ? "at most" : "deep"),
                std::string::npos)
          << parsed.errors[0].message;
    }
  }
  EXPECT_FALSE(Formula::Parse("loss[0] > 0" + Repeated(" + 1", 100)).formula);
  // A long chain is not deep.
  const std::string chain = "loss[0] > 0" + Repeated(" and lr[0] > 0", 200);
  EXPECT_TRUE(Formula::Parse(chain).formula);
  EXPECT_FALSE(Formula::Parse(Repeated(" ", 4097)).formula);
}

TEST(NearestName, IsNearOrNone) {
  const std::vector<std::string> known = {"loss", "grad_norm", "lr", "update_norm"};
  EXPECT_EQ(NearestName("los", known), "loss");
  EXPECT_EQ(NearestName("lsos", known), "loss");
  EXPECT_EQ(NearestName("grad_nrom", known), "grad_norm");
  EXPECT_EQ(NearestName("rl", known), "lr");
  EXPECT_EQ(NearestName("banana", known), "");
  EXPECT_EQ(NearestName("", known), "");
  EXPECT_EQ(NearestName(std::string(1000, 'x'), known), "");
}

}  // namespace
}  // namespace trainwreck::formula
