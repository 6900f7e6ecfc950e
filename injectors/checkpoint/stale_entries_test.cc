#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include "injectors/checkpoint/testing_store.h"
#include "injectors/testing.h"

namespace trainwreck {
namespace {

StateDict StateAfter(int step) {
  return {{"model.weight", at::full({1}, step)}, {"optimizer.step", at::full({1}, step)}};
}

TEST(StaleEntries, SavesThemAsTheCheckpointBeforeHadThem) {
  FaultBench bench;
  const auto injector = bench.Make("checkpoint.stale_entries", {}, {.at = 20});
  const auto store = static_cast<PartWrapper&>(*injector).Wrap(std::make_unique<MemoryStore>());
  for (const int step : {10, 20, 30}) store->Save(step, StateAfter(step));
  for (const int step : {10, 20, 30}) {
    EXPECT_EQ(store->Load(step).at("model.weight").item<int>(), step);
  }
  EXPECT_EQ(store->Load(10).at("optimizer.step").item<int>(), 10);
  EXPECT_EQ(store->Load(20).at("optimizer.step").item<int>(), 10);
  EXPECT_EQ(store->Load(30).at("optimizer.step").item<int>(), 30);
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_EQ(bench.fired()[0]["before"], 20);
  EXPECT_EQ(bench.fired()[0]["after"], 10);
  EXPECT_EQ(bench.fired()[0]["entries"], Json({"optimizer.step"}));
}

TEST(StaleEntries, LeavesNoEvidenceInTheFirstCheckpoint) {
  FaultBench bench;
  const auto injector = bench.Make("checkpoint.stale_entries");
  const auto store = static_cast<PartWrapper&>(*injector).Wrap(std::make_unique<MemoryStore>());
  store->Save(10, StateAfter(10));
  EXPECT_EQ(store->Load(10).at("optimizer.step").item<int>(), 10);
  EXPECT_TRUE(bench.fired().empty());
}

}  // namespace
}  // namespace trainwreck
