#include "harness/launch/nccl_log.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace trainwreck {
namespace nccl_log_test {

class NcclLogTest : public testing::Test {
 protected:
  NcclLogTest() : folder_(testing::TempDir() + "/nccl-logs-XXXXXX") {
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
    std::ofstream(plan()) << "{}";
  }
  std::string plan() const { return folder_ + "/plan.train.0.json"; }
  std::string log(int rank) const { return folder_ + "/nccl-rank" + std::to_string(rank) + ".log"; }
  void Write(int rank, const std::string& text) { std::ofstream(log(rank)) << text; }
  std::string Describe(int ranks, const std::string& said = "") const {
    return DescribeNcclLogs(folder_, ranks, plan(), said);
  }
  std::string folder_;
};

TEST_F(NcclLogTest, SaysTheLastWarningOfEachRank) {
  Write(0,
        "NCCL version 2.28.9+cuda13.0\n"
        "\n[2026-11-27 14:00:00] host:12:34 [0] misc/socket.cc:70 NCCL WARN an earlier one\n"
        "host:12:34 [0] net.cc:9 NCCL WARN Call to recv from 10.0.0.2 failed : reset by peer\n"
        "host:12:34 [0] NCCL INFO comm 0x1 - Abort COMPLETE\n");
  Write(1, "NCCL version 2.28.9+cuda13.0\n");
  Write(2, "host:13:35 [2] init.cc:1 NCCL WARN Cuda failure 2 'out of memory'");
  EXPECT_EQ(Describe(3),
            "NCCL: rank 0: NCCL WARN Call to recv from 10.0.0.2 failed : reset by peer; "
            "rank 2: NCCL WARN Cuda failure 2 'out of memory'");
}

TEST_F(NcclLogTest, IsSilentWithoutWarnings) {
  EXPECT_EQ(Describe(2), "");
  Write(0, "NCCL version 2.28.9+cuda13.0\n");
  Write(4, "NCCL WARN of a stranger\n");
  std::filesystem::create_directory(log(1));
  EXPECT_EQ(Describe(2), "");
}

TEST_F(NcclLogTest, DoesNotRepeatWhatWasSaid) {
  Write(0, "h:1:1 [0] NCCL WARN this\n");
  Write(1, "h:1:2 [1] NCCL WARN that\n");
  EXPECT_EQ(Describe(2, "rank 0 exited with code 1: all_reduce failed: NCCL WARN this"),
            "NCCL: rank 1: NCCL WARN that");
}

TEST_F(NcclLogTest, LeavesOutWhatAnEarlierAttemptSaid) {
  Write(0, "NCCL WARN of an earlier attempt\n");
  Write(1, "NCCL WARN of this one\n");
  const auto begin = std::filesystem::last_write_time(plan());
  std::filesystem::last_write_time(log(0), begin - std::chrono::seconds(1));
  std::filesystem::last_write_time(log(1), begin);
  EXPECT_EQ(Describe(2), "NCCL: rank 1: NCCL WARN of this one");
}

TEST_F(NcclLogTest, ReadsTheEndOfALongLogAndCleansIt) {
  Write(0, "NCCL WARN too far back\n" + std::string(100 << 10, 'x') + "\n");
  Write(1, std::string(100 << 10, 'x') + "\nNCCL WARN \x1b[31m" + std::string(1000, 'y') + "\n");
  const std::string said = Describe(2);
  EXPECT_EQ(said.find("too far"), std::string::npos);
  EXPECT_NE(said.find("rank 1: NCCL WARN \\x1b[31myyy"), std::string::npos) << said;
  EXPECT_LT(said.size(), 600u);
}

}  // namespace nccl_log_test
}  // namespace trainwreck
