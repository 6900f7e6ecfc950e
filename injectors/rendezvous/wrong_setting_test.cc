#include <gtest/gtest.h>

#include "injectors/testing.h"

namespace trainwreck {
namespace {

GroupOptions Changed(FaultBench& bench, const std::string& what) {
  const auto injector = bench.Make("rendezvous.wrong_setting", {{"what", what}}, {.ranks = {1}});
  return static_cast<PartWrapper&>(*injector).Wrap(
      GroupOptions{.rank = 1, .world_size = 2, .address = "127.0.0.1", .port = 29500});
}

TEST(WrongSetting, ChangesOneSetting) {
  FaultBench bench(1, 2);
  EXPECT_EQ(Changed(bench, "address").address, "192.0.2.1");
  EXPECT_EQ(Changed(bench, "address").port, 29500);
  EXPECT_EQ(Changed(bench, "world_size").world_size, 3);
  EXPECT_NE(Changed(bench, "port").port, 29500);
  EXPECT_NE(Changed(bench, "blocked_port").port, 29500);
  EXPECT_EQ(bench.fired()[0]["before"], "127.0.0.1");
  EXPECT_EQ(bench.fired()[0]["after"], "192.0.2.1");
}

TEST(WrongSetting, LeavesOtherRanksAlone) {
  FaultBench bench(0, 2);
  EXPECT_EQ(Changed(bench, "address").address, "127.0.0.1");
  EXPECT_TRUE(bench.fired().empty());
}

}  // namespace
}  // namespace trainwreck
