// What a person sees who wrote a formula wrong: one line an error, "begin-end: message (hint)".
#include <gtest/gtest.h>

#include <string>

#include "harness/formula/parser.h"
#include "harness/formula/test_support.h"
#include "harness/text/nearest.h"

namespace trainwreck::formula {
namespace errors_test {

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
      {"", "0-0: the formula is empty"},
      {"eventually",
       "10-10: the formula ends where a signal, an event, a function or '(' is expected"},
      {"loss < ", "7-7: the formula ends where a signal, an event, a function or '(' is expected"},
      {"always loss << 3", "13-14: '<' where a signal, an event, a function or '(' is expected"},
      {"always loss = 3", "12-13: '=' where a comparison is expected (write == to compare)"},
      {"always loss ! 3", "12-13: unknown operator '!' (write: not)"},
      {"always loss < 3 && fired", "16-18: unknown operator '&' (write: and)"},
      {"always loss < 3 adn fired",
       "16-19: 'adn' where the end of the formula or 'and', 'or', 'implies' is expected (did you "
       "mean 'and'?)"},
      {"always (loss < 3", "16-16: the formula ends where ')' is expected"},
      {"always loss < 3)",
       "15-16: ')' where the end of the formula or 'and', 'or', 'implies' is expected"},
      {"1 < loss[0] < 3", "12-13: comparisons do not chain (write: a < b and b < c)"},
      {"always loss", "7-11: 'loss' is a signal, a number (compare it: < <= > >= == !=)"},
      {"loss + 1",
       "0-8: a number, where something true or false is expected (compare it: < <= > >= == !=)"},
      {"mean(loss[:5])",
       "0-14: a number, where something true or false is expected (compare it: < <= > >= == !=)"},
      {"(loss < 3) + 1 < 3", "1-9: true or false, where a number is expected"},
      {"maen(loss[:5]) < 3", "0-4: no function is called 'maen' (did you mean 'mean'?)"},
      {"mean() < 3", "0-4: mean takes a slice of a signal"},
      {"mean(loss[:5], loss[:6]) < 3", "15-23: mean takes a slice of a signal"},
      {"overlap(sample_digest[:5]) > 0", "0-7: overlap takes two slices of signals"},
      {"eventually spike(grad_norm, ratio=4)",
       "11-16: spike takes a signal, ratio=NUMBER, window=NUMBER"},
      {"eventually spike(grad_norm, ration=4, window=8)",
       "28-34: spike takes a signal, ratio=NUMBER, window=NUMBER, not 'ration' (did you mean "
       "'ratio'?)"},
      {"eventually spike(grad_norm, ratio=4, ratio=4, window=8)", "37-42: 'ratio' is given twice"},
      {"eventually spike(grad_norm, ratio=x, window=8)", "34-35: 'x' where a number is expected"},
      {"eventually[5] loss < 3", "10-13: a window has two ends ([from:to], [from:] or [:to])"},
      {"always[-20:] loss < 3",
       "7-10: a window counts from where it is read, never from the end (use a slice: "
       "max(loss[-20:]) < 3, or at_end)"},
      {"always[1.5:] loss < 3", "7-10: steps are whole numbers (write 0.5s for seconds)"},
      {"always[1:5s] loss < 3", "6-12: a window in both steps and seconds"},
      {"always[1 5] loss < 3", "9-10: '5' where ':' is expected"},
      {"mean(loss[5s:]) < 3", "10-12: slices count steps, not seconds"},
      {"mean(loss[0.5:]) < 3", "10-13: a whole number must stand here"},
      {"mean(loss[:) < 3", "11-12: ')' where a step or ']' is expected"},
      {"loss@one[3] < 3", "5-8: 'one' where a rank is expected"},
      {"always loss < 5s", "14-16: seconds stand in windows only (eventually[:5s] ...)"},
      {"always loss < 3x",
       "14-16: letters after a number (only 's' may follow a number: seconds, in a window)"},
      {"always update_norm{} > 0", "18-20: an empty module pattern ({*} is every module)"},
      {"always update_norm{head > 0", "18-19: the module pattern is not closed (close it with })"},
      {"event(\"x\")", "6-9: '\"x\"' where the name of an event is expected"},
      {"fired(hot_lr", "12-12: the formula ends where ',' or ')' is expected"},
      {"fired(rank=)", "11-12: ')' where a number, a name or a string is expected"},
      {"exited(why='killed)", "11-12: the string is not closed (close it with ')"},
      {"loss < 3 until lr > 1 until lr > 2",
       "22-27: 'until' after another one does not say which is first (use parentheses)"},
      {"control. < 3", "9-10: '<' where a signal, an event or a function of 'control' is expected"},
      {"always loss < 3 \xc3\xa4", "16-18: unexpected character 'ä'"},
      {"always loss -> fired", "12-14: unknown operator '->' (write: implies)"},
      {"not", "3-3: the formula ends where a signal, an event, a function or '(' is expected"},
      {"always and", "7-10: 'and' where a signal, an event, a function or '(' is expected"},
      {"always loss < 1e999", "14-19: a number that is out of range"},
  };
  for (const Case& c : cases) ExpectErrors(c, TestVocabulary(60));
}

TEST(CheckErrors, OfDistancesFromControl) {
  const Case cases[] = {
      {"always distance(loss[:5]) < 1",
       "16-24: a signal without arm and slice must stand here (always distance(loss) <= 8 * "
       "rounding(loss))"},
      {"always distance(control.loss) < 1",
       "16-28: a signal without arm and slice must stand here (always distance(loss) <= 8 * "
       "rounding(loss))"},
      {"distance(loss) < 1",
       "0-14: distance is a number at a step; say at which (say always, eventually or at_end: "
       "always distance(loss))"},
      {"always distance(param_digest) <= 8 * rounding(loss)",
       "16-28: 'param_digest' is exact, so no rounding changes it (always param_digest == "
       "control.param_digest)"},
      {"always distance(los) < 1", "16-19: unknown signal 'los' (did you mean 'loss'?)"},
  };
  for (const Case& c : cases) ExpectErrors(c, TestVocabulary(60));
}

TEST(CheckErrors, NameTheirPlaceAndTheLikelyFix) {
  const Case cases[] = {
      {"always los < 3", "7-10: unknown signal 'los' (did you mean 'loss'?)"},
      {"always stalled < 3",
       "7-14: unknown signal 'stalled' ('stalled' is an event: eventually stalled(...))"},
      {"loss < 3",
       "0-4: bare signal 'loss': at which step? (say always, eventually or at_end, or give a "
       "slice: mean(loss[-20:]))"},
      {"nonfinite(loss)",
       "0-15: this is true or false at a step; say at which (say always, eventually, never or "
       "at_end: eventually nonfinite(loss))"},
      {"holds(loss < 3, for=3)",
       "0-22: this is true or false at a step; say at which (say always, eventually, never or "
       "at_end: eventually holds(loss < 3, for=3))"},
      {"loss", "0-4: 'loss' is a signal, a number (compare it: < <= > >= == !=)"},
      {"eventually loss", "11-15: 'loss' is a signal, a number (compare it: < <= > >= == !=)"},
      {"eventually staled", "11-17: unknown event or signal 'staled' (did you mean 'stalled'?)"},
      {"eventually staled(waiting_rank=0)",
       "11-33: unknown event or function 'staled' (did you mean 'stalled'?)"},
      {"eventually stalled(waiting_rnk=0)",
       "19-32: event 'stalled' has no field 'waiting_rnk' (did you mean 'waiting_rank'?)"},
      {"eventually stalled(banana=0)",
       "19-27: event 'stalled' has no field 'banana' (its fields: waiting_rank, waiting_op, "
       "waiting_call, waiting_step, lagging_rank, lagging_op, lagging_call, lagging_step, "
       "lagging_state, dead_link, idle_s)"},
      {"fired(hot_rl)", "0-13: no fault 'hot_rl' is injected (did you mean 'hot_lr'?)"},
      {"contrl.loss[0] < 3", "0-6: unknown arm 'contrl' (did you mean 'control'?)"},
      {"other.loss[0] < 3", "0-5: unknown arm 'other' (one of: control, reference)"},
      {"loss@3[0] < 3", "0-9: rank 3 of a run with 1 rank"},
      {"loss[:5] < 3",
       "0-8: a slice is many numbers; make one of them (mean(...), median, min, max, first, last, "
       "sum, std, slope or count)"},
      {"mean(loss) < 3",
       "5-9: a slice of the signal must stand here (loss[:] for the whole run, loss[-20:] for its "
       "end)"},
      {"mean(loss[3]) < 3",
       "5-12: a slice of the signal must stand here (loss[:] for the whole run, loss[-20:] for its "
       "end)"},
      {"mean(loss + 1) < 3", "5-13: a slice of a signal must stand here (mean(loss[-20:]))"},
      {"mean(loss[:61]) < 3", "9-14: outside the run, which has 60 steps: 0 to 59"},
      {"mean(loss[-61:]) < 3", "9-15: outside the run, which has 60 steps: 0 to 59"},
      {"loss[60] < 3", "4-8: outside the run, which has 60 steps: 0 to 59"},
      {"mean(loss[5:5]) < 3", "9-14: an empty slice: from step 5 to before 5"},
      {"mean(loss[-5:20]) < 3", "9-16: an empty slice: from step 55 to before 20"},
      {"always[:60] loss < 3",
       "6-11: the window reaches step 60, the run's last is 59 (both ends of a window are inside "
       "it)"},
      {"always[70:] loss < 3",
       "6-11: the window reaches step 70, the run's last is 59 (both ends of a window are inside "
       "it)"},
      {"always[7:3] loss < 3", "6-11: an empty window"},
      {"at_end[:3] loss < 3", "6-10: at_end is one step: it takes no window"},
      {"loss < 3 until[:3s] lr > 1", "14-19: until takes a window in steps"},
      {"always (loss < 3 precedes[:3s] lr > 1)",
       "25-30: precedes takes seconds only where no temporal operator is around it"},
      {"always skipped == loss",
       "18-22: == on a value that is not exact (== and != are for counts, digests and exit codes, "
       "and for a recorded value and a whole number: max(x[:]) == 0; else give a tolerance: "
       "abs(a - b) <= 1e-6)"},
      {"mean(skipped[:]) == 0",
       "0-16: == on a value that is not exact (== and != are for counts, digests and exit codes, "
       "and for a recorded value and a whole number: max(x[:]) == 0; else give a tolerance: "
       "abs(a - b) <= 1e-6)"},
      {"always 2 * loss != 3",
       "7-15: != on a value that is not exact (== and != are for counts, digests and exit codes, "
       "and for a recorded value and a whole number: max(x[:]) == 0; else give a tolerance: "
       "abs(a - b) <= 1e-6)"},
      {"always skipped == 0.5",
       "18-21: == on a value that is not exact (== and != are for counts, digests and exit codes, "
       "and for a recorded value and a whole number: max(x[:]) == 0; else give a tolerance: "
       "abs(a - b) <= 1e-6)"},
      {"1 < 2", "0-5: no signal on either side: this never changes"},
      {"eval_loss < 3 precedes loss > 4",
       "0-9: 'eval_loss' is recorded at some steps only, precedes reads all (put it inside always, "
       "eventually, never, once or historically, or give it a slice)"},
      {"eventually plateau(eval_loss, window=4, tolerance=0.1)",
       "19-28: 'eval_loss' is recorded at some steps only"},
      {"once loss < 3",
       "0-13: this looks back from a step; say from which (say always, eventually, never or "
       "at_end: "
       "at_end once loss < 3)"},
      {"at_end historically[:2s] loss < 3", "19-24: historically takes a window in steps"},
      {"eventually nonfinite(loss[:3])",
       "21-29: a signal without a slice must stand here (eventually[10:60] nonfinite(loss))"},
      {"always loss{head} < 3", "7-17: 'loss' is not recorded per module"},
      {"eventually spike(grad_norm, ratio=0, window=8)", "28-35: ratio must be positive"},
      {"eventually spike(grad_norm, ratio=2, window=0)",
       "37-45: window must be a whole number from 1 to 60"},
      {"eventually plateau(loss, window=99, tolerance=-1)",
       "25-34: window must be a whole number from 1 to 60\n"
       "36-48: tolerance must be positive"},
      {"eventually oscillates(loss, window=5, crossings=4)",
       "38-49: 5 samples turn at most 3 times"},
      {"eventually holds(loss < 3, for=2.5)", "27-34: for must be a whole number from 1 to 60"},
      {"all_ranks(any_rank(always loss < 3))", "10-35: ranks are already chosen further out"},
      {"always spread(loss) < 3",
       "7-19: spread over a single rank is always 0 (set parallel.ranks)"},
      {"any_module(always loss < 3)",
       "0-27: any_module without a module pattern inside (update_norm{*} > 0)"},
      {"always any_module(any_module(update_norm{*} < 3))", "18-48: any_module inside any_module"},
      {"always grad_norm{a} < param_norm{b} + update_norm{c}",
       "7-52: 3 different module patterns; at most 2 vary together"},
      {"overlap(loss[:5], sample_digest[:3]) > 0",
       "8-16: overlap needs exact signals; 'loss' is none"},
      {"always los < 3 and mean(grd_norm[:99]) < contrl.lr",
       "7-10: unknown signal 'los' (did you mean 'loss'?)\n"
       "24-37: unknown signal 'grd_norm' (did you mean 'grad_norm'?)\n"
       "32-37: outside the run, which has 60 steps: 0 to 59\n"
       "41-47: unknown arm 'contrl' (did you mean 'control'?)\n"
       "41-50: bare signal 'lr': at which step? (say always, eventually or at_end, or give a "
       "slice: mean(lr[-20:]))"},
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

}  // namespace errors_test
}  // namespace trainwreck::formula
