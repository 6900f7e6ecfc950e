#include "harness/picture/curve.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace trainwreck {
namespace curve_test {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

Series SeriesOf(const std::vector<double>& values) {
  Series series;
  for (std::size_t i = 0; i < values.size(); ++i) series.Set(static_cast<int>(i), values[i]);
  return series;
}

bool Has(const Curve& curve, int step, double value) {
  for (std::size_t i = 0; i < curve.steps.size(); ++i) {
    const bool is_same = std::isnan(value) ? std::isnan(curve.values[i]) : curve.values[i] == value;
    if (curve.steps[i] == step && is_same) return true;
  }
  return false;
}

TEST(CurveTest, ShortSeriesStayAsTheyAre) {
  const Curve curve = Thinned(SeriesOf({3, 1, 2}), 10);
  EXPECT_EQ(curve.steps, (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(curve.values, (std::vector<double>{3, 1, 2}));
}

TEST(CurveTest, AConstantHasTwoPointsAndAStepKeepsItsEdge) {
  std::vector<double> values(1000, 7.0);
  EXPECT_EQ(Thinned(SeriesOf(values), 10).steps, (std::vector<int>{0, 999}));
  std::fill(values.begin() + 400, values.end(), 8.0);
  EXPECT_EQ(Thinned(SeriesOf(values), 10).steps, (std::vector<int>{0, 399, 400, 999}));
}

TEST(CurveTest, ExtremesAndTheFirstLostValueStayInAnySeries) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    std::vector<double> values(50 + random() % 3000);
    for (double& value : values) value = normal(random);
    const int lost = static_cast<int>(random() % values.size());
    values[lost] = random() % 2 == 0 ? kNan : kInf;
    double least = kInf, most = -kInf;
    for (double value : values) {
      if (!std::isfinite(value)) continue;
      least = std::min(least, value);
      most = std::max(most, value);
    }
    const int points = 8 + static_cast<int>(random() % 60);
    const Curve curve = Thinned(SeriesOf(values), points);
    const auto at = [&](double value) {
      return static_cast<int>(std::find(values.begin(), values.end(), value) - values.begin());
    };
    EXPECT_TRUE(Has(curve, at(least), least)) << seed;
    EXPECT_TRUE(Has(curve, at(most), most)) << seed;
    EXPECT_TRUE(Has(curve, lost, values[lost])) << seed;
    EXPECT_TRUE(Has(curve, 0, values[0])) << seed;
    EXPECT_LE(curve.steps.size(), static_cast<std::size_t>(points) + 2) << seed;
    EXPECT_TRUE(std::is_sorted(curve.steps.begin(), curve.steps.end())) << seed;
    for (std::size_t i = 0; i < curve.steps.size(); ++i) {
      EXPECT_TRUE(Has(curve, curve.steps[i], values[curve.steps[i]])) << "no sample of the series";
    }
  }
}

TEST(CurveTest, StepsWithoutASampleAreNoPoints) {
  Series series;
  series.Set(3, 1.5);
  series.Set(9, kNan);
  series.Set(10, -kInf);
  EXPECT_EQ(ToJson(Thinned(series, 10)).dump(), R"([3,[6,1],[1.5,"nan","-inf"]])");
}

TEST(CurveTest, TextsAreShort) {
  EXPECT_EQ(ToJson(Thinned(SeriesOf({2.25, 1.0 / 3, 123456789, 2}), 10)).dump(),
            "[0,[],[2.25,0.33333,123456789,2]]");
  EXPECT_EQ(ToJson({}).dump(), "[0,[],[]]");
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    std::lognormal_distribution<double> wide(0, 6);
    std::vector<double> values(100);
    for (double& value : values) value = wide(random);
    const Curve curve = Thinned(SeriesOf(values), 40);
    EXPECT_LE(ToJson(curve).dump().size(), 1.4 * static_cast<double>(BytesOf(curve))) << seed;
  }
}

}  // namespace curve_test
}  // namespace trainwreck
