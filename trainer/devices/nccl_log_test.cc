#include "trainer/devices/nccl_log.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace trainwreck {
namespace {

TEST(NcclLog, RanksOfOneMachineUseItsLoopback) {
  unsetenv("NCCL_SOCKET_IFNAME");
  SetUpNcclEnvironment({.address = "10.0.0.3"});
  EXPECT_EQ(getenv("NCCL_SOCKET_IFNAME"), nullptr);
  SetUpNcclEnvironment({.rendezvous_file = "/run/meet"});
  EXPECT_STREQ(getenv("NCCL_SOCKET_IFNAME"), "=lo");
}

TEST(NcclLog, WhatTheEnvironmentSaysStays) {
  setenv("NCCL_SOCKET_IFNAME", "ib0", 1);
  setenv("NCCL_DEBUG", "INFO", 1);
  unsetenv("NCCL_DEBUG_FILE");
  SetUpNcclEnvironment({.rank = 3, .rendezvous_file = "/run/meet", .dump_dir = "/run/7"});
  EXPECT_STREQ(getenv("NCCL_SOCKET_IFNAME"), "ib0");
  EXPECT_STREQ(getenv("NCCL_DEBUG"), "INFO");
  EXPECT_STREQ(getenv("NCCL_DEBUG_FILE"), "/run/7/nccl-rank3.log");
}

}  // namespace
}  // namespace trainwreck
