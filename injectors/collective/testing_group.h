// For tests of faults of collectives: a communicator whose peer holds the same as this rank.
#pragma once

#include <vector>

#include "trainer/parts.h"

namespace trainwreck {

class FakeGroup : public Communicator {
 public:
  explicit FakeGroup(int& calls) : calls_(calls) {}
  int rank() const override { return 1; }
  int world_size() const override { return 2; }
  void AllReduce(at::Tensor& tensor, Reduction reduction) override {
    ++calls_;
    if (reduction == Reduction::kSum) tensor.mul_(2);
  }
  void Broadcast(at::Tensor&, int) override {}
  void Barrier() override {}

 private:
  int& calls_;  // that were really made
};

}  // namespace trainwreck
