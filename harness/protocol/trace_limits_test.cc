// What a hostile or broken target writes must cost the reader no more than its limits.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>

#include "harness/protocol/trace_memory.h"
#include "harness/protocol/trace_reader.h"

namespace trainwreck {
namespace {

class TraceLimitsTest : public testing::Test {
 protected:
  TraceLimitsTest() : folder_(testing::TempDir() + "/limits.XXXXXX") { mkdtemp(folder_.data()); }

  void Append(const std::string& text, int times = 1) {
    std::ofstream file(folder_ + "/rank0.jsonl", std::ios::app);
    for (int i = 0; i < times; ++i) file << text;
  }

  std::string folder_;
};

TEST_F(TraceLimitsTest, BoundsEventsCollectivesAndValues) {
  struct Example {
    const char* line;
    const char* problem;
  };
  for (const Example& example : {Example{R"({"t":"event","event":"e"})"
                                         "\n",
                                         "rank0.jsonl:11: too many events"},
                                 Example{R"({"t":"collective","call":1})"
                                         "\n",
                                         "rank0.jsonl:11: too many collectives"},
                                 Example{R"({"t":"step","step":999,"a":1,"b":2})"
                                         "\n",
                                         "rank0.jsonl:1: too many values"}}) {
    std::ofstream(folder_ + "/rank0.jsonl", std::ios::trunc);
    Append(example.line, 100);
    TraceLimits limits;
    limits.events = 10;
    limits.collectives = 10;
    limits.values = 1500;
    TraceReader reader(folder_, 1, 0, limits);
    reader.Poll(true);
    ASSERT_EQ(reader.problems().size(), 1u) << example.line;
    EXPECT_EQ(reader.problems()[0], example.problem);
  }
}

// A name costs more than the value behind it.
TEST_F(TraceLimitsTest, BoundsTheMemoryOfAMillionNames) {
  {
    std::ofstream file(folder_ + "/rank0.jsonl");
    for (int line = 0; line < 100; ++line) {
      file << R"({"t":"step","step":0)";
      for (int i = 0; i < 10'000; ++i) file << ",\"name" << line * 10'000 + i << "\":1";
      file << "}\n";
    }
  }
  TraceLimits limits;
  limits.values = 1'000'000;  // 9 MB
  TraceReader reader(folder_, 1, 0, limits);
  reader.Poll(true);
  ASSERT_EQ(reader.problems().size(), 1u);
  EXPECT_NE(reader.problems()[0].find(": too many "), std::string::npos) << reader.problems()[0];
  EXPECT_LT(MemoryBytes(reader.trace()), 18 << 20);
  EXPECT_GT(reader.trace().series.size(), 40'000u);
}

TEST_F(TraceLimitsTest, BoundsTheMemoryOfEvents) {
  std::string lists = "[[]";
  for (int i = 0; i < 10'000; ++i) lists += ",[]";
  const std::string line = R"({"t":"event","event":"e","field":)" + lists + "]}\n";
  Append(line, 100);
  TraceLimits limits;
  limits.values = 1'000'000;
  TraceReader reader(folder_, 1, 0, limits);
  reader.Poll(true);
  ASSERT_EQ(reader.problems().size(), 1u);
  EXPECT_NE(reader.problems()[0].find("the events are too large"), std::string::npos);
  EXPECT_LE(MemoryBytes(reader.trace()), 9 << 20);
  EXPECT_GT(MemoryBytes(reader.trace()), 4 << 20);
}

TEST_F(TraceLimitsTest, BoundsTheMemoryOfCollectives) {
  Append(R"({"t":"collective","call":1,"shape":")" + std::string(100'000, '8') + "\"}\n", 200);
  TraceLimits limits;
  limits.values = 1'000'000;
  TraceReader reader(folder_, 1, 0, limits);
  reader.Poll(true);
  ASSERT_EQ(reader.problems().size(), 1u);
  EXPECT_NE(reader.problems()[0].find("the collectives are too large"), std::string::npos);
  EXPECT_LE(MemoryBytes(reader.trace()), 10 << 20);
}

TEST_F(TraceLimitsTest, ReadsAFloodInPieces) {
  const std::string line = R"({"t":"step","step":1,"loss":1})"
                           "\n";
  Append(line, 400'000);  // 12 MB
  TraceReader reader(folder_, 1, 10);
  EXPECT_TRUE(reader.Poll());
  EXPECT_LT(reader.bytes(), 9 << 20);
  EXPECT_TRUE(reader.Poll());
  EXPECT_EQ(reader.bytes(), static_cast<std::int64_t>(line.size()) * 400'000);
  EXPECT_FALSE(reader.Poll());
}

TEST_F(TraceLimitsTest, CutsATornTailSoThatTheNextAttemptStartsALine) {
  Append("{\"t\":\"step\",\"step\":0}\n{\"t\":\"step\",\"st");
  TraceReader reader(folder_, 1, 10);
  reader.Poll();
  reader.CutTornTails();
  Append("{\"t\":\"step\",\"step\":1}\n");
  reader.Poll(true);
  EXPECT_TRUE(reader.problems().empty()) << reader.problems()[0];
  EXPECT_EQ(reader.trace().last_step(0), 1);
}

TEST_F(TraceLimitsTest, NeverCutsWhatItHasNotRead) {
  Append("{\"t\":\"step\",\"step\":0}\n{\"t\":\"st");
  TraceReader reader(folder_, 1, 10);
  reader.Poll();
  Append("ep\",\"step\":1}\n");  // it was still being written
  reader.CutTornTails();
  reader.Poll(true);
  EXPECT_TRUE(reader.problems().empty());
  EXPECT_EQ(reader.trace().last_step(0), 1);
}

// A step that comes twice in one attempt is told; one that is run again, or comes in parts, is not.
TEST_F(TraceLimitsTest, TellsOfStepsThatAreRepeated) {
  auto repeats = [&](const std::string& text) {
    std::ofstream(folder_ + "/rank0.jsonl", std::ios::trunc) << text;
    TraceReader reader(folder_, 1, 0);
    reader.Poll(true);
    int count = 0;
    for (const Event& event : reader.trace().events) count += event.name == "repeated_step";
    return count;
  };
  const std::string first = "{\"t\":\"step\",\"step\":3,\"loss\":1}\n";
  const std::string second = "{\"t\":\"step\",\"step\":4,\"loss\":1}\n";
  EXPECT_EQ(repeats(first + second), 0);
  EXPECT_EQ(repeats(first + second + first + second), 1);
  EXPECT_EQ(repeats(first + second + "{\"t\":\"start\",\"attempt\":1}\n" + first), 0);
  EXPECT_EQ(repeats(first + second + "{\"t\":\"event\",\"event\":\"rolled_back\"}\n" + first), 0);
  EXPECT_EQ(repeats(first + second + "{\"t\":\"step\",\"step\":3,\"error\":1}\n"), 0);
}

}  // namespace
}  // namespace trainwreck
