// A sampler around another one, whose batches an injector may change: injector.Rearrange(ids).
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "trainer/parts.h"

namespace trainwreck {

template <typename Owner>
class SamplerAround : public Sampler {
 public:
  // `owner` must outlive it.
  SamplerAround(std::unique_ptr<Sampler> inner, Owner& owner)
      : inner_(std::move(inner)), owner_(owner) {}

  std::vector<std::int64_t> Next() override { return owner_.Rearrange(inner_->Next()); }
  bool is_shadow() const override { return inner_->is_shadow(); }
  std::int64_t epoch() const override { return inner_->epoch(); }
  void Save(StateDict& state) const override { inner_->Save(state); }
  void Load(const StateDict& state) override { inner_->Load(state); }

 private:
  std::unique_ptr<Sampler> inner_;
  Owner& owner_;
};

}  // namespace trainwreck
