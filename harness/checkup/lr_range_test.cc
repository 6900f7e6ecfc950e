// The grid of rates and how it grows, without runs; then runs of the fake target at three rates.
#include "harness/checkup/lr_range.h"

#include <gtest/gtest.h>

#include <cmath>

#include "harness/session/fake_suite.h"

namespace trainwreck {
namespace lr_range_test {

RatePoint At(double rate, double end) { return {rate, 4, end, std::isinf(end)}; }

// Learns from 0.1 on and diverges from `limit` on.
std::vector<RatePoint> Learning(const std::vector<double>& rates, double limit) {
  std::vector<RatePoint> points;
  for (double rate : rates) {
    points.push_back(At(rate, rate >= limit ? INFINITY : rate >= 0.1 ? 0.1 : 4));
  }
  return points;
}

TEST(LrRange, TheGridIsEvenAndEndsWhereItIsToldTo) {
  const std::vector<double> own = RatesOf({.own = 1, .rates = 6});
  ASSERT_EQ(own.size(), 6u);
  EXPECT_NEAR(own.front(), 0.001, 1e-12);
  EXPECT_NEAR(own.back(), 100, 1e-9);
  EXPECT_NEAR(own[1] / own[0], 10, 1e-9);
  const std::vector<double> given = RatesOf({.own = 1, .from = 2, .to = 8, .rates = 3});
  EXPECT_NEAR(given[1], 4, 1e-9);
  EXPECT_THROW(RatesOf({.own = 1, .from = 8, .to = 2}), UsageError);
  EXPECT_THROW(RatesOf({.own = 0}), UsageError);
}

TEST(LrRange, EndsThatWereNotGivenMoveUntilTheRangeEndsInTheGrid) {
  std::vector<std::vector<double>> asked;
  const auto measure = [&](const std::vector<double>& rates) -> MeasuredRates {
    asked.push_back(rates);
    return Learning(rates, 5000);
  };
  const auto points = MeasureRange({.own = 1, .rates = 6}, measure);
  ASSERT_TRUE(points);
  ASSERT_EQ(asked.size(), 2u) << "the grid to 100 learns to its end, that to 10,000 does not";
  EXPECT_NEAR(asked[1].back(), 10000, 1e-6);
  EXPECT_EQ(points->size(), asked[0].size() + asked[1].size());
  EXPECT_TRUE(std::is_sorted(points->begin(), points->end(),
                             [](const auto& a, const auto& b) { return a.rate < b.rate; }));
  // Downwards, as all of the grid diverges.
  asked.clear();
  MeasureRange({.own = 1e6, .rates = 6}, measure);
  ASSERT_GE(asked.size(), 2u);
  EXPECT_LT(asked[1].back(), asked[0].front());
}

TEST(LrRange, GivenEndsStayAndAnInterruptionIsNoResult) {
  int calls = 0;
  const auto measure = [&](const std::vector<double>& rates) -> MeasuredRates {
    ++calls;
    return Learning(rates, INFINITY);
  };
  EXPECT_EQ(MeasureRange({.own = 1, .from = 0.2, .to = 2, .rates = 4}, measure)->size(), 4u);
  EXPECT_EQ(calls, 1);
  EXPECT_FALSE(MeasureRange({.own = 1}, [](const auto&) { return MeasuredRates(); }));
}

TEST(LrRange, RunsAreReadAtTheirEndsAndTheirRateIsJudged) {
  const testing::FakeSuite suite;
  suite.WriteSlow("slow");
  const Session session = suite.Open();
  const Chosen chosen = ChooseCases(session, {.paths = {"fake/slow"}}, {}, {});
  const Patient patient = OnePatient(chosen, "fault", 0, 2);
  EXPECT_DOUBLE_EQ(OwnRateOf(patient, session.description), 0.002);
  const auto points = RunAtRates(patient, {0.002, 0.05, 0.5}, 10, session, 2);
  ASSERT_TRUE(points);
  ASSERT_EQ(points->size(), 3u);
  // The last fifth of ten steps: steps 8 and 9.
  const auto loss = [](double rate) { return 2 * (std::exp(-8 * rate) + std::exp(-9 * rate)); };
  for (const RatePoint& point : *points) {
    EXPECT_NEAR(point.end, loss(point.rate), 1e-6) << point.rate;
    EXPECT_DOUBLE_EQ(point.start, 4);
    EXPECT_FALSE(point.diverged);
  }
  const LrRangeResult result = ConcludeRange("fake/slow", 0.002, *points, session);
  ASSERT_TRUE(result.verdict);
  EXPECT_EQ(*result.verdict, RateVerdict::kTooLow);
  EXPECT_EQ(result.advice.scenario, "") << "the suite has no scenario of that failure";
  const Json json = ToJson(result);
  EXPECT_EQ(json.at("own_rate_is"), TextOf(RateVerdict::kTooLow));
  EXPECT_EQ(json.at("points").size(), 3u);
  EXPECT_TRUE(json.at("advice").is_null());
}

TEST(LrRange, ARunThatDiesHasDiverged) {
  const testing::FakeSuite suite;
  suite.Write("dies",
              "recipe: {steps: 20, fake.mode: crashes}\n"
              "inject:\n  slow: {fault: fake.slow_descent}\n"
              "symptoms:\n  stuck: at_end loss > 1\n"
              "remedies:\n  faster: {scale: {optimizer.lr: 50}}\n");
  const Session session = suite.Open();
  const Chosen chosen = ChooseCases(session, {.paths = {"fake/dies"}}, {}, {});
  const auto points = RunAtRates(OnePatient(chosen, "control", 0, 1), {0.1, 1}, 10, session, 2);
  ASSERT_TRUE(points);
  EXPECT_TRUE(points->front().diverged && points->back().diverged);
  EXPECT_FALSE(ConcludeRange("fake/dies", 0.1, *points, session).verdict);
}

}  // namespace lr_range_test
}  // namespace trainwreck
