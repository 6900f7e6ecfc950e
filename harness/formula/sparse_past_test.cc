// Operators over signals that are recorded at some steps only, operators that look back, and what
// lost records leave unknown.
#include <gtest/gtest.h>

#include "harness/formula/formula.h"
#include "harness/formula/test_support.h"

namespace trainwreck::formula {
namespace sparse_past_test {

using testing::kInf;
using testing::kMissing;
using testing::kNan;
using testing::Read;
using testing::TestRun;

void ExpectTruth(const std::string& text, const TestRun& run, Truth truth) {
  EXPECT_EQ(testing::Errors(text, testing::TestVocabulary(run.trace().planned_steps)), "");
  EXPECT_EQ(static_cast<int>(Read(text, run).truth), static_cast<int>(truth)) << text;
}

void ExpectMargin(const std::string& text, const TestRun& run, Unit unit, double lo, double hi) {
  const auto margin = Read(text, run).margins[static_cast<int>(unit)];
  ASSERT_TRUE(margin) << text;
  EXPECT_EQ(margin->lo, lo) << text;
  EXPECT_EQ(margin->hi, hi) << text;
}

// 10 steps; eval_loss 8, 4, 2 at steps 2, 5 and 8.
TestRun EvaluatedRun() {
  return TestRun(10)
      .With("loss", {9, 8, 7, 6, 5, 4, 3, 2, 1, 1})
      .At("eval_loss", 2, 8)
      .At("eval_loss", 5, 4)
      .At("eval_loss", 8, 2);
}

TEST(Sparse, OperatorsReadTheSamplesThatThereAre) {
  const TestRun run = EvaluatedRun();
  ExpectTruth("always eval_loss < 9", run, Truth::kTrue);
  ExpectTruth("always eval_loss < 5", run, Truth::kFalse);
  ExpectTruth("always[3:] eval_loss < 5", run, Truth::kTrue);
  ExpectTruth("eventually eval_loss < 3", run, Truth::kTrue);
  ExpectTruth("eventually[:7] eval_loss < 3", run, Truth::kFalse);
  ExpectTruth("never eval_loss > 7", run, Truth::kFalse);
  ExpectTruth("never nonfinite(eval_loss)", run, Truth::kTrue);
  ExpectTruth("always eval_loss > loss", run, Truth::kFalse);  // 4 at step 5
  ExpectMargin("always eval_loss < 16", run, Unit::kOctave, 1, 1);
  ExpectMargin("eventually[:7] eval_loss < 2", run, Unit::kOctave, -1, -1);
  ExpectMargin("eventually[:7] eval_loss < 3", run, Unit::kStep, -1, -1);  // it came at step 8
  EXPECT_EQ(Read("always eval_loss < 5", run).step, 2);
}

TEST(Sparse, NoSampleIsUnknownNeverTrue) {
  const TestRun run = EvaluatedRun();
  for (const char* text :
       {"always[6:7] eval_loss < 9", "eventually[6:7] eval_loss < 9", "never[:1] eval_loss > 9",
        "at_end eval_loss < 9", "always[3:4] not nonfinite(eval_loss)",
        "always eventually[0:1] eval_loss < 9", "always[6:7] (loss > 2 implies eval_loss < 9)"}) {
    ExpectTruth(text, run, Truth::kUnknown);
  }
  const TestRun none = TestRun(4).With("loss", {4, 3, 2, 1});
  ExpectTruth("always eval_loss < 9", none, Truth::kUnknown);
  ExpectTruth("never nonfinite(eval_loss)", none, Truth::kUnknown);
  ExpectTruth("always (loss > 3 implies eval_loss < 9)", none, Truth::kUnknown);
  // A step that decides without a sample decides.
  ExpectTruth("always (loss < 4 and eval_loss < 9)", none, Truth::kFalse);
  ExpectTruth("eventually (loss > 3 or eval_loss < 9)", none, Truth::kTrue);
}

TEST(Sparse, ConnectivesKeepWhatIsKnownBesideIt) {
  const TestRun run = EvaluatedRun();
  // always p and q is both of them: a step without a sample does not hide the other part.
  ExpectTruth("always (loss < 9 and eval_loss < 9)", run, Truth::kFalse);
  ExpectTruth("always (loss < 10 and eval_loss < 9)", run, Truth::kTrue);
  ExpectMargin("always (loss < 16 and eval_loss < 64)", run, Unit::kOctave,
               Read("always loss < 16", run).margins[0]->lo,
               Read("always loss < 16", run).margins[0]->lo);
  ExpectTruth("always (loss < 5.5 implies eval_loss < 5)", run, Truth::kTrue);
  ExpectTruth("always (loss < 7.5 implies eval_loss < 5)", run, Truth::kFalse);
  ExpectTruth("eventually (loss < 4.5 and eval_loss < 3)", run, Truth::kTrue);
  ExpectTruth("eventually (loss > 5 and eval_loss < 3)", run, Truth::kFalse);
}

TEST(Sparse, WhatMayStillComeIsUnknown) {
  TestRun dead = TestRun(10).With("loss", {4, 3, 2, 1}).At("eval_loss", 2, 4);
  ExpectTruth("always eval_loss < 9", dead, Truth::kUnknown);  // it died at step 3 of 10
  ExpectTruth("always[:3] eval_loss < 9", dead, Truth::kTrue);
  ExpectTruth("always eval_loss < 2", dead, Truth::kFalse);
  // Its own word that it came to the end is enough.
  dead.Happened("ended", 10, {{"why", "completed"}});
  ExpectTruth("always eval_loss < 9", dead, Truth::kTrue);
  TestRun running = EvaluatedRun().Unfinished();
  ExpectTruth("always eval_loss < 9", running, Truth::kUnknown);  // step 9 may still get one
  ExpectTruth("always[:8] eval_loss < 9", running, Truth::kTrue);
  ExpectTruth("always eval_loss < 9", EvaluatedRun().At("eval_loss", 9, kNan), Truth::kUnknown);
}

TEST(Sparse, StandsOnlyWhereStepsCanBeLeftOut) {
  const Vocabulary vocabulary = testing::TestVocabulary(10);
  for (const char* text :
       {"eval_loss > 2 precedes nonfinite(loss)", "loss < 2 until eval_loss < 2",
        "eventually holds(eval_loss < 2, for=3)", "eventually holds(nonfinite(eval_loss), for=3)",
        "eventually spike(eval_loss, ratio=2, window=4)", "eval_loss < 3"}) {
    EXPECT_NE(testing::Errors(text, vocabulary), "") << text;
  }
  for (const char* text : {"(once eval_loss > 2) precedes nonfinite(loss)",
                           "eventually holds(once[:3] eval_loss < 2, for=3)"}) {
    EXPECT_EQ(testing::Errors(text, vocabulary), "") << text;
  }
}

TEST(Past, OnceAndHistoricallyLookBack) {
  const TestRun run = TestRun(6).With("lr", {1, 5, 2, 2, 2, 2}).With("loss", {1, 1, 1, 1, kNan, 1});
  ExpectTruth("at_end once lr > 4", run, Truth::kTrue);
  ExpectTruth("at_end once[:3] lr > 4", run, Truth::kFalse);
  ExpectTruth("at_end once[4:] lr > 4", run, Truth::kTrue);
  ExpectTruth("at_end historically[:3] lr < 4", run, Truth::kTrue);
  ExpectTruth("at_end historically lr < 4", run, Truth::kFalse);
  ExpectTruth("always (nonfinite(loss) implies once[1:3] lr > 4)", run, Truth::kTrue);
  ExpectTruth("always (nonfinite(loss) implies once[1:2] lr > 4)", run, Truth::kFalse);
  ExpectMargin("at_end once lr > 4", run, Unit::kPlain, 1, 1);
  ExpectMargin("at_end historically[:3] lr < 4", run, Unit::kPlain, 2, 2);
}

TEST(Past, WindowsAreCutAtTheFirstStep) {
  const TestRun run = TestRun(4).With("lr", {1, 2, 3, 4});
  ExpectTruth("always[:1] once[:3] lr < 2", run, Truth::kTrue);
  ExpectTruth("always historically[:3] lr < 5", run, Truth::kTrue);
  // Nothing is left of the window: nobody knows.
  ExpectTruth("eventually[:1] historically[2:3] lr < 5", run, Truth::kUnknown);
  ExpectTruth("eventually[:1] once[2:] lr < 5", run, Truth::kUnknown);
}

TEST(Past, OverSparseSignalsReadsTheSamplesSoFar) {
  const TestRun run = EvaluatedRun();
  ExpectTruth("always[2:] once eval_loss > 7", run, Truth::kTrue);
  ExpectTruth("always once eval_loss > 7", run, Truth::kUnknown);  // before the first sample
  ExpectTruth("at_end historically[:5] eval_loss < 5", run, Truth::kTrue);
  ExpectTruth("at_end once[:0] eval_loss < 5", run, Truth::kUnknown);
}

TEST(Past, StandsInsideAnotherOperatorAndTakesSteps) {
  const Vocabulary vocabulary = testing::TestVocabulary(10);
  EXPECT_NE(testing::Errors("once loss > 4", vocabulary).find("at_end once loss > 4"),
            std::string::npos);
  EXPECT_NE(testing::Errors("at_end once[:3s] loss > 4", vocabulary).find("window in steps"),
            std::string::npos);
  EXPECT_NE(testing::Errors("at_end once[:10] loss > 4", vocabulary), "");
  EXPECT_EQ(testing::Errors("at_end once[:9] loss > 4", vocabulary), "");
}

// A step that may still get its sample is no step with a sample: what it leaves open counts.
TEST(Sparse, AStepToComeIsNoSample) {
  TestRun run = TestRun(3).With("loss", {1, 1}).At("eval_loss", 0, 1);
  run.Unfinished();
  ExpectTruth("always[1:] nonfinite(eval_loss)", run, Truth::kUnknown);
  ExpectMargin("always[1:] nonfinite(eval_loss)", run, Unit::kStep, -1, kInf);
  ExpectTruth("eventually[:1] eval_loss < 2", run, Truth::kTrue);
}

// A trace of which lines could not be read.
TEST(Lost, WhatIsNotThereMayHaveBeen) {
  TestRun run = EvaluatedRun().At("grad_norm", 0, 1);
  run.Happened("fired", 3, {{"id", "hot_lr"}});
  const char* const depend[] = {"not exited(signal=9)",     "never sample_rejected",
                                "count(eval_loss[:]) <= 3", "always eval_loss < 9",
                                "last(eval_loss[:]) < 9",   "at_end historically eval_loss < 9",
                                "never[:5s] stalled",       "mean(eval_loss[:]) < 9"};
  const char* const stand[] = {"fired(hot_lr)", "never nonfinite(loss)",
                               "always[2:2] eval_loss < 9", "count(eval_loss[:]) >= 3"};
  for (const char* text : depend) ExpectTruth(text, run, Truth::kTrue);
  for (const char* text : stand) ExpectTruth(text, run, Truth::kTrue);
  run.trace().lost.insert(0);
  for (const char* text : depend) ExpectTruth(text, run, Truth::kUnknown);
  for (const char* text : stand) ExpectTruth(text, run, Truth::kTrue);
  ExpectTruth("always eval_loss < 5", run, Truth::kFalse);  // what was seen decides
  // Lost records of another rank: its events could count for any rank, but its signals are not
  // ours.
  run.trace().lost = {1};
  ExpectTruth("always eval_loss < 9", run, Truth::kTrue);
  ExpectTruth("not exited(signal=9)", run, Truth::kUnknown);
}

}  // namespace sparse_past_test
}  // namespace trainwreck::formula
