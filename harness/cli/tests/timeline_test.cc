// `timeline` over traces as people have them.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "harness/cli/tests/cli_testing.h"

namespace trainwreck {
namespace {

using Json = nlohmann::json;

// Two ranks of a foreign training loop: two steps and two collectives each, and a line that is cut.
void WriteRun(const CliFolder& files) {
  for (const char* rank : {"0", "1"}) {
    std::string text = R"({"t":"start","rank":)" + std::string(rank) +
                       R"(,"clock_s":70.5})"
                       "\n";
    for (const char* step : {"0", "1"}) {
      text += R"({"t":"collective","step":)" + std::string(step) + R"(,"call":)" + step +
              R"(,"op":"all_reduce","shape":"[4]","dtype":"float32","time":0.)" + step + "5}\n" +
              R"({"t":"step","step":)" + step + R"(,"time":0.)" + step +
              R"(9,"step_s":0.04,"loss":NaN})" + "\n";
    }
    files.Write("foreign/rank" + std::string(rank) + ".jsonl", text + R"({"t":"st)");
  }
}

TEST(TimelineTest, WritesWhatTheTraceHasAndNamesTheRest) {
  const CliFolder files;
  WriteRun(files);
  const Called called = files.Call("timeline foreign");
  EXPECT_EQ(called.status, 0) << called.output();
  EXPECT_TRUE(Contains(called.out,
                       "wrote timeline.json: 4 steps, 4 collectives (2 matched over "
                       "ranks), 2 events, 0 points of memory"))
      << called.output();
  EXPECT_TRUE(Contains(called.out, "left out: lines that cannot be read: 2")) << called.output();
  int steps = 0;
  const Json timeline = Json::parse(files.Read("timeline.json"));
  for (const Json& event : timeline.at("traceEvents")) {
    if (event.value("cat", "") != "step") continue;
    ++steps;
    EXPECT_NEAR(event.at("dur").get<double>(), 40'000, 1);
  }
  EXPECT_EQ(steps, 4);
}

TEST(TimelineTest, GoesToStandardOutput) {
  const CliFolder files;
  WriteRun(files);
  const Called called = files.Call("timeline foreign foreign -o -");
  EXPECT_EQ(called.status, 0) << called.output();
  EXPECT_FALSE(files.Has("timeline.json"));
  EXPECT_TRUE(Json::parse(called.out).contains("traceEvents"));
  EXPECT_TRUE(Contains(called.err, "8 steps")) << called.err;
}

TEST(TimelineTest, RefusesAFolderWithoutATrace) {
  const CliFolder files;
  files.Write("empty/launcher.jsonl", "");
  EXPECT_EQ(files.Call("timeline empty").status, 2);
  EXPECT_EQ(files.Call("timeline").status, 2);
}

}  // namespace
}  // namespace trainwreck
