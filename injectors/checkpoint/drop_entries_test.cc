#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <set>

#include "injectors/checkpoint/testing_store.h"
#include "injectors/testing.h"

namespace trainwreck {
namespace {

StateDict WholeState() {
  StateDict state;
  for (const char* name :
       {"loop.step", "model.head.weight", "optimizer.exp_avg.head.weight", "optimizer.step",
        "sampler.epoch", "sampler.position", "schedule.step"}) {
    state[name] = at::zeros({1});
  }
  return state;
}

std::set<std::string> NamesOf(const StateDict& state) {
  std::set<std::string> names;
  for (const auto& [name, tensor] : state) names.insert(name);
  return names;
}

struct Forgetful {
  Forgetful(FaultBench& bench, const std::vector<std::string>& globs, Trigger trigger = {})
      : injector(bench.Make("checkpoint.drop_entries", {{"entries", globs}}, trigger)),
        store(static_cast<PartWrapper&>(*injector).Wrap(std::make_unique<MemoryStore>())) {}
  std::unique_ptr<Injector> injector;
  std::unique_ptr<CheckpointStore> store;
};

TEST(DropEntries, SavesEverythingButWhatMatches) {
  FaultBench bench;
  Forgetful it(bench, {"optimizer.*", "schedule.step"});
  it.store->Save(10, WholeState());
  EXPECT_EQ(NamesOf(it.store->Load(10)),
            (std::set<std::string>{"loop.step", "model.head.weight", "sampler.epoch",
                                   "sampler.position"}));
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_EQ(bench.fired()[0],
            Json({{"id", "it"},
                  {"fault", "checkpoint.drop_entries"},
                  {"steps_done", 10},
                  {"dropped", {"optimizer.exp_avg.head.weight", "optimizer.step", "schedule.step"}},
                  {"before", 7},
                  {"after", 4}}));
}

TEST(DropEntries, CountsTheTriggersStepsInStepsDone) {
  FaultBench bench;
  bench.clock.step = 49;  // the step in progress when 50 are done
  Forgetful it(bench, {"sampler.*"}, {.at = 50});
  it.store->Save(49, WholeState());
  it.store->Save(50, WholeState());
  EXPECT_EQ(it.store->Load(49).size(), 7U);
  EXPECT_EQ(it.store->Load(50).size(), 5U);
  EXPECT_EQ(it.store->List(), (std::vector<int>{49, 50}));
  EXPECT_EQ(bench.fired().size(), 1U);
}

TEST(DropEntries, LeavesNoEvidenceWhereNothingMatches) {
  FaultBench bench;
  Forgetful it(bench, {"scaler.*"});
  it.store->Save(10, WholeState());
  EXPECT_EQ(it.store->Load(10).size(), 7U);
  EXPECT_TRUE(bench.fired().empty());
}

}  // namespace
}  // namespace trainwreck
