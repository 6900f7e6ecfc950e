// For tests of faults of one rank's collectives: what its communicator is asked for.
#pragma once

#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "injectors/testing.h"
#include "trainer/ranks/communicator.h"

namespace trainwreck {

// Writes down the calls that come to the group.
class Recorder : public Communicator {
 public:
  explicit Recorder(std::vector<std::string>& calls) : calls_(calls) {}
  int rank() const override { return 1; }
  int world_size() const override { return 2; }
  void AllReduce(at::Tensor& tensor, Reduction) override {
    calls_.push_back(ShapeText(tensor) + " " + DtypeText(tensor));
  }
  void Broadcast(at::Tensor&, int root) override { calls_.push_back(BroadcastName(root)); }
  void Barrier() override { calls_.push_back("barrier"); }

 private:
  std::vector<std::string>& calls_;
};

using Calls = std::vector<std::string>;

// The calls of a step that reduces three gradients, broadcasts from rank 0, and waits.
inline Calls CallsUnder(FaultBench& bench, const std::string& fault,
                        std::map<std::string, Json> with = {}, Trigger trigger = {}) {
  const auto injector = bench.Make(fault, std::move(with), std::move(trigger));
  PartWrapper& wrapper = *injector;
  Calls calls;
  const auto group = wrapper.Wrap(std::unique_ptr<Communicator>(std::make_unique<Recorder>(calls)));
  const auto hook = wrapper.MakeHook();
  if (hook) hook->OnStepBegin(0);
  if (hook) hook->OnBackwardDone(0);
  for (const int size : {3, 4, 5}) {
    at::Tensor gradient = at::full({size}, 1.5);
    group->AllReduce(gradient, Reduction::kSum);
  }
  at::Tensor parameter = at::full({2}, 1.0);
  group->Broadcast(parameter, 0);
  if (hook) hook->OnStepEnd(0);
  group->Barrier();
  return calls;
}

// A rank that the trigger does not name makes all calls as they are.
inline void ExpectLeftAloneOnOtherRanks(const std::string& fault) {
  FaultBench bench(1, 2);
  EXPECT_EQ(CallsUnder(bench, fault, {}, {.ranks = {0}}),
            (Calls{"[3] float32", "[4] float32", "[5] float32", "broadcast", "barrier"}));
  EXPECT_TRUE(bench.fired().empty());
}

}  // namespace trainwreck
