// A data set whose samples an injector may change as they are fetched:
// injector.Visit(sample, data), one at a time.
#pragma once

#include <memory>
#include <mutex>
#include <utility>

#include "trainer/parts.h"

namespace trainwreck {

template <typename Visitor>
class VisitedDataset : public DatasetAround {
 public:
  // `visitor` must outlive it.
  VisitedDataset(std::unique_ptr<Dataset> inner, Visitor& visitor)
      : DatasetAround(std::move(inner)), visitor_(visitor) {}

  Sample Get(std::int64_t id) const override {
    Sample sample = inner().Get(id);
    std::lock_guard lock(mutex_);
    visitor_.Visit(sample, inner());
    return sample;
  }

 private:
  Visitor& visitor_;
  mutable std::mutex mutex_;
};

}  // namespace trainwreck
