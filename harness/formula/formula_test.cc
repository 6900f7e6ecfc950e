#include "harness/formula/formula.h"

#include <gtest/gtest.h>

#include "harness/formula/test_support.h"

namespace trainwreck::formula {
namespace formula_test {

using testing::kInf;
using testing::kMissing;
using testing::kNan;
using testing::Read;
using testing::TestRun;

double Lo(const Reading& reading, Unit unit) {
  const auto& margin = reading.margins[static_cast<int>(unit)];
  return margin ? margin->lo : kNan;
}
double Hi(const Reading& reading, Unit unit) {
  const auto& margin = reading.margins[static_cast<int>(unit)];
  return margin ? margin->hi : kNan;
}
void ExpectMargin(const Reading& reading, Unit unit, double margin) {
  EXPECT_EQ(Lo(reading, unit), margin);
  EXPECT_EQ(Hi(reading, unit), margin);
}
void ExpectTruth(const std::string& text, const TestRun& run, Truth truth) {
  EXPECT_EQ(static_cast<int>(Read(text, run).truth), static_cast<int>(truth)) << text;
}

TEST(Comparisons, PlainMarginsAreTheExactDifference) {
  const TestRun run = TestRun(4).With("lr", {0.5, 0.25, 0.125, 0.125});
  ExpectMargin(Read("mean(lr[:]) < 1", run), Unit::kPlain, 0.75);
  ExpectMargin(Read("max(lr[:]) <= 0.25", run), Unit::kPlain, -0.25);
  ExpectMargin(Read("lr[-1] >= lr[0] - 0.5", run), Unit::kPlain, 0.125);
  ExpectMargin(Read("lr[1] * 2 + lr[2] / 0.5 > abs(-0.5)", run), Unit::kPlain, 0.25);
  ExpectTruth("mean(lr[:]) < 1", run, Truth::kTrue);
  ExpectTruth("max(lr[:]) <= 0.25", run, Truth::kFalse);
}

TEST(Comparisons, PositiveLogSignalsCompareInOctaves) {
  const TestRun run = TestRun(4).With("loss", {8, 4, 2, 1});
  ExpectMargin(Read("loss[-1] < loss[0]", run), Unit::kOctave, 3);
  ExpectMargin(Read("0.5 * loss[0] > loss[1]", run), Unit::kOctave, 0);
  ExpectMargin(Read("max(loss[:]) <= 2 * min(loss[:])", run), Unit::kOctave, -2);
  EXPECT_EQ(Read("loss[-1] < loss[0]", run).main_unit, Unit::kOctave);
  // A difference may be negative: it has no logarithm.
  ExpectMargin(Read("loss[0] - loss[1] < 5", run), Unit::kPlain, 1);
  ExpectMargin(Read("slope(loss[:]) < 0", run), Unit::kPlain, 2.3);
}

TEST(Comparisons, OctavesHaveLimits) {
  const TestRun run = TestRun(3).With("loss", {0, 0, kInf}).With("grad_norm", {1, 0, -1});
  ExpectMargin(Read("loss[0] < grad_norm[0]", run), Unit::kOctave, kInf);
  ExpectMargin(Read("loss[1] <= grad_norm[1]", run), Unit::kOctave, 0);
  ExpectTruth("loss[1] <= grad_norm[1]", run, Truth::kTrue);
  ExpectMargin(Read("loss[1] < grad_norm[2]", run), Unit::kOctave, -kInf);
  ExpectMargin(Read("loss[2] <= loss[2]", run), Unit::kOctave, 0);
  ExpectMargin(Read("loss[2] < 1", run), Unit::kOctave, -kInf);
}

TEST(Comparisons, EqualityOfExactValues) {
  const TestRun run =
      TestRun(3).With("param_digest", {1, 4503599627370495, 7}).With("skipped", {0, 0, 2});
  const Reading equal = Read("param_digest[1] == 4503599627370495", run);
  EXPECT_EQ(equal.truth, Truth::kTrue);
  ExpectMargin(equal, Unit::kPlain, 0);
  ExpectMargin(Read("sum(skipped[:]) == 5", run), Unit::kPlain, -3);
  ExpectMargin(Read("not sum(skipped[:]) == 5", run), Unit::kPlain, 3);
}

TEST(Comparisons, ARecordedValueMayBeComparedWithAWholeNumber) {
  constexpr double kTiny = 5e-324;  // equality is one of bits: the least number above 0 is not 0
  const TestRun run = TestRun(3).With("grad_norm", {0, kTiny, 2}).With("loss", {1, kNan, 1});
  ExpectTruth("grad_norm[0] == 0", run, Truth::kTrue);
  ExpectTruth("grad_norm[1] == 0", run, Truth::kFalse);
  ExpectTruth("grad_norm[1] != 0", run, Truth::kTrue);
  ExpectTruth("loss[1] == 1", run, Truth::kUnknown);
  ExpectTruth("loss[1] != 1", run, Truth::kUnknown);
  ExpectMargin(Read("grad_norm[0] == 0", run), Unit::kPlain, 0);
  ExpectMargin(Read("grad_norm[2] == 0", run), Unit::kPlain, -2);
  ExpectMargin(Read("grad_norm[2] != 0", run), Unit::kPlain, 2);
  ExpectMargin(Read("grad_norm[0] != 0", run), Unit::kPlain, 0);
  ExpectTruth("grad_norm[0] != 0", run, Truth::kFalse);
}

TEST(Comparisons, ExactValuesAndEqualityArePlain) {
  const TestRun run = TestRun(1).With("tokens", {4}).With("loss", {4});
  ExpectMargin(Read("tokens[0] < 8", run), Unit::kPlain, 4);  // a count, though it spans decades
  ExpectMargin(Read("loss[0] == 8", run), Unit::kPlain, -4);
  EXPECT_FALSE(Read("loss[0] == 8", run).margins[static_cast<int>(Unit::kOctave)]);
}

TEST(Slices, Functions) {
  const TestRun run = TestRun(6).With("lr", {1, 2, 4, 8, 16, 33});
  const std::vector<std::pair<std::string, double>> cases = {
      {"mean(lr[1:4])", 14.0 / 3}, {"median(lr[:])", 6}, {"median(lr[:5])", 4},
      {"min(lr[2:])", 4},          {"max(lr[:-1])", 16}, {"first(lr[-2:])", 16},
      {"last(lr[:3])", 4},         {"sum(lr[:])", 64},   {"std(lr[:2])", 0.5},
      {"slope(lr[:2])", 1},        {"count(lr[1:])", 5}, {"lr[-6]", 1}};
  for (const auto& [text, value] : cases) {
    EXPECT_EQ(Lo(Read(text + " > 0", run), Unit::kPlain), value) << text;
    EXPECT_EQ(Hi(Read(text + " > 0", run), Unit::kPlain), value) << text;
  }
}

TEST(Slices, NanAndMissingSamplesAreUnknown) {
  const TestRun run = TestRun(4).With("lr", {1, kNan, 3, kMissing});
  for (const char* text : {"mean(lr[:2]) < 9", "median(lr[1:3]) < 9", "lr[1] < 9", "lr[3] < 9",
                           "sum(lr[2:]) < 9", "std(lr[:]) < 9"}) {
    const Reading reading = Read(text, run);
    EXPECT_EQ(reading.truth, Truth::kUnknown) << text;
    EXPECT_EQ(Hi(reading, Unit::kPlain), kInf) << text;
  }
  // What was seen suffices: neither NaN nor hole hides it.
  EXPECT_EQ(Hi(Read("max(lr[:]) < 9", run), Unit::kPlain), 6);
  EXPECT_EQ(Lo(Read("max(lr[:]) < 9", run), Unit::kPlain), -kInf);
  ExpectTruth("max(lr[:]) < 2", run, Truth::kFalse);
  ExpectTruth("min(lr[:]) < 2", run, Truth::kTrue);
  ExpectTruth("count(lr[:]) == 3", run, Truth::kTrue);
  ExpectTruth("mean(lr[2:3]) == 3", run, Truth::kTrue);
}

TEST(Slices, InfinityIsANumber) {
  const TestRun run = TestRun(3).With("lr", {1, kInf, -kInf});
  ExpectTruth("max(lr[:]) > 1e300", run, Truth::kTrue);
  ExpectTruth("mean(lr[:2]) > 1e300", run, Truth::kTrue);
  ExpectTruth("mean(lr[:]) > 1e300", run, Truth::kUnknown);  // inf - inf
}

TEST(Slices, SparseSignalsSkipWhatIsNotThere) {
  const TestRun run =
      TestRun(6).At("eval_loss", 2, 4).At("eval_loss", 5, 2).With("loss", {1, 1, 1, 1, 1, 1});
  ExpectMargin(Read("last(eval_loss[:]) < first(eval_loss[:])", run), Unit::kOctave, 1);
  ExpectMargin(Read("mean(eval_loss[:]) < 3", run), Unit::kOctave, 0);
  ExpectTruth("mean(eval_loss[:2]) < 3", run, Truth::kUnknown);
  ExpectTruth("count(eval_loss[:]) == 2", run, Truth::kTrue);
}

TEST(Slices, OverlapCountsSamplesSeenAgain) {
  const TestRun run = TestRun(6).With("sample_digest", {11, 12, 13, 12, 11, 14});
  ExpectTruth("overlap(sample_digest[3:], sample_digest[:3]) == 2", run, Truth::kTrue);
  ExpectTruth("overlap(sample_digest[5:], sample_digest[:3]) == 0", run, Truth::kTrue);
}

TEST(Temporal, OverWindows) {
  const TestRun run = TestRun(6).With("loss", {4, 4, 8, 4, 2, 2});
  ExpectTruth("always loss < 9", run, Truth::kTrue);
  ExpectMargin(Read("always loss < 16", run), Unit::kOctave, 1);
  ExpectMargin(Read("eventually loss >= 4", run), Unit::kOctave, 1);
  ExpectMargin(Read("always[3:] loss <= 4", run), Unit::kOctave, 0);
  ExpectMargin(Read("never[3:5] loss > 8", run), Unit::kOctave, 1);
  ExpectMargin(Read("at_end loss < 4", run), Unit::kOctave, 1);
  ExpectTruth("eventually[3:] loss > 4", run, Truth::kFalse);
  ExpectTruth("always[2:2] loss == 8", run, Truth::kTrue);
}

TEST(Temporal, StepMarginIsTheDistanceToTheWindowsEnd) {
  const TestRun run =
      TestRun(20).With("loss", {1, 1, 1, 1, 1, 9, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1});
  ExpectMargin(Read("eventually[:12] loss > 4", run), Unit::kStep, 7);
  ExpectMargin(Read("eventually[:2] loss > 4", run), Unit::kStep, -3);  // three steps too late
  ExpectMargin(Read("eventually loss > 4", run), Unit::kStep, 14);
  ExpectMargin(Read("eventually loss > 10", run), Unit::kStep, -kInf);
  ExpectMargin(Read("never[:12] loss > 4", run), Unit::kStep, -7);
  ExpectMargin(Read("always[:2] loss < 4", run), Unit::kStep, 3);
  ExpectMargin(Read("always loss < 10", run), Unit::kStep, kInf);
  // Only the outermost operator counts in steps, and comparisons around it count by their truth.
  ExpectMargin(Read("eventually[:12] loss > 4 and max(loss[:]) > 2", run), Unit::kStep, 7);
  ExpectMargin(Read("eventually[:3] always[2:2] loss > 4", run), Unit::kStep, 0);
}

TEST(Temporal, Until) {
  const TestRun run = TestRun(6).With("loss", {4, 4, 4, 1, 4, 1}).With("lr", {0, 1, 0, 0, 1, 0});
  ExpectTruth("loss > 2 until[0:5] lr > 0.5", run, Truth::kTrue);
  ExpectTruth("loss > 2 until[2:5] lr > 0.5", run, Truth::kFalse);  // loss dips at 3, lr is up at 4
  ExpectTruth("loss > 2 until[0:0] lr > 0.5", run, Truth::kFalse);
  ExpectMargin(Read("loss > 2 until[0:5] lr > 0.5", run), Unit::kStep, 4);
  ExpectMargin(Read("loss > 2 until lr > 0.5", run), Unit::kStep, 4);
}

TEST(Temporal, Precedes) {
  const TestRun run = TestRun(10)
                          .With("grad_norm", {1, 1, 1, 16, 1, 1, 1, 1, 1, 1})
                          .With("loss", {1, 1, 1, 1, 1, 1, 1, kNan, kNan, kNan});
  const Reading reading = Read("grad_norm > 4 precedes[1:9] nonfinite(loss)", run);
  EXPECT_EQ(reading.truth, Truth::kTrue);
  ExpectMargin(reading, Unit::kOctave, 2);
  ExpectMargin(reading, Unit::kStep, 3);  // a lead of 4 in [1, 9]
  ExpectTruth("grad_norm > 4 precedes[1:3] nonfinite(loss)", run, Truth::kFalse);
  ExpectMargin(Read("grad_norm > 4 precedes[1:3] nonfinite(loss)", run), Unit::kStep, -1);
  ExpectTruth("grad_norm > 4 precedes[5:9] nonfinite(loss)", run, Truth::kFalse);
  ExpectTruth("nonfinite(loss) precedes grad_norm > 4", run, Truth::kFalse);
  // Only the first of the second counts, and there must be one.
  ExpectTruth("grad_norm > 4 precedes grad_norm <= 4", run, Truth::kFalse);
  ExpectTruth("grad_norm > 4 precedes grad_norm > 99", run, Truth::kFalse);
}

TEST(Temporal, StepMarginLeavesOpenWhatTheTruthDoes) {
  // Whichever step the first NaN-or-more comes at, a spike precedes it: by steps it is sure, by
  // logic not.
  const TestRun run =
      TestRun(8).With("loss", {0.5, 1, 1, 1, 1, 1, 1, 1}).With("lr", {2, 2, 2, kNan, 1, 1, 1, 1});
  const Reading reading = Read("loss < 1 precedes[1:8] lr < 2", run);
  EXPECT_EQ(reading.truth, Truth::kUnknown);
  EXPECT_EQ(Lo(reading, Unit::kStep), 0);
  EXPECT_EQ(Hi(reading, Unit::kStep), 3);
  // A window beyond the run (the checker rejects it): it may come at step 8 at the earliest.
  EXPECT_EQ(Hi(Read("eventually[:20] loss > 9", run), Unit::kStep), 12);
  EXPECT_EQ(Lo(Read("eventually[:20] loss > 9", run), Unit::kStep), -kInf);
}

TEST(Temporal, NanHidesNeitherViolationNorProof) {
  const TestRun violated = TestRun(4).With("loss", {1, kNan, 9, 1});
  ExpectTruth("always loss < 5", violated, Truth::kFalse);
  EXPECT_LT(Hi(Read("always loss < 5", violated), Unit::kOctave), 0);
  ExpectTruth("eventually loss > 5", violated, Truth::kTrue);
  EXPECT_GT(Lo(Read("eventually loss > 5", violated), Unit::kOctave), 0);
  const TestRun open = TestRun(4).With("loss", {1, kNan, 2, 1});
  ExpectTruth("always loss < 5", open, Truth::kUnknown);
  ExpectTruth("eventually loss > 5", open, Truth::kUnknown);
  ExpectTruth("eventually nonfinite(loss)", open, Truth::kTrue);
}

TEST(Temporal, NothingHoldsBecauseThereWasNothingToSee) {
  const TestRun died = TestRun(10).With("loss", {1, 1, 1, 1});
  ExpectTruth("always loss < 5", died, Truth::kUnknown);
  ExpectTruth("always[6:] loss < 5", died, Truth::kUnknown);
  ExpectTruth("never[6:] loss > 5", died, Truth::kUnknown);
  ExpectTruth("always[20:30] loss < 5", died, Truth::kUnknown);
  ExpectTruth("always[20:] loss < 5", died, Truth::kUnknown);
  ExpectTruth("loss > 0 until[20:] loss > 0", died, Truth::kUnknown);
  ExpectTruth("always[:3] loss < 5", died, Truth::kTrue);
  ExpectTruth("always lr < 5", died, Truth::kUnknown);  // never recorded
  ExpectTruth("always updated{head.*} == 0", died, Truth::kUnknown);
}

TEST(Logic, IsKleenes) {
  const TestRun run = TestRun(2).With("loss", {1, kNan});
  ExpectTruth("loss[0] > 5 and loss[1] > 5", run, Truth::kFalse);  // false and unknown
  ExpectTruth("loss[0] < 5 and loss[1] > 5", run, Truth::kUnknown);
  ExpectTruth("loss[0] < 5 or loss[1] > 5", run, Truth::kTrue);
  ExpectTruth("loss[0] > 5 or loss[1] > 5", run, Truth::kUnknown);
  ExpectTruth("loss[1] > 5 implies loss[0] < 5", run, Truth::kTrue);
  ExpectTruth("loss[0] > 5 implies loss[1] > 5", run, Truth::kTrue);
  ExpectTruth("not loss[1] > 5", run, Truth::kUnknown);
}

TEST(Logic, BindsAndOverOrOverImplies) {
  const TestRun run = TestRun(1).With("lr", {1});
  const std::string yes = "lr[0] > 0", no = "lr[0] < 0";
  ExpectTruth(yes + " or " + no + " and " + no, run, Truth::kTrue);
  ExpectTruth("(" + yes + " or " + no + ") and " + no, run, Truth::kFalse);
  ExpectTruth(no + " implies " + yes + " implies " + no, run, Truth::kTrue);
  ExpectTruth("(" + no + " implies " + yes + ") implies " + no, run, Truth::kFalse);
  ExpectTruth("not " + yes + " or " + yes, run, Truth::kTrue);
  ExpectTruth("always lr > 0 and lr[0] < 0", run, Truth::kFalse);
}

TEST(Detectors, Spike) {
  const TestRun run = TestRun(6).With("grad_norm", {5, 1, 2, 16, kNan, 4});
  ExpectTruth("eventually[:0] spike(grad_norm, ratio=1, window=3)", run, Truth::kFalse);
  ExpectTruth("eventually[:1] spike(grad_norm, ratio=4, window=3)", run, Truth::kFalse);
  // 16 against 4 times the median of 5, 1, 2.
  const Reading reading = Read("eventually[3:3] spike(grad_norm, ratio=4, window=3)", run);
  EXPECT_EQ(reading.truth, Truth::kTrue);
  ExpectMargin(reading, Unit::kOctave, 1);
  ExpectMargin(Read("eventually[3:3] spike(grad_norm, ratio=16, window=1)", run), Unit::kOctave,
               -1);
  ExpectTruth("eventually[4:4] spike(grad_norm, ratio=4, window=3)", run, Truth::kUnknown);
  ExpectTruth("eventually[5:5] spike(grad_norm, ratio=4, window=3)", run, Truth::kUnknown);
  const TestRun flat = TestRun(3).With("grad_norm", {0, 0, 1});
  ExpectTruth("eventually[1:1] spike(grad_norm, ratio=4, window=3)", flat, Truth::kFalse);
  ExpectMargin(Read("eventually[2:2] spike(grad_norm, ratio=4, window=3)", flat), Unit::kOctave,
               kInf);
}

TEST(Detectors, PlateauOscillatesHolds) {
  const TestRun run = TestRun(6).With("loss", {8, 4, 4, 4, 5, 3}).With("lr", {1, 2, 1, 2, 1, 1});
  ExpectTruth("eventually[3:3] plateau(loss, window=3, tolerance=0.01)", run, Truth::kTrue);
  ExpectTruth("eventually[2:2] plateau(loss, window=3, tolerance=0.01)", run, Truth::kFalse);
  ExpectTruth("eventually[:1] plateau(loss, window=3, tolerance=9)", run, Truth::kFalse);
  // 3 steps of slope -0.5 against 0.375 of the mean 4: the same.
  ExpectMargin(Read("at_end plateau(loss, window=3, tolerance=0.375)", run), Unit::kOctave, 0);
  ExpectMargin(Read("eventually[4:4] oscillates(lr, window=5, crossings=2)", run), Unit::kPlain, 1);
  ExpectMargin(Read("at_end oscillates(lr, window=5, crossings=3)", run), Unit::kPlain, -1);
  ExpectTruth("eventually[:3] oscillates(lr, window=5, crossings=1)", run, Truth::kFalse);
  ExpectTruth("eventually[3:3] holds(loss <= 4, for=3)", run, Truth::kTrue);
  ExpectTruth("eventually[2:2] holds(loss <= 4, for=3)", run, Truth::kFalse);
  ExpectTruth("eventually[1:1] holds(loss < 9, for=3)", run, Truth::kFalse);
}

TEST(Events, AnyTimeOrAtAStep) {
  TestRun run = TestRun(10).With("loss", {1, 1, 1, 1, 1, 1, 1, 1, 1, 1});
  run.Happened("fired", 4, {{"id", "hot_lr"}, {"fault", "recipe.high_lr"}})
      .Happened("sample_rejected", 6, {{"sample", 17}, {"why", "not finite"}, {"samples", {3, 17}}})
      .Happened("exited", -1, {{"rank", 1}, {"signal", 9}}, 1)
      .Happened("stalled", 99, {{"waiting_rank", 0}}, -1);
  ExpectTruth("fired(hot_lr)", run, Truth::kTrue);
  ExpectTruth("fired", run, Truth::kTrue);
  ExpectTruth("fired(bad_sample)", run, Truth::kFalse);
  ExpectTruth("eventually[4:4] fired(\"recipe.high_lr\")", run, Truth::kTrue);
  ExpectTruth("event(sample_rejected, sample=17, why=\"not finite\")", run, Truth::kTrue);
  ExpectTruth("event(sample_rejected, sample <= 17)", run, Truth::kTrue);
  ExpectTruth("event(sample_rejected, sample<17)", run, Truth::kFalse);
  ExpectTruth("event(sample_rejected, sample>=17, sample<18)", run, Truth::kTrue);
  ExpectTruth("event(sample_rejected, sample>17)", run, Truth::kFalse);
  ExpectTruth("event(sample_rejected, why<3)", run, Truth::kFalse);  // no number
  ExpectTruth("sample_rejected(samples=3)", run, Truth::kTrue);
  ExpectTruth("sample_rejected(sample=18)", run, Truth::kFalse);
  ExpectTruth("exited(rank=1, signal=9)", run, Truth::kTrue);
  ExpectTruth("eventually[:0] exited(rank=1)", run, Truth::kTrue);   // before any step: step 0
  ExpectTruth("at_end stalled(waiting_rank=0)", run, Truth::kTrue);  // after all steps: the last
  ExpectTruth("fired(hot_lr) precedes[2:2] sample_rejected", run, Truth::kTrue);
  ExpectMargin(Read("eventually[:9] fired(hot_lr)", run), Unit::kStep, 5);
  run.Unfinished();
  ExpectTruth("fired(bad_sample)", run, Truth::kUnknown);
  ExpectTruth("never fired(bad_sample)", run, Truth::kUnknown);
  ExpectTruth("fired(hot_lr)", run, Truth::kTrue);
}

TEST(Arms, KnowWhetherAnotherSeedCanStandForThem) {
  const auto needs = [](const std::string& text, const std::string& arm = "control") {
    return Formula::Parse(text).formula->needs_same_seed(arm, testing::TestTarget());
  };
  EXPECT_TRUE(needs("always loss < 2 * control.loss"));
  EXPECT_TRUE(needs("eventually distance(loss) > 0.1"));
  EXPECT_TRUE(needs("last(param_digest[:]) != control.last(param_digest[:])"));
  EXPECT_FALSE(needs("last(loss[:]) > 2 * control.last(loss[:])"));
  EXPECT_FALSE(needs("grad_norm[0] < 0.3 * control.grad_norm[0]"));
  EXPECT_FALSE(needs("last(param_digest[:]) != reference.last(param_digest[:])"));
  EXPECT_TRUE(needs("last(param_digest[:]) != reference.last(param_digest[:])", "reference"));
  EXPECT_FALSE(needs("always loss < 2"));
}

TEST(Arms, AreReadFromTheOtherRuns) {
  const TestRun self = TestRun(2).With("loss", {4, 4});
  const TestRun control = TestRun(2).With("loss", {2, 2});
  const std::map<std::string, const RunTrace*> arms = {{"control", &control.trace()}};
  ExpectMargin(Read("mean(loss[:]) <= 1 * control.mean(loss[:])", self.trace(), arms),
               Unit::kOctave, -1);
  ExpectMargin(Read("always loss > control.loss", self.trace(), arms), Unit::kOctave, 1);
  EXPECT_EQ(Read("always loss > reference.loss", self.trace(), arms).truth, Truth::kUnknown);
  EXPECT_EQ(Read("reference.fired(x)", self.trace(), arms).truth, Truth::kUnknown);
}

TEST(Ranks, AtAllAnySpread) {
  const TestRun run =
      TestRun(2, 3).With("loss", {1, 2}, 0).With("loss", {1, 4}, 1).With("loss", {1, 8}, 2);
  ExpectTruth("at_end loss == 2", run, Truth::kTrue);
  ExpectTruth("loss@2[1] == 8", run, Truth::kTrue);
  ExpectMargin(Read("all_ranks(at_end loss < 4)", run), Unit::kOctave, -1);
  ExpectMargin(Read("any_rank(at_end loss < 4)", run), Unit::kOctave, 1);
  ExpectMargin(Read("at_end all_ranks(loss < 16)", run), Unit::kOctave, 1);
  ExpectMargin(Read("at_end spread(loss) < 7", run), Unit::kPlain, 1);
  ExpectTruth("eventually[:0] spread(loss) <= 0", run, Truth::kTrue);
}

TEST(Ranks, EventsInsideAreOfTheRank) {
  TestRun run(2, 2);
  run.With("loss", {1, 1}, 0).With("loss", {1, 1}, 1);
  run.Happened("exited", 1, {{"signal", 9}}, 1);
  ExpectTruth("exited", run, Truth::kTrue);
  ExpectTruth("any_rank(exited(signal=9))", run, Truth::kTrue);
  ExpectTruth("all_ranks(exited)", run, Truth::kFalse);
  ExpectTruth("all_ranks(never exited)", run, Truth::kFalse);
}

TEST(Modules, GlobsHoldForAllUnlessAny) {
  const TestRun run = TestRun(2)
                          .With("updated{head.weight}", {0, 0})
                          .With("updated{head.bias}", {0, 3})
                          .With("update_norm{a}", {1, 1})
                          .With("update_norm{b}", {8, 8})
                          .With("param_norm{a}", {4, 4})
                          .With("param_norm{b}", {16, 16});
  ExpectTruth("always updated{head.*} == 0", run, Truth::kFalse);
  ExpectTruth("always updated{head.weight} == 0", run, Truth::kTrue);
  ExpectTruth("always any_module(updated{head.*} == 0)", run, Truth::kTrue);
  ExpectTruth("eventually any_module(updated{head.*} > 2)", run, Truth::kTrue);
  ExpectTruth("any_module(eventually updated{head.*} > 2)", run, Truth::kTrue);
  ExpectTruth("eventually updated{head.*} > 2", run, Truth::kFalse);
  ExpectTruth("always updated{body.*} == 0", run, Truth::kUnknown);
  // The same pattern twice is the same module twice.
  ExpectMargin(Read("always update_norm{*} <= 1 * param_norm{*}", run), Unit::kOctave, 1);
  ExpectMargin(Read("always any_module(update_norm{*} <= 1 * param_norm{*})", run), Unit::kOctave,
               2);
}

TEST(Seconds, WindowsOverTheRunCountFromItsStart) {
  TestRun run = TestRun(4).With("loss", {1, 9, 1, 1}).Times({1, 2.5, 4, 8});
  run.Happened("stalled", 3, {}, -1, 6.5).Happened("fired", 0, {{"id", "x"}}, 0, 3);
  ExpectMargin(Read("eventually[:4s] loss > 5", run), Unit::kSecond, 1.5);
  ExpectMargin(Read("eventually[:2s] loss > 5", run), Unit::kSecond, -0.5);
  ExpectTruth("always[3s:7s] loss < 5", run, Truth::kTrue);
  ExpectTruth("always[5s:6s] loss < 5", run, Truth::kUnknown);  // no step in there
  ExpectMargin(Read("eventually[:7s] stalled", run), Unit::kSecond, 0.5);
  ExpectTruth("never[:6s] stalled", run, Truth::kTrue);
  ExpectTruth("never[:7s] stalled", run, Truth::kFalse);
  ExpectMargin(Read("fired(x) precedes[:5s] stalled", run), Unit::kSecond, 1.5);
  ExpectTruth("fired(x) precedes[:3s] stalled", run, Truth::kFalse);
  ExpectTruth("eventually (loss > 5 and eventually[1s:2s] loss < 5)", run, Truth::kTrue);
  ExpectTruth("eventually (loss > 5 and eventually[0.1s:1s] loss < 5)", run, Truth::kUnknown);
}

TEST(Seconds, StepsWithoutATimeMayBeAnywhereLater) {
  const TestRun died = TestRun(6).With("loss", {1, 1, 1}).Times({1, 2, 3});
  ExpectTruth("always[:2.5s] loss < 5", died, Truth::kTrue);  // the missing steps came after 3 s
  ExpectTruth("always[:4s] loss < 5", died, Truth::kUnknown);
  ExpectTruth("eventually[:4s] loss > 5", died, Truth::kUnknown);
  EXPECT_EQ(Hi(Read("eventually[:4s] loss > 5", died), Unit::kSecond), 1);
  // The same around an inner window; and a step whose time is not known has none.
  ExpectTruth("eventually[:0] always[:1.5s] loss < 5", died, Truth::kTrue);
  ExpectTruth("eventually[2:2] always[:1.5s] loss < 5", died, Truth::kUnknown);
  ExpectTruth("eventually[4:4] eventually[:1s] loss < 5", died, Truth::kUnknown);
  TestRun hole = TestRun(4).With("loss", {1, 9, 1, 1}).Times({1, kMissing, 3, 4});
  ExpectTruth("eventually[:0] eventually[:1s] loss > 5", hole, Truth::kUnknown);
  ExpectTruth("eventually[:1s] loss > 5", hole, Truth::kUnknown);
  ExpectTruth("eventually[:4s] loss < 5", hole, Truth::kTrue);
  hole.Unfinished();
  ExpectTruth("fired precedes[:1s] loss < 5", hole, Truth::kUnknown);
}

TEST(Unfinished, HasIntervalsAsTightAsWhatWasSeen) {
  const TestRun run = TestRun(10).With("lr", {1, 5, 2}).Unfinished();
  Reading reading = Read("max(lr[:]) < 9", run);
  EXPECT_EQ(reading.truth, Truth::kUnknown);
  EXPECT_EQ(Hi(reading, Unit::kPlain), 4);
  EXPECT_EQ(Lo(reading, Unit::kPlain), -kInf);
  ExpectTruth("max(lr[:]) < 4", run, Truth::kFalse);
  ExpectTruth("eventually lr > 4", run, Truth::kTrue);
  ExpectMargin(Read("eventually[:6] lr > 4", run), Unit::kStep, 5);
  reading = Read("eventually[:6] lr > 6", run);
  EXPECT_EQ(Hi(reading, Unit::kStep), 3);  // at step 3 at the earliest
  EXPECT_EQ(Lo(reading, Unit::kPlain), -1);
  ExpectTruth("always[:2] lr < 6", run, Truth::kTrue);
  ExpectTruth("count(lr[:]) >= 3", run, Truth::kTrue);
  ExpectTruth("count(lr[:]) >= 4", run, Truth::kUnknown);
  // A hole before the last step will not be filled any more.
  const TestRun hole = TestRun(10).With("lr", {1, kMissing, 2, 3}).Unfinished();
  ExpectTruth("count(lr[:]) <= 9", hole, Truth::kTrue);
  ExpectTruth("count(lr[:]) <= 8", hole, Truth::kUnknown);
}

TEST(Readings, SayWhatWasSeen) {
  TestRun run = TestRun(6).With("loss", {4, 4, 8, kNan, 2, 2}).With("lr", {1, 1, 1, 1, 1, 2});
  run.Happened("fired", 2, {{"id", "hot_lr"}});
  Reading reading = Read("eventually nonfinite(loss)", run);
  EXPECT_EQ(reading.step, 3);
  EXPECT_EQ(reading.seen, "loss = nan at step 3");
  EXPECT_EQ(reading.main_unit, Unit::kStep);
  reading = Read("mean(lr[:2]) < 0.8 * mean(lr[-2:])", run);
  EXPECT_EQ(reading.seen, "mean(lr[:2]) = 1, 0.8 * mean(lr[-2:]) = 1.2");
  reading = Read("always[:2] loss < 5", run);
  EXPECT_EQ(reading.step, 2);
  EXPECT_EQ(reading.seen, "loss = 8 at step 2");
  reading = Read("always[:2] loss < 9", run);  // closest there
  EXPECT_EQ(reading.seen, "loss = 8 at step 2");
  EXPECT_EQ(Read("fired(hot_lr)", run).seen, "fired(\"hot_lr\") at step 2 on rank 0");
  EXPECT_EQ(Read("eventually[:1] nonfinite(loss)", run).seen,
            "nonfinite(loss) at none of steps 0 to 1; first at step 3");
  EXPECT_EQ(Read("loss > 6 precedes nonfinite(loss)", run).seen,
            "nonfinite(loss) first at step 3 (loss = nan); loss > 6 at step 2 (loss = 8)");
}

TEST(Questions, AboutAFormula) {
  const auto parsed = Formula::Parse(
      "always[1:] updated{head.*} == 0 and control.mean(update_norm{head.*}[:5]) > 0 and "
      "(fired(x) implies not exited(rank=1)) and spread(loss[0]) == 0");
  ASSERT_TRUE(parsed.formula);
  EXPECT_EQ(parsed.formula->signals(),
            (std::vector<std::string>{"loss", "update_norm{head.*}", "updated{head.*}"}));
  EXPECT_EQ(parsed.formula->arms(), (std::set<std::string>{"control"}));
  EXPECT_EQ(parsed.formula->events(), (std::set<std::string>{"exited", "fired"}));
  EXPECT_TRUE(parsed.formula->mentions_ending());
  EXPECT_FALSE(Formula::Parse("fired(x)").formula->mentions_ending());
}

TEST(Amounts, Parse) {
  EXPECT_EQ(ParseAmount("10 steps")->value, 10);
  EXPECT_EQ(ParseAmount("10 steps")->unit, Unit::kStep);
  EXPECT_EQ(ParseAmount("1 octave")->unit, Unit::kOctave);
  EXPECT_EQ(ParseAmount("0.2")->unit, Unit::kPlain);
  EXPECT_EQ(ParseAmount(" 3 s ")->unit, Unit::kSecond);
  EXPECT_EQ(ParseAmount("3s")->value, 3);
  for (const char* bad : {"", "steps", "1 stop", "nan", "inf", "1 step s", "--1"}) {
    EXPECT_FALSE(ParseAmount(bad)) << bad;
  }
}

}  // namespace formula_test
}  // namespace trainwreck::formula
