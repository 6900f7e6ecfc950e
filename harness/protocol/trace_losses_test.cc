// What a trace's reader makes of lines that are not as they should be: Python's bare numbers are
// numbers, and what could not be read is lost, not absent.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "harness/protocol/trace_reader.h"

namespace trainwreck {
namespace trace_losses_test {

class TraceLossesTest : public testing::Test {
 protected:
  TraceLossesTest() : folder_(testing::TempDir() + "/losses.XXXXXX") { mkdtemp(folder_.data()); }

  TraceReader Read(const std::string& text, TraceLimits limits = {}) const {
    std::ofstream(folder_ + "/rank0.jsonl", std::ios::trunc) << text;
    TraceReader reader(folder_, 1, 10, limits);
    reader.Poll(/*last=*/true);
    return reader;
  }

  double LossOf(const std::string& line) const {
    const TraceReader reader = Read(line + "\n");
    EXPECT_TRUE(reader.problems().empty()) << line << ": " << reader.problems().front();
    EXPECT_TRUE(reader.trace().lost.empty()) << line;
    const Series* loss = reader.trace().Find("loss", 0);
    return loss != nullptr && loss->Has(0) ? loss->values[0] : -1;
  }

  std::string folder_;
};

TEST_F(TraceLossesTest, BareNumbersOfPythonAreNumbers) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(std::isnan(LossOf(R"({"t": "step", "step": 0, "loss": NaN, "time": 0.1})")));
  EXPECT_EQ(LossOf(R"({"t":"step","loss":Infinity,"step":0})"), kInf);
  EXPECT_EQ(LossOf(R"({"t":"step","step":0,"loss":-Infinity})"), -kInf);
  EXPECT_EQ(LossOf("{\"t\":\"step\",\"step\":0,\"loss\" : -Infinity }\r"), -kInf);
  const TraceReader reader =
      Read(R"({"t":"event","event":"seen","values":[NaN,-Infinity,1],"step":0})"
           "\n");
  ASSERT_EQ(reader.trace().events.size(), 1u);
  EXPECT_EQ(reader.trace().events[0].fields["values"].dump(), R"(["nan","-inf",1])");
}

// The last start that made a step says how many ranks there were.
TEST_F(TraceLossesTest, StartsSayHowManyRanksThereAre) {
  const auto start = [](int world) {
    return R"({"t":"start","rank":0,"world_size":)" + std::to_string(world) + "}\n";
  };
  const auto step = [](int number) {
    return R"({"t":"step","step":)" + std::to_string(number) + R"(,"loss":1})" + "\n";
  };
  std::ofstream(folder_ + "/rank0.jsonl", std::ios::trunc)
      << start(4) << step(0) << step(1) << step(2) << step(3) << start(2) << step(2) << step(3)
      << start(3);
  TraceReader reader(folder_, 4, 10);
  reader.Poll(/*last=*/true);
  EXPECT_EQ(reader.trace().worlds, (std::map<int, int>{{0, 4}, {2, 2}}));
  EXPECT_EQ(reader.trace().world_at(1), 4);
  EXPECT_EQ(reader.trace().world_at(9), 2);
  EXPECT_EQ(Read(step(0)).trace().world_at(0), 1);
}

TEST_F(TraceLossesTest, ARunThatStoppedEarlyWasPlannedSo) {
  const std::string steps =
      "{\"t\":\"step\",\"step\":0,\"loss\":1}\n{\"t\":\"step\",\"step\":1,\"loss\":2}\n";
  const auto planned = [&](const std::string& end) {
    return Read(steps + "{\"t\":\"end\"," + end + "}\n").trace().planned_steps;
  };
  EXPECT_EQ(planned(R"("why":"stopped_early","step":2)"), 2);
  EXPECT_EQ(planned(R"("why":"completed","step":2)"), 10);
  EXPECT_EQ(planned(R"("why":"stopped_early")"), 10) << "it does not say when";
  EXPECT_EQ(planned(R"("why":"stopped_early","step":99)"), 10);
}

TEST_F(TraceLossesTest, StringsStayAsTheyAre) {
  const TraceReader reader =
      Read(R"({"t":"event","event":"e","why":"a \": NaN, \\","then":"[NaN]","loss":NaN})"
           "\n");
  ASSERT_EQ(reader.trace().events.size(), 1u);
  const Json& fields = reader.trace().events[0].fields;
  EXPECT_EQ(fields["why"], R"(a ": NaN, \)");
  EXPECT_EQ(fields["then"], "[NaN]");
  EXPECT_EQ(fields["loss"], "nan");
}

// As a file on NFS or FUSE may be seen while another machine appends to it.
TEST_F(TraceLossesTest, ZerosThatStandForBytesToComeAreNoLoss) {
  const std::string path = folder_ + "/rank0.jsonl";
  const std::string lines[] = {R"({"t":"step","step":0,"loss":1})",
                               R"({"t":"step","step":1,"loss":2})"};
  const auto write = [&](const std::string& bytes) {
    std::ofstream(path, std::ios::trunc | std::ios::binary) << bytes;
  };
  const std::string whole = lines[0] + "\n" + lines[1] + "\n";
  write(lines[0] + "\n" + lines[1].substr(0, 9) + std::string(lines[1].size() - 8, '\0'));
  TraceReader reader(folder_, 1, 10);
  EXPECT_TRUE(reader.Poll());
  EXPECT_FALSE(reader.Poll());
  EXPECT_EQ(reader.trace().last_step(0), 0);
  std::thread writer([&] {
    usleep(100'000);
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file << whole;
  });
  reader.Poll(/*last=*/true);
  writer.join();
  EXPECT_TRUE(reader.problems().empty()) << reader.problems().front();
  EXPECT_TRUE(reader.trace().lost.empty());
  EXPECT_EQ(reader.trace().last_step(0), 1);
}

TEST_F(TraceLossesTest, ZerosThatStayAreLost) {
  const TraceReader reader = Read(std::string(10, '\0') + "\n");
  EXPECT_EQ(reader.problems(), std::vector<std::string>{"rank0.jsonl:1: not a JSON object"});
  EXPECT_TRUE(reader.trace().lost.contains(0));
}

TEST_F(TraceLossesTest, WhatCannotBeReadIsLost) {
  const std::string good = R"({"t":"step","step":0,"loss":1})"
                           "\n";
  for (const char* bad :
       {"hello", "[1]", R"({"t":"step","step":1,"loss":nan})",
        R"({"t":"step","step":1,"l":+Infinity})", R"({"t":"step","step":1,NaN:2})",
        R"({"t":"step","step":1,"loss":NaNs})", R"({"t":"step","step":1,"loss":null})",
        R"({"t":"step","step":-3})", R"({"t":"step","step":1,"loss":NaN)", "\x1f\x8b\x08"}) {
    const TraceReader reader = Read(good + bad + "\n");
    EXPECT_EQ(reader.problems().size(), 1u) << bad;
    EXPECT_EQ(reader.trace().lost.count(0), 1u) << bad;
    EXPECT_EQ(reader.trace().last_step(0) >= 0, true) << bad;
  }
  EXPECT_NE(Read("\x1f\x8b\x08\n").problems().at(0).find("unpack"), std::string::npos);
  EXPECT_TRUE(Read(good).trace().lost.empty());
  EXPECT_TRUE(Read("\r\n\n" + good + "  \n").trace().lost.empty());  // an empty line holds nothing
}

TEST_F(TraceLossesTest, OverALimitIsLost) {
  const std::string line = R"({"t":"event","event":"e"})"
                           "\n";
  EXPECT_EQ(Read(line + line, {.events = 1}).trace().lost.count(0), 1u);
  EXPECT_EQ(Read(line + line, {.line_bytes = 5}).trace().lost.count(0), 1u);
  EXPECT_EQ(Read(line + line, {.file_bytes = 30}).trace().lost.count(0), 1u);
  mkdir((folder_ + "/launcher.jsonl").c_str(), 0755);
  EXPECT_EQ(Read(line).trace().lost.count(-1), 1u);
}

TEST_F(TraceLossesTest, AHalfLastLineIsLostAWholeOneCounts) {
  const TraceReader torn = Read(R"({"after":2,"before":1,"event":"fir)");
  EXPECT_EQ(torn.trace().lost.count(0), 1u);
  EXPECT_TRUE(torn.problems().empty());  // it is what a SIGKILL leaves
  const TraceReader whole = Read(R"({"t":"step","step":0,"loss":NaN})");
  EXPECT_TRUE(whole.trace().lost.empty());
  EXPECT_EQ(whole.trace().last_step(0), 0);
}

TEST_F(TraceLossesTest, AHalfStepIsAStepThatTheRunDidNotReach) {
  const TraceReader torn = Read(
      "{\"t\":\"step\",\"step\":0,\"loss\":2}\n"
      "{\"t\":\"step\",\"step\":1,\"loss\":1");
  EXPECT_TRUE(torn.trace().lost.empty());
  EXPECT_EQ(torn.trace().last_step(0), 0);
  EXPECT_EQ(Read(R"({"t":"st)").trace().lost.count(0), 1u);  // it may be any record
}

TEST_F(TraceLossesTest, AStartAfterAnEndGoesOn) {
  const std::string end = R"({"t":"end","why":"completed","step":5})"
                          "\n";
  const std::string start = R"({"t":"start","rank":0})"
                            "\n";
  EXPECT_EQ(Read(start + end).trace().end_why.count(0), 1u);
  EXPECT_EQ(Read(start + end + start).trace().end_why.count(0), 0u);
}

}  // namespace trace_losses_test
}  // namespace trainwreck
