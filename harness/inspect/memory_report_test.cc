#include "harness/inspect/memory_report.h"

#include <gtest/gtest.h>

namespace trainwreck {
namespace memory_report_test {

constexpr int kSteps = 40;

// Settles at 1 MB after two steps, with a wider batch in every fifth.
RunTrace Settled(double growth_per_step) {
  RunTrace trace;
  trace.planned_steps = kSteps;
  for (int step = 0; step < kSteps; ++step) {
    const double extra = growth_per_step * step;
    const double activations = 600000 + (step % 5 == 4 ? 50000 : 0);
    const double optimizer = step < 2 ? 0 : 200000;
    trace.series[{"memory_allocated_bytes", 0}].Set(step, 300000 + optimizer + extra);
    trace.series[{"memory_parameters_bytes", 0}].Set(step, 200000);
    trace.series[{"memory_optimizer_bytes", 0}].Set(step, optimizer);
    trace.series[{"memory_activations_bytes", 0}].Set(step, activations + extra);
    trace.series[{"memory_peak_bytes", 0}].Set(step, 200000 + optimizer + activations + extra);
    trace.series[{"memory_bytes", 0}].Set(step, 9e7);
  }
  return trace;
}

TEST(MemoryReport, ExplainsThePeakByItsOwners) {
  const MemoryReport use = MemoryOf(Settled(0), 0);
  EXPECT_EQ(use.signal, "memory_peak_bytes");
  EXPECT_DOUBLE_EQ(use.peak, 1050000);
  EXPECT_EQ(use.peak_step, 4);
  EXPECT_EQ(SharesText(use), "62% activations, 19% optimizer, 19% parameters");
  double sum = 0;
  for (const MemoryPart& part : use.parts) sum += part.at_peak;
  EXPECT_DOUBLE_EQ(sum, use.peak);
}

TEST(MemoryReport, TakesBlocksInARowTogether) {
  const std::map<std::string, double> blocks = {
      {"blocks.0", 12}, {"blocks.1", 12}, {"blocks.10", 5}, {"blocks.2", 12},
      {"embed", 2},     {"head", 8},      {"loss", 0.5}};
  EXPECT_EQ(BlocksText(blocks, 100), "36% blocks 0-2, 8% head, 5% blocks 10, 2% embed");
  EXPECT_EQ(BlocksText({}, 100), "");
}

TEST(MemoryReport, BlocksAreThoseOfTheHighestPeakOrOfTheEnd) {
  RunTrace trace = Settled(0);
  const auto add = [&](const char* name, int rank, const char* field, double bytes) {
    Event event;
    event.name = name;
    event.rank = rank;
    event.fields[field] = {{"head", bytes}};
    trace.events.push_back(event);
  };
  EXPECT_TRUE(MemoryOf(trace, 0).blocks.empty());
  add("memory_blocks", 0, "by_block", 3);
  add("memory_blocks", 0, "by_block", 5);
  add("memory_blocks", 1, "by_block", 7);
  EXPECT_EQ(MemoryOf(trace, 0).blocks.at("head"), 5);
  add("out_of_memory", 0, "activations_by_block", 9);
  EXPECT_EQ(MemoryOf(trace, 0).blocks.at("head"), 9);
}

TEST(MemoryReport, CallSitesAreThoseOfTheHighestPeakOrOfTheEnd) {
  RunTrace trace = Settled(0);
  const auto add = [&](const char* name, Json fields) {
    trace.events.push_back({name, 3, 0, 1.0, std::move(fields)});
  };
  EXPECT_TRUE(LargestSites(MemoryOf(trace, 0)).empty());
  add("memory_blocks", {{"by_site", {{"A", 1}}}});
  add("memory_blocks", {{"by_site", {{"A", 5}, {"B", 300}, {"C", 695}}}});
  using Sites = std::vector<std::pair<std::string, double>>;
  EXPECT_EQ(LargestSites(MemoryOf(trace, 0)), (Sites{{"C", 695}, {"B", 300}})) << "A has 0.5%";
  add("out_of_memory", {{"bytes_by_site", {{"D", 7}}}});
  EXPECT_EQ(LargestSites(MemoryOf(trace, 0)), (Sites{{"D", 7}}));
}

TEST(MemoryReport, TellsAPlateauFromGrowth) {
  EXPECT_EQ(MemoryOf(Settled(0), 0).verdict(), MemoryVerdict::kPlateau);
  EXPECT_DOUBLE_EQ(MemoryOf(Settled(0), 0).growth->hi, 0);
  const MemoryReport grows = MemoryOf(Settled(1024), 0);
  EXPECT_EQ(grows.verdict(), MemoryVerdict::kGrows);
  EXPECT_DOUBLE_EQ(grows.growth->value, 1024);
  for (const MemoryPart& part : grows.parts) {
    ASSERT_TRUE(part.growth) << part.owner;
    EXPECT_EQ(part.growth->lo > 0, part.owner == "activations") << part.owner;
  }
  EXPECT_EQ(MemoryOf(Settled(-1024), 0).verdict(), MemoryVerdict::kPlateau);
}

TEST(MemoryReport, NoiseIsNoGrowthAndItsBoundIsSaid) {
  RunTrace trace = Settled(0);
  Series& allocated = trace.series[{"memory_allocated_bytes", 0}];
  for (int step = 0; step < kSteps; ++step) allocated.values[step] += 5000 * ((step * 7) % 11);
  const MemoryReport use = MemoryOf(trace, 0);
  EXPECT_EQ(use.verdict(), MemoryVerdict::kPlateau);
  EXPECT_GT(use.growth->hi, 0);
  EXPECT_LT(use.growth->hi, 5000);
}

TEST(MemoryReport, ARunThatRanOutSaysSoWhateverItsTrend) {
  RunTrace trace = Settled(0);
  trace.events.push_back({"out_of_memory", kSteps, 0, 1.0, {{"stage", "forward"}}});
  EXPECT_EQ(MemoryOf(trace, 0).verdict(), MemoryVerdict::kRanOut);
  EXPECT_EQ(MemoryOf(trace, 1).verdict(), MemoryVerdict::kUnknown) << "another rank's event";
}

TEST(MemoryReport, FallsBackToResidentMemoryAndSaysWhatIsUnknown) {
  RunTrace trace;
  for (int step = 0; step < kSteps; ++step) trace.series[{"memory_bytes", 0}].Set(step, 5e6);
  const MemoryReport use = MemoryOf(trace, 0);
  EXPECT_EQ(use.signal, "memory_bytes");
  EXPECT_TRUE(use.parts.empty());
  EXPECT_EQ(use.verdict(), MemoryVerdict::kPlateau);
  EXPECT_EQ(MemoryOf(RunTrace(), 0).verdict(), MemoryVerdict::kUnknown);
  EXPECT_TRUE(ToJson(MemoryOf(RunTrace(), 0))["peak_bytes"].is_null());
}

TEST(MemoryReport, WritesBytesForPeople) {
  EXPECT_EQ(BytesText(512), "512 B");
  EXPECT_EQ(BytesText(0.25), "0.25 B");
  EXPECT_EQ(BytesText(24000000), "24 MB");
  EXPECT_EQ(BytesText(999999), "1 MB");
  EXPECT_EQ(BytesText(-1500), "-1.5 kB");
  EXPECT_EQ(BytesText(10040123), "10.04 MB");
}

}  // namespace memory_report_test
}  // namespace trainwreck
