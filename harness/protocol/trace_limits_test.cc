// What a hostile or broken target writes must cost the reader no more than its limits.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>
#include <memory>

#include "harness/protocol/trace_memory.h"
#include "harness/protocol/trace_reader.h"

namespace trainwreck {
namespace trace_limits_test {

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

// Runs that go on share what their case has, and one that is over it gives back what it took.
TEST_F(TraceLimitsTest, TracesShareTheRoomOfTheirCase) {
  const auto room = std::make_shared<TraceRoom>(100'000);
  TraceLimits limits;
  limits.room = room;
  TraceReader first(folder_, 1, 0, limits);
  TraceReader second(folder_, 1, 0, limits);
  TraceReader third(folder_, 1, 0, limits);
  Append(R"({"t":"step","step":4999,"loss":1})"
         "\n");  // 90 kB with its times
  EXPECT_TRUE(first.Poll());
  EXPECT_EQ(first.problems().size(), 0u);
  EXPECT_LT(room->left(), 10'000);
  EXPECT_NEAR(100'000 - room->left(), MemoryBytes(first.trace()), 1000);

  EXPECT_TRUE(second.Poll());
  EXPECT_TRUE(second.is_over_room());
  ASSERT_EQ(second.problems().size(), 1u);
  EXPECT_EQ(second.problems()[0],
            "rank0.jsonl:1: with it the traces of this case are over their bound of 1 MiB of "
            "memory: record fewer signals or steps");
  EXPECT_TRUE(second.trace().series.empty());
  EXPECT_TRUE(second.trace().time_s.empty());
  EXPECT_EQ(second.trace().lost.count(0), 1u);
  EXPECT_LT(MemoryBytes(second.trace()), 1000);
  EXPECT_NEAR(100'000 - room->left(), MemoryBytes(first.trace()), 1000);

  std::ofstream(folder_ + "/rank0.jsonl") << R"({"t":"step","step":9,"loss":1})"
                                          << "\n";
  EXPECT_TRUE(third.Poll(true));  // there is room for a small one
  EXPECT_TRUE(third.problems().empty());
  EXPECT_FALSE(first.is_over_room());
}

// Whatever it consists of.
TEST_F(TraceLimitsTest, CountsNearWhatATraceTakes) {
  const std::string many(2000, 'n');
  for (const std::string& line :
       {R"({"t":"step","step":0,")" + many + R"(":1})", R"({"t":"event","event":")" + many + "\"}",
        R"({"t":"collective","op":")" + many + "\"}",
        R"({"t":"start","lists":[[],[],[],")" + many + "\"]}"}) {
    std::ofstream(folder_ + "/rank0.jsonl", std::ios::trunc) << line << "\n" << line << "\n";
    TraceLimits limits;
    limits.room = std::make_shared<TraceRoom>(100'000);
    TraceReader reader(folder_, 1, 0, limits);
    reader.Poll(true);
    const double taken = static_cast<double>(limits.room->bytes() - limits.room->left());
    const double held = static_cast<double>(MemoryBytes(reader.trace()));
    EXPECT_GT(taken, 0.8 * held) << line;
    EXPECT_LT(taken, 1.3 * held) << line;
  }
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

}  // namespace trace_limits_test
}  // namespace trainwreck
