#include "harness/launch/flight_recorder.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>

namespace trainwreck {
namespace flight_recorder_test {

// Two entries as LibTorch 2.11 writes them, less what nobody reads here.
std::string Recorder(const char* state_of_last) {
  return std::string(R"({"version": "2.10", "entries": [
      {"record_id": 0, "collective_seq_id": 11, "op_id": 11, "profiling_name": "nccl:all_reduce",
       "state": "completed", "retired": true, "timeout_ms": 30000},
      {"record_id": 1, "collective_seq_id": 12, "op_id": 12, "profiling_name": "nccl:broadcast",
       "state": ")") +
         state_of_last + R"(", "retired": false, "timeout_ms": 30000}]})";
}

class FlightRecorderTest : public testing::Test {
 protected:
  FlightRecorderTest() : folder_(testing::TempDir() + "/recorders-XXXXXX") {
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
  }
  void Write(int rank, const std::string& text) {
    std::ofstream(folder_ + "/flight-recorder-rank" + std::to_string(rank) + ".json") << text;
  }
  std::string folder_;
};

TEST_F(FlightRecorderTest, SaysWhoWaitsWhereAndWhoDoesNot) {
  Write(0, Recorder("started"));
  Write(2, Recorder("completed"));
  EXPECT_EQ(DescribeFlightRecorders(folder_, 3),
            "flight recorder: rank 0 waits in nccl:broadcast #12 (started); "
            "rank 2 has finished its last call, nccl:broadcast #12");
}

TEST_F(FlightRecorderTest, IsSilentWithoutRecorders) {
  EXPECT_EQ(DescribeFlightRecorders(folder_, 4), "");
  EXPECT_EQ(DescribeFlightRecorders(folder_ + "/none", 4), "");
}

TEST_F(FlightRecorderTest, LooksOnlyAtTheRunsOwnRanks) {
  Write(2, Recorder("started"));
  EXPECT_EQ(DescribeFlightRecorders(folder_, 2), "");
}

TEST_F(FlightRecorderTest, SaysWhatIsNoRecorder) {
  Write(0, Recorder("started").substr(0, 100));
  Write(1, R"({"entries": [{"state": 3}]})");
  Write(2, R"({"version": "2.10"})");
  EXPECT_EQ(DescribeFlightRecorders(folder_, 3),
            "flight recorder: rank 0 left an unreadable one; rank 1 left an unreadable one; "
            "rank 2 has made no call");
}

}  // namespace flight_recorder_test
}  // namespace trainwreck
