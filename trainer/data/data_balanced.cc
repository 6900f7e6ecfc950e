// Classes that count alike, however often they occur: data.balance.
#include <vector>

#include "trainer/data/data.h"

namespace trainwreck {
namespace {

// The ids of each class.
std::vector<std::vector<std::int64_t>> IdsByClass(const Dataset& data) {
  std::vector<std::vector<std::int64_t>> ids(static_cast<std::size_t>(data.target_limit()));
  for (std::int64_t id = 0; id < data.size(); ++id) {
    ids.at(data.Get(id).target.item<std::int64_t>()).push_back(id);
  }
  return ids;
}

class WeightedData : public DatasetAround {
 public:
  explicit WeightedData(std::unique_ptr<Dataset> data) : DatasetAround(std::move(data)) {
    const auto ids = IdsByClass(inner());
    double classes = 0;
    for (const auto& of_class : ids) classes += of_class.empty() ? 0 : 1;
    for (const auto& of_class : ids) {
      const auto count = static_cast<double>(of_class.size());
      weights_.push_back(static_cast<double>(size()) / (classes * count));
    }
  }

  Sample Get(std::int64_t id) const override {
    Sample sample = inner().Get(id);
    sample.weight = sample.weight * weights_.at(sample.target.item<std::int64_t>());
    return sample;
  }

 private:
  std::vector<double> weights_;  // by class; infinite for one that does not occur
};

class ResampledData : public DatasetAround {
 public:
  explicit ResampledData(std::unique_ptr<Dataset> data) : DatasetAround(std::move(data)) {
    for (auto& of_class : IdsByClass(inner())) {
      if (!of_class.empty()) classes_.push_back(std::move(of_class));
    }
  }

  Sample Get(std::int64_t id) const override {
    const auto turn = static_cast<std::size_t>(id);
    const std::vector<std::int64_t>& ids = classes_[turn % classes_.size()];
    Sample sample = inner().Get(ids[turn / classes_.size() % ids.size()]);
    sample.id = id;
    return sample;
  }

 private:
  std::vector<std::vector<std::int64_t>> classes_;
};

}  // namespace

std::unique_ptr<Dataset> ClassWeighted(std::unique_ptr<Dataset> data) {
  return std::make_unique<WeightedData>(std::move(data));
}

std::unique_ptr<Dataset> ClassResampled(std::unique_ptr<Dataset> data) {
  return std::make_unique<ResampledData>(std::move(data));
}

}  // namespace trainwreck
