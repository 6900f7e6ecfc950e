#include "harness/inspect/fits.h"

#include <gtest/gtest.h>

namespace trainwreck {
namespace fits_test {

// Counts what is asked for.
using Moments = std::map<std::string, std::vector<double>>;
struct Machine {
  double (*peak)(int size);
  Moments (*moments)(int size) = nullptr;
  std::vector<int> asked = {};

  MeasurePeaks measure() {
    return [this](const std::vector<int>& sizes) -> MeasuredPeaks {
      std::vector<PeakAt> points;
      for (const int size : sizes) {
        asked.push_back(size);
        points.push_back({size, peak(size), {}, moments ? moments(size) : Moments()});
      }
      return points;
    };
  }
};

double Line(int size) { return 1000 + 10.0 * size; }
double Square(int size) { return 1000 + 10.0 * size + 0.5 * size * size; }
// The update needs more than small batches do.
double Kinked(int size) { return std::max(5000.0, 1000 + 10.0 * size); }

TEST(Fits, PredictsTheRecipeFromSmallerSizes) {
  for (auto* peak : {Line, Square}) {
    Machine machine{peak};
    const auto report = FindWhatFits(64, {}, machine.measure());
    ASSERT_TRUE(report);
    EXPECT_EQ(machine.asked, std::vector<int>({4, 8, 16, 32}));
    EXPECT_NEAR(report->predicted, peak(64), 1e-6);
    EXPECT_NEAR(report->miss.value(), 0, 1e-9);
    EXPECT_FALSE(report->is_measured);
    EXPECT_FALSE(report->largest);
  }
  Machine small{Line};
  EXPECT_TRUE(FindWhatFits(8, {}, small.measure())->is_measured);
}

TEST(Fits, FindsTheLargestSizeAndMeasuresItAndTheNext) {
  Machine machine{Square};
  const auto report = FindWhatFits(8, {.budget = Square(700) + 1}, machine.measure());
  ASSERT_TRUE(report && report->largest);
  EXPECT_EQ(*report->largest, 700);
  EXPECT_EQ(machine.asked, std::vector<int>({1, 2, 4, 8, 700, 701}));
  EXPECT_DOUBLE_EQ(report->fits->peak, Square(700));
  EXPECT_DOUBLE_EQ(report->exceeds->peak, Square(701));
}

TEST(Fits, LearnsFromAMeasuredPeakThatContradicts) {
  Machine machine{Kinked};
  const auto report = FindWhatFits(8, {.budget = 9000.5}, machine.measure());
  ASSERT_TRUE(report && report->largest);
  EXPECT_EQ(*report->largest, 800);
  EXPECT_LE(machine.asked.size(), 4u + 2 * 12);
  EXPECT_EQ(FindWhatFits(8, {.budget = 500}, machine.measure())->largest, 0);
}

TEST(Fits, TheVerifiedPeakIsThatOfTheRecipe) {
  Machine machine{Kinked};
  const auto report = FindWhatFits(4096, {.verify = true}, machine.measure());
  EXPECT_DOUBLE_EQ(report->verified.value(), Kinked(4096));
  EXPECT_FALSE(FindWhatFits(8, {}, [](const auto&) { return MeasuredPeaks(); }));
}

// The peak changes its stage between half the recipe's size and its size, or its moment in a stage.
TEST(Fits, EachMomentHasItsOwnParabola) {
  const auto by_stage = [](int size) {
    return Moments{{"update", {5000.0}}, {"backward", {Line(size)}}};
  };
  const auto in_one = [](int size) { return Moments{{"backward", {10, 5000, Line(size), 20}}}; };
  for (Moments (*moments)(int) : {+by_stage, +in_one}) {
    Machine machine{Kinked, moments};
    EXPECT_NEAR(FindWhatFits(640, {}, machine.measure())->predicted, Kinked(640), 1e-6);
    EXPECT_EQ(machine.asked.size(), 4u) << "and none of them is a surprise";
    const auto report = FindWhatFits(640, {}, machine.measure());
    EXPECT_EQ(ToJson(*report)["points"][0]["by_stage"]["backward"],
              moments == +in_one ? 5000 : Line(40));
  }
  Machine one_for_all{Kinked};
  EXPECT_LT(FindWhatFits(640, {}, one_for_all.measure())->predicted, 0.9 * Kinked(640));
}

// A thread gives memory back now before, now after the next allocation: as many moments, and
// others.
TEST(Fits, MomentsThatAreNotThoseOfTheOtherSizesAreNotContinued) {
  const auto moments = [](int size) {
    const double line = Line(size), low = 10;
    return Moments{{"backward", size == 16 ? std::vector<double>{low, line, 20, low}
                                           : std::vector<double>{low, 20, line, low}}};
  };
  Machine machine{Line, moments};
  EXPECT_NEAR(FindWhatFits(64, {}, machine.measure())->predicted, Line(64), 1e-6);
}

// A kernel takes scratch space from some size on: the moments of the sizes do not match.
TEST(Fits, WhereTheMomentsAreOthersTheHighestIsContinued) {
  const auto moments = [](int size) {
    Moments all = {{"backward", {10, Line(size), 20}}};
    if (size >= 16) all["backward"].push_back(30);
    return all;
  };
  Machine machine{Line, moments};
  EXPECT_NEAR(FindWhatFits(64, {}, machine.measure())->predicted, Line(64), 1e-6);
}

// The bend lies between two measured sizes.
TEST(Fits, MeasuresMoreWhereAStageBends) {
  Machine machine{Kinked};  // at 400
  for (const int own : {900, 1000, 1300}) {
    EXPECT_NEAR(FindWhatFits(own, {}, machine.measure())->predicted, Kinked(own), 1e-6) << own;
  }
}

// At small sizes the run looks for the origin of a NaN, in a pass of its own.
TEST(Fits, WhatOnlySmallSizesDidIsNotCarriedOn) {
  for (auto* peak : {+[](int size) { return Line(size) + (size <= 8 ? 3000 : 0); },
                     +[](int size) { return Line(size) + (size <= 16 ? 3000 : 0); },
                     +[](int size) { return Line(size) + (size == 16 ? 3000 : 0); }}) {
    Machine machine{peak};
    EXPECT_NEAR(FindWhatFits(64, {}, machine.measure())->predicted, Line(64), 1e-6);
  }
}

// The first time, the largest size has some memory of another stage.
TEST(Fits, WhatWasFreedLateIsMeasuredAgain) {
  int calls = 0;
  const auto report = FindWhatFits(64, {}, [&](const std::vector<int>& sizes) -> MeasuredPeaks {
    std::vector<PeakAt> points;
    ++calls;
    for (const int size : sizes) {
      const double late = calls == 1 && size == 32 ? 900 : 0;
      points.push_back(
          {size, Line(size), {}, {{"backward", {Line(size)}}, {"update", {900 + late}}}});
    }
    return points;
  });
  EXPECT_EQ(calls, 4);
  EXPECT_NEAR(report->predicted, Line(64), 1e-6);
}

TEST(Fits, ReadsAmountsOfMemory) {
  EXPECT_DOUBLE_EQ(ParseBytes("24000000"), 24e6);
  EXPECT_DOUBLE_EQ(ParseBytes("24MB"), 24e6);
  EXPECT_DOUBLE_EQ(ParseBytes("1.5GiB"), 1.5 * 1024 * 1024 * 1024);
  for (const char* text : {"", "MB", "-3", "3 parsecs", "nan"}) {
    EXPECT_THROW(ParseBytes(text), UsageError) << text;
  }
}

}  // namespace fits_test
}  // namespace trainwreck
