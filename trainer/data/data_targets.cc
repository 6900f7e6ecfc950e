// What is done to the pairs of training samples: data.pair_by_id, data.target_shift,
// data.mask_first, data.inputs_from_targets.
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cstdlib>
#include <unordered_map>

#include "trainer/data/data.h"

namespace trainwreck {
namespace {

class PairedData : public DatasetAround {
 public:
  explicit PairedData(std::unique_ptr<Dataset> data) : DatasetAround(std::move(data)) {
    for (std::int64_t id = 0; id < size(); ++id) {
      const Sample sample = inner().Get(id);
      if (sample.target_id) place_of_[*sample.target_id] = id;
    }
  }

  Sample Get(std::int64_t id) const override {
    Sample sample = inner().Get(id);
    const auto place = place_of_.find(id);
    if (place == place_of_.end()) return sample;
    const Sample stored = inner().Get(place->second);
    sample.target = stored.target;
    sample.weight = stored.weight;
    sample.target_id = id;
    return sample;
  }

 private:
  std::unordered_map<std::int64_t, std::int64_t> place_of_;  // of the target for an id
};

class ShiftedData : public DatasetAround {
 public:
  ShiftedData(std::unique_ptr<Dataset> data, std::int64_t shift)
      : DatasetAround(std::move(data)), shift_(shift) {}

  Sample Get(std::int64_t id) const override {
    Sample sample = inner().Get(id);
    sample.target = Shifted(sample.target);
    sample.weight = Shifted(sample.weight);
    return sample;
  }

 private:
  at::Tensor Shifted(const at::Tensor& row) const {
    at::Tensor out = at::zeros_like(row);
    const std::int64_t kept = row.size(0) - std::abs(shift_);
    if (kept <= 0) return out;
    out.narrow(0, std::max<std::int64_t>(-shift_, 0), kept)
        .copy_(row.narrow(0, std::max<std::int64_t>(shift_, 0), kept));
    return out;
  }

  std::int64_t shift_;
};

class MaskedData : public DatasetAround {
 public:
  MaskedData(std::unique_ptr<Dataset> data, std::int64_t count)
      : DatasetAround(std::move(data)), count_(count) {}

  Sample Get(std::int64_t id) const override {
    Sample sample = inner().Get(id);
    sample.weight = sample.weight.clone();
    sample.weight.narrow(0, 0, count_).zero_();
    return sample;
  }

 private:
  std::int64_t count_;
};

class ShiftedRightData : public DatasetAround {
 public:
  using DatasetAround::DatasetAround;

  Sample Get(std::int64_t id) const override {
    Sample sample = inner().Get(id);
    const std::int64_t behind = sample.target.size(0) - 1;
    sample.input = sample.input.clone();
    sample.input.narrow(0, 1, behind).copy_(sample.target.narrow(0, 0, behind));
    return sample;
  }
};

}  // namespace

std::unique_ptr<Dataset> PairedById(std::unique_ptr<Dataset> data) {
  return std::make_unique<PairedData>(std::move(data));
}

std::unique_ptr<Dataset> WithTargetShift(std::unique_ptr<Dataset> data, std::int64_t shift) {
  return std::make_unique<ShiftedData>(std::move(data), shift);
}

std::unique_ptr<Dataset> WithInputsFromTargets(std::unique_ptr<Dataset> data) {
  return std::make_unique<ShiftedRightData>(std::move(data));
}

std::unique_ptr<Dataset> WithFirstMasked(std::unique_ptr<Dataset> data, std::int64_t count) {
  return std::make_unique<MaskedData>(std::move(data), count);
}

}  // namespace trainwreck
