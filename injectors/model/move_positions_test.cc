#include <gtest/gtest.h>

#include "injectors/model/testing_rotary.h"

namespace trainwreck {
namespace {

TEST(MovePositions, CountsFromElsewhere) {
  FaultBench bench;
  auto model = std::make_shared<RotaryModel>();
  const auto move = bench.Make("model.move_positions", {{"by", 7}});
  static_cast<PartWrapper&>(*move).Wrap(std::shared_ptr<Model>(model));
  EXPECT_EQ(model->Places(), (std::vector<double>{7, 8, 9}));
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_EQ(bench.fired()[0]["after"], 7);
}

}  // namespace
}  // namespace trainwreck
