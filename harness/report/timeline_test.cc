#include "harness/report/timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

namespace trainwreck {
namespace {

using testing::Contains;
using testing::HasSubstr;

Json Start(double clock, const char* phase = "train", int attempt = 0) {
  return {{"t", "start"}, {"phase", phase}, {"attempt", attempt}, {"clock_s", clock}, {"time", 0}};
}
Json Step(int step, double time, double step_s, double data_s, double comm_s) {
  return {{"t", "step"},      {"step", step},     {"time", time},      {"step_s", step_s},
          {"data_s", data_s}, {"comm_s", comm_s}, {"loss", 4.0 - step}};
}
Json Call(int call, double time, const char* shape = "[3]") {
  return {{"t", "collective"},  {"step", call / 2}, {"call", call},      {"time", time},
          {"op", "all_reduce"}, {"shape", shape},   {"dtype", "float32"}};
}
Json Fired(int step, double time) {
  return {{"t", "event"},      {"event", "fired"}, {"step", step}, {"time", time},
          {"fault", "data.x"}, {"before", 1},      {"after", 2}};
}
Json End(double time) { return {{"t", "end"}, {"why", "completed"}, {"step", 2}, {"time", time}}; }

// Two ranks, of which the second began half a second later and waits less.
TimelineRun TwoRanks() {
  TimelineRun run{.name = "both", .ranks = {}};
  run.ranks[0].records = {Start(100),   Call(0, 0.5), Call(1, 0.8),  Step(0, 1.0, 0.9, 0.1, 0.3),
                          Call(2, 1.5), Call(3, 1.8), Fired(1, 1.9), Step(1, 2.0, 0.9, 0.2, 0.3),
                          End(2.1)};
  run.ranks[1].records = {Start(100.5),
                          Call(0, 0.2),
                          Call(1, 0.4),
                          Step(0, 0.6, 0.5, 0.1, 0.1),
                          Call(2, 1.2),
                          Call(3, 1.4),
                          Step(1, 1.5, 0.5, 0.2, 0.1),
                          End(1.6)};
  return run;
}

std::vector<Json> Of(const Timeline& timeline, const std::string& kind, const std::string& cat) {
  std::vector<Json> events;
  for (const Json& event : timeline.json.at("traceEvents")) {
    if (event.at("ph") == kind && event.value("cat", "") == cat) events.push_back(event);
  }
  return events;
}

// What every reader of the format demands of every event; times that do not decrease.
void ExpectSound(const Timeline& timeline) {
  const Json json = Json::parse(timeline.json.dump());
  double latest = 0;
  for (const Json& event : json.at("traceEvents")) {
    const auto kind = event.at("ph").get<std::string>();
    ASSERT_THAT((std::set<std::string>{"X", "i", "s", "t", "f", "M", "C"}), Contains(kind));
    EXPECT_TRUE(event.at("pid").is_number_integer() && event.at("tid").is_number_integer());
    EXPECT_TRUE(event.at("name").is_string());
    if (kind == "M") continue;
    EXPECT_GE(event.at("ts").get<double>(), latest) << event;
    latest = event.at("ts").get<double>();
    if (kind == "X") {
      EXPECT_GE(event.at("dur").get<double>(), 0) << event;
    } else if (kind == "C") {
      for (const Json& value : event.at("args")) EXPECT_TRUE(value.is_number()) << event;
    } else if (kind != "i") {
      EXPECT_TRUE(event.contains("id")) << event;
    }
  }
}

TEST(Timeline, DrawsMemoryByOwnerOfEachStepAndStage) {
  TimelineRun run{.name = "one", .ranks = {}};
  Json step = Step(0, 1.0, 0.9, 0.1, 0);
  step["memory_peak_bytes"] = 30;
  step["memory_optimizer_bytes"] = 10;
  step["memory_activations_bytes"] = 20;
  const Json stages = {{"t", "event"},
                       {"event", "memory_by_stage"},
                       {"step", 0},
                       {"time", 0.9},
                       {"stages",
                        {{{"stage", "forward"}, {"before_s", 0.8}, {"bytes", {{"optimizer", 10}}}},
                         {{"stage", "backward"},
                          {"before_s", 0.5},
                          {"bytes", {{"optimizer", 10}, {"activations", 15}}}}}}};
  run.ranks[0].records = {Start(100), stages, step, End(1.1)};
  const Timeline timeline = MakeTimeline({run});
  ExpectSound(timeline);
  const std::vector<Json> points = Of(timeline, "C", "memory");
  ASSERT_EQ(points.size(), 3u);
  EXPECT_EQ(timeline.counts.memory, 3);
  EXPECT_EQ(points[0]["name"], "memory in use");
  EXPECT_NEAR(points[0]["ts"].get<double>(), 0.1e6, 1);
  EXPECT_NEAR(points[1]["ts"].get<double>(), 0.4e6, 1);
  EXPECT_EQ(points[1]["args"], Json({{"optimizer", 10}, {"activations", 15}}));
  EXPECT_EQ(points[2]["name"], "memory at the step's peak");
  EXPECT_EQ(points[2]["args"], Json({{"optimizer", 10}, {"activations", 20}}));
  EXPECT_EQ(timeline.counts.events, 2) << "start and end";
}

TEST(Timeline, HasEveryRecordOnce) {
  const Timeline timeline = MakeTimeline({TwoRanks()});
  ExpectSound(timeline);
  EXPECT_EQ(Of(timeline, "X", "step").size(), 4u);
  EXPECT_EQ(Of(timeline, "X", "collective").size(), 8u);
  EXPECT_EQ(Of(timeline, "i", "fault").size(), 1u);
  EXPECT_EQ(Of(timeline, "i", "start").size(), 2u);
  EXPECT_EQ(Of(timeline, "i", "end").size(), 2u);
  EXPECT_EQ(timeline.counts.steps, 4);
  EXPECT_EQ(timeline.counts.collectives, 8);
  EXPECT_EQ(timeline.counts.events, 5);
  EXPECT_EQ(timeline.counts.flows, 4);
  const Json fault = Of(timeline, "i", "fault")[0];
  EXPECT_EQ(fault.at("name"), "fired data.x");
  EXPECT_EQ(fault.at("args").at("after"), 2);
  EXPECT_NEAR(fault.at("ts").get<double>(), 1.9e6, 1);
}

TEST(Timeline, PlacesRanksByTheClockOfTheMachine) {
  const Timeline timeline = MakeTimeline({TwoRanks()});
  std::map<int, double> first_step_end;  // by process
  for (const Json& step : Of(timeline, "X", "step")) {
    first_step_end.try_emplace(step.at("pid").get<int>(),
                               step.at("ts").get<double>() + step.at("dur").get<double>());
  }
  EXPECT_NEAR(first_step_end.at(1), 1.0e6, 1);
  EXPECT_NEAR(first_step_end.at(2), 1.1e6, 1);
  EXPECT_EQ(timeline.counts.unaligned, 0);
}

TEST(Timeline, FillsEachStepWithItsStages) {
  const Timeline timeline = MakeTimeline({TwoRanks()});
  std::map<std::string, double> seconds;
  for (const Json& stage : Of(timeline, "X", "stage")) {
    if (stage.at("pid") == 1) seconds[stage.at("name")] += stage.at("dur").get<double>() / 1e6;
  }
  EXPECT_NEAR(seconds.at("data"), 0.3, 1e-9);
  EXPECT_NEAR(seconds.at("wait for ranks"), 0.6, 1e-9);
  EXPECT_NEAR(seconds.at("forward, backward, update"), 1.8 - 0.3 - 0.6, 1e-9);
}

TEST(Timeline, JoinsCallsFromTheFirstRankThatMakesThemToTheLast) {
  const Timeline timeline = MakeTimeline({TwoRanks()});
  const auto starts = Of(timeline, "s", "collective"), ends = Of(timeline, "f", "collective");
  ASSERT_EQ(starts.size(), 4u);
  ASSERT_EQ(ends.size(), 4u);
  for (const Json& start : starts) {
    const auto end = std::find_if(ends.begin(), ends.end(),
                                  [&](const Json& e) { return e.at("id") == start.at("id"); });
    ASSERT_NE(end, ends.end());
    EXPECT_NE(end->at("pid"), start.at("pid"));
    EXPECT_EQ(end->at("name"), start.at("name"));
    EXPECT_EQ(end->at("bp"), "e");
  }
}

TEST(Timeline, DrawsNoFlowBetweenCallsThatDiffer) {
  TimelineRun run = TwoRanks();
  run.ranks[1].records[2] = Call(1, 0.4, "[4]");
  run.ranks[1].records.erase(run.ranks[1].records.begin() + 5);  // call 3
  const Timeline timeline = MakeTimeline({run});
  EXPECT_EQ(timeline.counts.flows, 2);
  EXPECT_EQ(timeline.counts.different, 1);
  EXPECT_EQ(timeline.counts.unmatched, 1);
  EXPECT_THAT(timeline.left_out, Contains(HasSubstr("not the same on all ranks: 1")));
  EXPECT_THAT(timeline.left_out, Contains(HasSubstr("one rank alone made: 1")));
  EXPECT_EQ(timeline.json.at("otherData").at("left_out").size(), timeline.left_out.size());
}

// Attempts count their calls anew, and their times begin at 0 again.
TEST(Timeline, KeepsAttemptsApart) {
  TimelineRun run;
  for (const int rank : {0, 1}) {
    run.ranks[rank].records = {Start(100), Call(0, 0.5), Step(0, 1.0, 0.9, 0, 0)};
    for (const Json& record : {Start(103, "train", 1), Call(0, 0.5), Step(0, 1.0, 0.9, 0, 0)}) {
      run.ranks[rank].records.push_back(record);
    }
  }
  const Timeline timeline = MakeTimeline({run});
  ExpectSound(timeline);
  EXPECT_EQ(timeline.counts.flows, 2);
  EXPECT_NEAR(Of(timeline, "X", "step").back().at("ts").get<double>(), 3.1e6, 1);
}

// As other programs write them.
TEST(Timeline, SaysWhatATraceWithoutTimesLeavesOpen) {
  TimelineRun run = TwoRanks();
  run.ranks[0].unreadable = 2;
  for (auto& [number, rank] : run.ranks) {
    for (Json& record : rank.records) {
      record.erase("clock_s");
      if (record["t"] == "collective") record.erase("time");
    }
  }
  run.ranks[0].records.push_back({{"t", "step"}, {"step", 9}});
  const Timeline timeline = MakeTimeline({run});
  ExpectSound(timeline);
  EXPECT_EQ(timeline.counts.collectives, 8);
  EXPECT_EQ(timeline.counts.flows, 4);
  EXPECT_EQ(timeline.counts.untimed_collectives, 8);
  EXPECT_EQ(timeline.counts.untimed_steps, 1);
  EXPECT_EQ(timeline.counts.unaligned, 2);
  EXPECT_THAT(timeline.left_out, Contains(HasSubstr("cannot be read: 2")));
}

TEST(Timeline, GivesRunsProcessesOfTheirOwn) {
  TimelineRun other = TwoRanks();
  other.name = "other";
  other.ranks[-1].records = {{{"t", "event"}, {"event", "spawned"}, {"time", 0.1}}};
  const Timeline timeline = MakeTimeline({TwoRanks(), other});
  ExpectSound(timeline);
  std::set<std::string> processes;
  for (const Json& event : timeline.json.at("traceEvents")) {
    if (event.at("name") == "process_name") processes.insert(event.at("args").at("name"));
  }
  EXPECT_EQ(processes, (std::set<std::string>{"both rank 0", "both rank 1", "other launcher",
                                              "other rank 0", "other rank 1"}));
  EXPECT_EQ(timeline.counts.flows, 8);
}

}  // namespace
}  // namespace trainwreck
