#include "harness/campaign/trace_budget.h"

#include <gtest/gtest.h>

#include "harness/protocol/trace_memory.h"

namespace trainwreck {
namespace {

RunResult ResultOf(int steps) {
  RunResult result;
  result.end = RunEnd::kCompleted;
  result.trace.planned_steps = steps;
  result.trace.world_size = 2;
  result.trace.finished = true;
  for (int step = 0; step < steps; ++step) result.trace.series[{"loss", 0}].Set(step, 1);
  return result;
}

TEST(TraceBudgetTest, BoundsTheTracesOfACaseTogether) {
  RunResult first = ResultOf(1000), second = ResultOf(1000), third = ResultOf(10);
  TraceBudget budget(MemoryBytes(first.trace) * 3 / 2);
  budget.Admit(first);
  EXPECT_EQ(first.end, RunEnd::kCompleted);
  EXPECT_EQ(first.trace.last_step(0), -1);
  EXPECT_EQ(first.trace.series.size(), 1u);
  budget.Admit(second);
  EXPECT_EQ(second.end, RunEnd::kGarbage);
  EXPECT_NE(second.detail.find("over their bound"), std::string::npos) << second.detail;
  EXPECT_TRUE(second.trace.series.empty());
  EXPECT_TRUE(second.trace.finished);
  EXPECT_EQ(second.trace.planned_steps, 1000);
  EXPECT_EQ(second.trace.world_size, 2);
  budget.Admit(third);  // there is room for a small one
  EXPECT_EQ(third.end, RunEnd::kCompleted);
}

TEST(TraceBudgetTest, CountsWhatAHostileTraceIsMadeOf) {
  RunResult names;
  for (int i = 0; i < 1000; ++i) names.trace.series[{"name" + std::to_string(i), 0}];
  EXPECT_GT(MemoryBytes(names.trace), 1000 * 100);
  RunResult events;
  for (int i = 0; i < 1000; ++i) events.trace.events.push_back({.name = "e", .fields = {{"a", 1}}});
  EXPECT_GT(MemoryBytes(events.trace), 1000 * 100);
  RunResult collectives;
  collectives.trace.collectives[0].resize(1000);
  EXPECT_GT(MemoryBytes(collectives.trace), 1000 * 100);
}

}  // namespace
}  // namespace trainwreck
