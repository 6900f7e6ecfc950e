#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "injectors/data/testing_data.h"
#include "injectors/testing.h"

namespace trainwreck {
namespace {

TEST(LongSequences, JoinsSamplesAtTheChosenStep) {
  FaultBench bench;
  const auto fault = bench.Make("data.long_sequences", {{"times", 3}}, {.from = 5, .to = 5});
  const auto data = static_cast<PartWrapper&>(*fault).Wrap(std::make_unique<TokenData>());
  bench.clock.step = 4;
  EXPECT_EQ(data->Get(2).input.size(0), 3);
  EXPECT_TRUE(bench.fired().empty());
  bench.clock.step = 5;
  const Sample sample = data->Get(2);
  const at::Tensor joined = at::tensor({2, 2, 2, 3, 3, 3, 0, 0, 0}, at::kLong);
  EXPECT_TRUE(sample.input.equal(joined));
  EXPECT_TRUE(sample.target.equal(joined));
  EXPECT_EQ(sample.weight.sum().item<double>(), 9);
  EXPECT_EQ(data->Get(0).input.size(0), 9);
  ASSERT_EQ(bench.fired().size(), 1U) << "once a step";
  EXPECT_EQ(bench.fired()[0], Json({{"id", "it"},
                                    {"fault", "data.long_sequences"},
                                    {"sample", 2},
                                    {"before", 3},
                                    {"after", 9}}));
  bench.clock.step = 6;
  EXPECT_EQ(data->Get(2).input.size(0), 3);
}

}  // namespace
}  // namespace trainwreck
