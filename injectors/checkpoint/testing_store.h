// A store of checkpoints in memory: for tests.
#pragma once

#include <map>
#include <vector>

#include "trainer/parts.h"

namespace trainwreck {

class MemoryStore : public CheckpointStore {
 public:
  void Save(int steps_done, const StateDict& state) override { saved_[steps_done] = state; }
  std::vector<int> List() const override {
    std::vector<int> steps;
    for (const auto& [step, state] : saved_) steps.push_back(step);
    return steps;
  }
  StateDict Load(int steps_done) const override { return saved_.at(steps_done); }

 private:
  std::map<int, StateDict> saved_;
};

}  // namespace trainwreck
