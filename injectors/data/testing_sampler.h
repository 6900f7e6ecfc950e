// A sampler of known batches: for tests.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "trainer/parts.h"

namespace trainwreck {

// A sampler that gives its batches in order, and then an end of the epoch.
class KnownBatches : public Sampler {
 public:
  explicit KnownBatches(std::vector<std::vector<std::int64_t>> batches)
      : batches_(std::move(batches)) {}
  std::vector<std::int64_t> Next() override {
    if (position_ < batches_.size()) return batches_[position_++];
    position_ = 0;
    ++epoch_;
    return {};
  }
  std::int64_t epoch() const override { return epoch_; }
  void Save(StateDict& state) const override { state["sampler.saved"] = at::Tensor(); }
  void Load(const StateDict& state) override { epoch_ = static_cast<std::int64_t>(state.size()); }

 private:
  std::vector<std::vector<std::int64_t>> batches_;
  std::size_t position_ = 0;
  std::int64_t epoch_ = 0;
};

}  // namespace trainwreck
