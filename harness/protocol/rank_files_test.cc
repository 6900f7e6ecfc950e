#include "harness/protocol/rank_files.h"

#include <gtest/gtest.h>

#include <fstream>

namespace trainwreck {
namespace rank_files_test {

TEST(NcclLog, FindsTheLastWarning) {
  const std::string path = testing::TempDir() + "/nccl.log";
  EXPECT_EQ(LastNcclWarning(path), "");
  std::ofstream(path) << "host:7:9 [0] NCCL INFO Bootstrap: using lo\n"
                         "host:7:9 [0] init.cc:12 NCCL WARN Duplicate GPU detected\n"
                         "host:7:9 [0] socket.cc:3 NCCL WARN socket: connection refused\n"
                         "host:7:9 [0] NCCL INFO abort\n";
  EXPECT_EQ(LastNcclWarning(path), "NCCL WARN socket: connection refused");
}

}  // namespace rank_files_test
}  // namespace trainwreck
