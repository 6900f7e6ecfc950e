#include "harness/launch/trace_bits.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace trainwreck {
namespace trace_bits_test {

RunTrace TraceOf(int steps, int ranks = 1) {
  RunTrace trace;
  trace.world_size = ranks;
  for (int rank = 0; rank < ranks; ++rank) {
    for (int step = 0; step < steps; ++step) {
      trace.series[{"loss", rank}].Set(step, 4.0 / (step + 1 + rank));
      if (step % 8 == 0) trace.series[{"grad_norm{head}", rank}].Set(step, 0.1 * step);
      trace.time_s[rank].Set(step, 0.001 * step);
    }
  }
  return trace;
}

TEST(TraceBits, AreEqualWhereTheSignalsAre) {
  for (int steps : {1, 20, 63, 64, 65, 1000}) {
    const auto compared = CompareBits(BitsOf(TraceOf(steps), true), BitsOf(TraceOf(steps), true));
    ASSERT_TRUE(compared);
    EXPECT_TRUE(compared->same());
    EXPECT_EQ(compared->steps, steps);
    EXPECT_LE(BitsOf(TraceOf(steps), true).marks.size(), 64U * 8);
  }
  EXPECT_FALSE(CompareBits(TraceBits{}, BitsOf(TraceOf(20), true)));
}

// One bit of one value of any signal, rank and step is found, and its step is named.
TEST(TraceBits, FindTheSmallestDifferenceAndItsStep) {
  for (int steps : {30, 65, 301}) {
    for (int step = 0; step < steps; step += 7) {
      RunTrace other = TraceOf(steps, 2);
      double& value = other.series[{"loss", 1}].values[step];
      value = std::nextafter(value, 9);
      const auto compared = CompareBits(BitsOf(TraceOf(steps, 2), true), BitsOf(other, true));
      ASSERT_TRUE(compared);
      EXPECT_LE(compared->first, step) << steps;
      EXPECT_GE(compared->last, step) << steps;
      if (steps <= 64) {
        EXPECT_EQ(compared->first, step);
      }
    }
  }
}

TEST(TraceBits, LeaveOutTimeAndMemoryAndThePayloadOfNan) {
  RunTrace a = TraceOf(20), b = TraceOf(20);
  b.series[{"time", 0}].Set(3, 1);
  b.series[{"backward_s", 0}].Set(3, 1);
  b.series[{"mfu", 0}].Set(3, 1);
  b.series[{"memory_peak{head}", 0}].Set(3, 1);
  a.series[{"loss", 0}].values[5] = std::numeric_limits<double>::quiet_NaN();
  b.series[{"loss", 0}].values[5] = -std::nan("7");
  EXPECT_EQ(BitsOf(a, true), BitsOf(b, true));
  b.series[{"loss", 0}].values[6] = 0.0;
  a.series[{"loss", 0}].values[6] = -0.0;
  EXPECT_NE(BitsOf(a, true), BitsOf(b, true));
}

TEST(TraceBits, OfRunsThatWereStoppedCountAsFarAsBothWent) {
  const TraceBits whole = BitsOf(TraceOf(300), true);
  for (int steps : {10, 33, 150, 299}) {
    const auto compared = CompareBits(BitsOf(TraceOf(steps), false), whole);
    ASSERT_TRUE(compared) << steps;
    EXPECT_TRUE(compared->same()) << steps;
    EXPECT_LE(compared->steps, steps);
    EXPECT_GT(compared->steps, steps - 8) << steps;
  }
  // A difference beyond the stop is none, one before it is.
  RunTrace early = TraceOf(300), late = TraceOf(300);
  early.series[{"loss", 0}].values[5] = 7;
  late.series[{"loss", 0}].values[200] = 7;
  const TraceBits stopped = BitsOf(TraceOf(150), false);
  EXPECT_FALSE(CompareBits(stopped, BitsOf(early, true))->same());
  EXPECT_TRUE(CompareBits(stopped, BitsOf(late, true))->same());
}

// How far the other ranks were when one was killed is chance.
TEST(TraceBits, OfAKilledRunAreThoseOfTheStepsThatAllRanksHave) {
  RunTrace a = TraceOf(12, 2), b = TraceOf(12, 2);
  for (auto& [key, series] : b.series) {
    if (key.second != 1 || series.values.size() <= 9) continue;
    series.values.resize(9);
    series.present.resize(9);
  }
  b.time_s[1].values.resize(9);
  b.time_s[1].present.resize(9);
  EXPECT_EQ(BitsOf(b, false).steps, 9);
  EXPECT_TRUE(CompareBits(BitsOf(a, false), BitsOf(b, false))->same());
  EXPECT_FALSE(CompareBits(BitsOf(a, true), BitsOf(b, true))->same());
}

TEST(TraceBits, OtherSignalsAreToldFromOtherValues) {
  RunTrace more = TraceOf(20);
  more.series[{"loss_ema", 0}].Set(3, 1);
  const auto compared = CompareBits(BitsOf(TraceOf(20), true), BitsOf(more, true));
  EXPECT_FALSE(compared->same());
  EXPECT_FALSE(compared->same_signals);
}

TEST(TraceBits, TellWhichRankHadAValueAndWhetherThereWasOne) {
  RunTrace a = TraceOf(20, 2), b = TraceOf(20, 2), gap = TraceOf(20, 2);
  std::swap(b.series[{"loss", 0}], b.series[{"loss", 1}]);
  EXPECT_FALSE(CompareBits(BitsOf(a, true), BitsOf(b, true))->same());
  gap.series[{"loss", 0}].present[5] = 0;
  EXPECT_FALSE(CompareBits(BitsOf(a, true), BitsOf(gap, true))->same());
}

// Marks are 8 steps apart here: what follows the last one is in the digest alone.
TEST(TraceBits, FindADifferenceBehindTheLastMark) {
  RunTrace other = TraceOf(301);
  other.series[{"loss", 0}].values[300] = 7;
  const auto compared = CompareBits(BitsOf(TraceOf(301), true), BitsOf(other, true));
  EXPECT_FALSE(compared->same());
  EXPECT_EQ(compared->last, 300);
}

TEST(TraceBits, WithoutACommonMarkNothingIsCompared) {
  EXPECT_FALSE(CompareBits(BitsOf(TraceOf(3), false), BitsOf(TraceOf(1000), true)));
}

TEST(FirstDifference, IsOfBitsAndOfWhatIsThere) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Series a{.values = {1, nan, 0.0, 4}, .present = {1, 1, 1, 1}};
  Series b = a;
  EXPECT_EQ(FirstDifference(a, b, 4), -1);
  b.values[1] = -std::nan("7");
  EXPECT_EQ(FirstDifference(a, b, 4), -1);
  b.present[3] = 0;
  EXPECT_EQ(FirstDifference(a, b, 4), 3);
  EXPECT_EQ(FirstDifference(a, b, 3), -1);
  b.values[2] = -0.0;
  EXPECT_EQ(FirstDifference(a, b, 4), 2);
}

}  // namespace trace_bits_test
}  // namespace trainwreck
