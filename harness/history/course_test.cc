#include "harness/history/course.h"

#include <gtest/gtest.h>

#include "harness/history/history_testing.h"
#include "harness/pages/pages.h"

namespace trainwreck {
namespace course_test {

// Runs 1, 2, .. of these commits; each commit is a program of its own.
std::vector<Record> RunsOf(const std::vector<std::string>& commits) {
  std::vector<Record> runs;
  for (const std::string& commit : commits) {
    runs.push_back(TestRecord(commit, "program-of-" + commit));
    runs.back().id = static_cast<std::int64_t>(runs.size());
    runs.back().cases = {TestCase("nan/mine")};
  }
  return runs;
}

TEST(CourseTest, NamesTheCommitThatMovedAMargin) {
  std::vector<Record> runs = RunsOf({"a", "b", "c", "d"});
  for (std::size_t i : {2, 3}) {
    for (auto& [seed, margin] : runs[i].cases[0].margins[0].by_seed) margin -= 5;
  }
  const Json courses = CoursesOf(runs);
  ASSERT_EQ(courses.size(), 1u);
  EXPECT_EQ(courses[0]["points"].size(), 4u);
  ASSERT_EQ(courses[0]["moves"].size(), 1u);
  const Json& move = courses[0]["moves"][0];
  EXPECT_EQ(move["commit"], "c");
  EXPECT_EQ(move["from"], 2);
  EXPECT_EQ(move["to"], 3);
  EXPECT_EQ(move["worse"], true);
  EXPECT_EQ(move["changes"][0]["kind"], "margin");
  EXPECT_EQ(move["changes"][0]["unit"], "octaves");
  EXPECT_EQ(move["changes"][0]["text"], "'learns' in control: 1.125 -> -3.875 octaves");
}

TEST(CourseTest, NamesTheCommitThatMovedTimeOrMemory) {
  std::vector<Record> runs = RunsOf({"a", "b", "c"});
  for (TrainingRecord& training : runs[1].cases[0].trainings) training.step_seconds *= 2;
  for (TrainingRecord& training : runs[2].cases[0].trainings) {
    training.step_seconds *= 2;
    training.peak_memory_bytes *= 1.5;
  }
  const Json moves = CoursesOf(runs)[0]["moves"];
  ASSERT_EQ(moves.size(), 2u);
  EXPECT_EQ(moves[0]["commit"], "b");
  EXPECT_EQ(moves[0]["changes"].size(), 1u);
  EXPECT_EQ(moves[0]["changes"][0]["kind"], "step_time");
  EXPECT_EQ(moves[1]["commit"], "c");
  EXPECT_EQ(moves[1]["changes"][0]["kind"], "memory");
}

TEST(CourseTest, RunsOfOneCommitAreOnePoint) {
  std::vector<Record> runs = RunsOf({"a", "a", "b"});
  runs[1].target_digest = runs[0].target_digest;
  const Json points = CoursesOf(runs)[0]["points"];
  ASSERT_EQ(points.size(), 2u);
  EXPECT_EQ(points[0]["runs"], Json({1, 2}));
  EXPECT_EQ(points[0]["margins"][0]["median"], 1.125);
  EXPECT_EQ(points[0]["margins"][0]["least"], 0.75);
  EXPECT_EQ(points[0]["step_seconds"], 0.003);
}

TEST(CourseTest, WhatDoesNotMoveIsNotNamed) {
  EXPECT_TRUE(CoursesOf(RunsOf({"a", "b", "c"}))[0]["moves"].empty());
}

TEST(CourseTest, HasAPage) {
  std::vector<Record> runs = RunsOf({"a", "b"});
  for (auto& [seed, margin] : runs[1].cases[0].margins[0].by_seed) margin -= 5;
  const Json json = {{"schema", "trainwreck/history"}, {"courses", CoursesOf(runs)}};
  EXPECT_NE(PageOf(json, "").find("1.125 -&gt; -3.875"), std::string::npos);
}

}  // namespace course_test
}  // namespace trainwreck
