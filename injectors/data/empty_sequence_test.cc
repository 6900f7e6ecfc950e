#include <gtest/gtest.h>

#include <stdexcept>

#include "injectors/data/testing_data.h"
#include "injectors/testing.h"

namespace trainwreck {
namespace {

double WeightOf(const Dataset& data, std::int64_t id) {
  return data.Get(id).weight.sum().item<double>();
}

TEST(EmptySequence, MasksAllTargetsOfTheChosenSamples) {
  FaultBench bench;
  const auto fault = bench.Make("data.empty_sequence", {{"samples", {2}}});
  const auto data = static_cast<PartWrapper&>(*fault).Wrap(std::make_unique<TokenData>());
  EXPECT_EQ(data->entropy_floor(), 1.5);
  EXPECT_EQ(WeightOf(*data, 1), 3);
  EXPECT_TRUE(bench.fired().empty());
  EXPECT_EQ(WeightOf(*data, 2), 0);
  EXPECT_TRUE(data->Get(2).target.eq(2).all().item<bool>());
  EXPECT_EQ(WeightOf(*data, 3), 3) << "what the data set keeps is not touched";
  ASSERT_EQ(bench.fired().size(), 2U);
  EXPECT_EQ(bench.fired()[0], Json({{"id", "it"},
                                    {"fault", "data.empty_sequence"},
                                    {"sample", 2},
                                    {"before", 3.0},
                                    {"after", 0.0}}));
}

TEST(EmptySequence, RefusesASampleThatIsNotThere) {
  FaultBench bench;
  const auto fault = bench.Make("data.empty_sequence", {{"samples", {4}}});
  EXPECT_THROW(static_cast<PartWrapper&>(*fault).Wrap(std::make_unique<TokenData>()),
               std::runtime_error);
}

}  // namespace
}  // namespace trainwreck
