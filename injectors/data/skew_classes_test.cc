#include <gtest/gtest.h>

#include <set>
#include <stdexcept>

#include "injectors/data/testing_data.h"
#include "injectors/testing.h"

namespace trainwreck {
namespace {

constexpr std::int64_t kSamples = 100;

TEST(SkewClasses, GivesTheMajorityItsShare) {
  FaultBench bench;
  const auto skew = bench.Make("data.skew_classes", {{"majority", 3}, {"share", 0.8}});
  const auto data = Wrapped<LabelledData>(*skew);
  int most = 0;
  std::set<std::int64_t> others;
  for (std::int64_t id = 0; id < kSamples; ++id) {
    const Sample sample = data->Get(id);
    EXPECT_EQ(sample.id, id);
    EXPECT_EQ(Label(sample), sample.input.item<std::int64_t>() % 10) << "input and label stay one";
    if (Label(sample) == 3) {
      ++most;
    } else {
      others.insert(Label(sample));
    }
  }
  EXPECT_NEAR(most, 80, 15);
  EXPECT_GT(others.size(), 4U);
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_EQ(bench.fired()[0]["before"], 0.1);
  EXPECT_EQ(bench.fired()[0]["after"], most / 100.0);
}

TEST(SkewClasses, RefusesTokensAndLabelsThatDoNotOccur) {
  FaultBench bench;
  const auto skew = bench.Make("data.skew_classes", {{"majority", 10}});
  EXPECT_THROW(Wrapped<LabelledData>(*skew), std::runtime_error);
  const auto plain = bench.Make("data.skew_classes");
  EXPECT_THROW(Wrapped<SequenceData>(*plain), std::runtime_error);
}

}  // namespace
}  // namespace trainwreck
