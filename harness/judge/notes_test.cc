#include "harness/judge/notes.h"

#include <gtest/gtest.h>

#include <limits>

#include "harness/judge/test_support.h"

namespace trainwreck {
namespace notes_test {

using testing::kSteps;
using testing::LearningLoss;
using testing::MakeRun;
using testing::TestTarget;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::string TextsOf(const RunResult& run, const TargetDescription& target = TestTarget()) {
  std::string texts;
  for (const Note& note : NotesOf(run, target)) {
    texts += std::to_string(note.step) + ": " + note.text + "\n";
  }
  return texts;
}

void Set(RunResult& run, const std::string& signal, const std::vector<double>& values) {
  for (int step = 0; step < static_cast<int>(values.size()); ++step) {
    run.trace.series[{signal, 0}].Set(step, values[step]);
  }
}

TEST(NotesTest, SayNothingOfARunThatLearns) {
  RunResult run = MakeRun(LearningLoss(0.5));
  Set(run, "grad_norm", LearningLoss(0.1));
  Set(run, "lr", std::vector<double>(kSteps, 0.1));          // may well be constant
  Set(run, "param_norm", std::vector<double>(kSteps, 3.0));  // so may that
  EXPECT_EQ(TextsOf(run), "");
}

TEST(NotesTest, NameALossOfExactlyZero) {
  std::vector<double> loss = LearningLoss(0.5);
  loss[7] = 0;
  EXPECT_EQ(TextsOf(MakeRun(loss)), "7: loss is exactly 0\n");
}

TEST(NotesTest, NameASignalThatIsFrozenBitForBit) {
  std::vector<double> loss = LearningLoss(0.5);
  for (int step = 8; step < 18; ++step) loss[step] = 1.5;
  EXPECT_EQ(TextsOf(MakeRun(loss)), "8: loss is frozen bit for bit at 1.5, 10 samples in a row\n");
  loss[12] = std::nextafter(1.5, 2.0);
  EXPECT_EQ(TextsOf(MakeRun(loss)), "");
  RunResult run = MakeRun(LearningLoss(0.5));
  Set(run, "grad_norm", std::vector<double>(kSteps, 0.0));
  EXPECT_EQ(TextsOf(run), "0: grad_norm is frozen bit for bit at 0, 20 samples in a row\n");
  run.trace.series[{"grad_zero_share", 0}] = run.trace.series[{"grad_norm", 0}];
  run.trace.series.erase({"grad_norm", 0});
  EXPECT_EQ(TextsOf(run), "") << "no element of a healthy gradient is 0";
}

TEST(NotesTest, NameANanBesideAFiniteSignal) {
  RunResult run = MakeRun(LearningLoss(0.5));
  std::vector<double> norm = LearningLoss(0.1);
  norm[5] = kNan;
  Set(run, "grad_norm", norm);
  EXPECT_NE(TextsOf(run).find("5: grad_norm is nan while loss is finite ("), std::string::npos);
  norm[5] = std::numeric_limits<double>::infinity();  // a scaler skips such a step
  RunResult overflow = MakeRun(LearningLoss(0.5));
  Set(overflow, "grad_norm", norm);
  EXPECT_EQ(TextsOf(overflow), "");
}

TEST(NotesTest, NameAnExitOfZeroAfterNan) {
  RunResult run = MakeRun(testing::ExplodingLoss(5));
  EXPECT_EQ(TextsOf(run), "5: ended with exit code 0, though loss is nan to the end\n");
  run.end = RunEnd::kFailed;
  EXPECT_EQ(TextsOf(run), "");
  std::vector<double> loss = LearningLoss(0.5);
  loss[5] = kNan;  // it recovered
  EXPECT_EQ(TextsOf(MakeRun(loss)), "");
}

TEST(NotesTest, NameALossBelowItsFloor) {
  TargetDescription target = TestTarget();
  target.features.push_back("floor:loss=0.9");
  EXPECT_EQ(TextsOf(MakeRun(LearningLoss(0.5)), target),
            "17: loss is 0.8684, below its floor of 0.9\n");
  EXPECT_EQ(TextsOf(MakeRun(LearningLoss(0.95)), target), "");
}

TEST(NotesTest, NameSkippedAndRepeatedSteps) {
  RunResult run = MakeRun({});
  for (int step = 0; step < kSteps; ++step) {
    if (step != 9) run.trace.series[{"loss", 0}].Set(step, 4 - 0.1 * step);
  }
  EXPECT_EQ(TextsOf(run), "10: step numbers are skipped: 10 follows 8\n");
  RunResult every_third = MakeRun({});  // as its program logs
  for (int step = 0; step < kSteps; step += 3) {
    every_third.trace.series[{"loss", 0}].Set(step, 4 - 0.1 * step);
  }
  EXPECT_EQ(TextsOf(every_third), "");
  RunResult twice = MakeRun(LearningLoss(0.5));
  twice.trace.events.push_back({.name = "repeated_step", .step = 6, .rank = 0});
  EXPECT_EQ(TextsOf(twice), "6: step numbers are repeated: step 6 came again in one attempt\n");
}

TEST(NotesTest, NameAnArmThatWasLeftOut) {
  testing::Bench bench;
  bench.scenario().left_out = {{ArmKind::kRemedy, "clip", "clip_norm"}};
  const Verdict verdict = bench.Judged();
  EXPECT_EQ(verdict.verdict, VerdictKind::kPass);
  ASSERT_FALSE(verdict.notes.empty());
  EXPECT_EQ(verdict.notes[0].arm, "clip");
  EXPECT_EQ(verdict.notes[0].kind, ArmKind::kRemedy);
  EXPECT_EQ(verdict.notes[0].seeds, 0);
  EXPECT_EQ(verdict.notes[0].text,
            "remedy left out: no key of the target has the role 'clip_norm'");
}

}  // namespace notes_test
}  // namespace trainwreck
