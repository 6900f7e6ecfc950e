#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>

#include "injectors/loss/testing_loss.h"

namespace trainwreck {
namespace {

TEST(WrongReduction, SumsOverAllTargetsOrThoseOfASequence) {
  FaultBench bench;
  Batch batch{.inputs = at::zeros({3, 5, 4}),
              .targets = at::zeros({3, 5}, at::kLong),
              .weights = at::ones({3, 5})};
  const auto loss = [&](const char* kind) {
    return LossWith(bench, "recipe.wrong_reduction", batch, LossForm::kFused, {{"kind", kind}});
  };
  EXPECT_NEAR(LossWith(bench, "", batch), std::log(4.0), 1e-6);
  EXPECT_NEAR(loss("sum"), 15 * std::log(4.0), 1e-5);
  EXPECT_NEAR(loss("sum_over_positions"), 5 * std::log(4.0), 1e-5);
  batch.weights[0].fill_(0);
  EXPECT_NEAR(loss("sum"), 10 * std::log(4.0), 1e-5) << "what does not count is not in the sum";
  ASSERT_EQ(bench.fired().size(), 3U);
  EXPECT_EQ(bench.fired()[1], Json({{"id", "it"},
                                    {"fault", "recipe.wrong_reduction"},
                                    {"modules", {"loss"}},
                                    {"before", "mean"},
                                    {"after", "sum_over_positions"}}));
  EXPECT_THROW(loss("mean"), std::runtime_error);
}

}  // namespace
}  // namespace trainwreck
