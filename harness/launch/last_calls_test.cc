#include "harness/launch/last_calls.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

namespace trainwreck {
namespace last_calls_test {

class LastCallsTest : public testing::Test {
 protected:
  LastCallsTest() : folder_(testing::TempDir() + "/calls-XXXXXX") {
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
  }
  void Write(int rank, const std::string& text) {
    std::ofstream(folder_ + "/rank" + std::to_string(rank) + ".calls") << text;
  }
  std::string folder_;
};

std::string Line(int call, const std::string& ended) {
  return R"({"call":)" + std::to_string(call) +
         R"(,"step":3,"op":"all_reduce","shape":"[4]","dtype":"float64","began":0.25,"ended":)" +
         ended + "}   \n";
}

TEST_F(LastCallsTest, AreInTheirOrderThoughTheFileIsARing) {
  Write(0, Line(16, "null") + Line(17, "null").substr(0, 30) + "\n" + Line(15, "0.5") + "   \n");
  const auto calls = ReadLastCalls(folder_, 0);
  ASSERT_EQ(calls.size(), 2u);  // without the torn line and the unused one
  EXPECT_EQ(calls[0].call, 15);
  EXPECT_EQ(calls[0].state, CallState::kEnded);
  EXPECT_EQ(calls[1].call, 16);
  EXPECT_EQ(calls[1].state, CallState::kWaits);
}

TEST_F(LastCallsTest, EachRankIsDescribed) {
  Write(0, Line(7, "0.3") + Line(8, "null"));
  Write(1, Line(7, R"("failed")"));
  EXPECT_EQ(DescribeLastCalls(folder_, 3),
            "last calls: rank 0 is in all_reduce [4] float64 (call 8, step 3) since 0.25 s, after "
            "all_reduce [4] float64 (call 7, step 3); rank 1 failed in all_reduce [4] float64 "
            "(call 7, step 3), begun at 0.25 s");
}

TEST_F(LastCallsTest, AnythingMayBeInTheFile) {
  Write(0, "[1]\n{}\n{\"call\":\"x\"}\n\x01\xff");
  Write(1, std::string(1 << 20, 'x'));
  EXPECT_EQ(DescribeLastCalls(folder_, 2), "");
}

}  // namespace last_calls_test
}  // namespace trainwreck
