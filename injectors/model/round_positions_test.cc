#include <gtest/gtest.h>

#include "injectors/model/testing_rotary.h"

namespace trainwreck {
namespace {

std::vector<double> Rounded(FaultBench& bench, int from) {
  auto model = std::make_shared<RotaryModel>();
  const auto round = bench.Make("model.round_positions");
  const auto move = bench.Make("model.move_positions", {{"by", from}});
  PartWrapper& wrapper = *round;
  wrapper.Wrap(std::shared_ptr<Model>(model));
  static_cast<PartWrapper&>(*move).Wrap(std::shared_ptr<Model>(model));
  wrapper.MakeHook()->OnStart();
  return model->Places();
}

TEST(RoundPositions, RoundsWhatIsMovedAfterIt) {
  FaultBench bench;
  EXPECT_EQ(Rounded(bench, 1000), (std::vector<double>{1000, 1000, 1000}));
  ASSERT_EQ(bench.fired().size(), 2U) << "one of them is that of the move";
  EXPECT_EQ(bench.fired()[1]["before"], 1002.0);
  EXPECT_EQ(bench.fired()[1]["after"], 1000.0);
}

TEST(RoundPositions, LeavesSmallOnes) {
  FaultBench bench;
  EXPECT_EQ(Rounded(bench, 0), (std::vector<double>{0, 1, 2}));
  EXPECT_TRUE(bench.fired().empty());
}

}  // namespace
}  // namespace trainwreck
