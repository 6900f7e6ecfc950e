// A store of checkpoints around another one, whose saves an injector may change:
// injector.Save(inner, steps_done, state).
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "trainer/parts.h"

namespace trainwreck {

template <typename Owner>
class StoreAround : public CheckpointStore {
 public:
  // `owner` must outlive it.
  StoreAround(std::unique_ptr<CheckpointStore> inner, Owner& owner)
      : inner_(std::move(inner)), owner_(owner) {}

  void Save(int steps_done, const StateDict& state) override {
    owner_.Save(*inner_, steps_done, state);
  }
  std::vector<int> List() const override { return inner_->List(); }
  StateDict Load(int steps_done) const override { return inner_->Load(steps_done); }

 private:
  std::unique_ptr<CheckpointStore> inner_;
  Owner& owner_;
};

}  // namespace trainwreck
