// Data sets made of other ones: mixed, with columns left out, with samples left out, cached.
#include <charconv>
#include <map>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "trainer/data/data.h"

namespace trainwreck {
namespace {

class MixedData : public DatasetAround {
 public:
  MixedData(std::unique_ptr<Dataset> first, std::unique_ptr<Dataset> second, double share)
      : DatasetAround(std::move(first)), second_(std::move(second)), share_(share) {}

  Sample Get(std::int64_t id) const override {
    const auto from_second = [this](std::int64_t end) {
      return static_cast<std::int64_t>(share_ * static_cast<double>(end));
    };
    return from_second(id + 1) > from_second(id) ? second_->Get(id) : inner().Get(id);
  }

 private:
  std::unique_ptr<Dataset> second_;
  double share_;
};

class DataWithoutColumns : public DatasetAround {
 public:
  DataWithoutColumns(std::unique_ptr<Dataset> inner, std::vector<std::int64_t> columns)
      : DatasetAround(std::move(inner)), columns_(std::move(columns)) {}

  Sample Get(std::int64_t id) const override {
    Sample sample = inner().Get(id);
    sample.input = sample.input.clone();
    for (const std::int64_t column : columns_) sample.input.select(0, column).zero_();
    return sample;
  }

 private:
  std::vector<std::int64_t> columns_;
};

class CachedData : public DatasetAround {
 public:
  using DatasetAround::DatasetAround;

  Sample Get(std::int64_t id) const override {
    {
      std::lock_guard lock(mutex_);
      if (const auto kept = samples_.find(id); kept != samples_.end()) return kept->second;
    }
    Sample sample = inner().Get(id);  // other threads fetch theirs meanwhile
    std::lock_guard lock(mutex_);
    return samples_.try_emplace(id, std::move(sample)).first->second;
  }

  void ReadWith(const std::shared_ptr<const Tokenizer>& tokenizer) override {
    DatasetAround::ReadWith(tokenizer);
    samples_.clear();
  }

 private:
  mutable std::mutex mutex_;
  mutable std::map<std::int64_t, Sample> samples_;
};

class DataWithoutSamples : public DatasetAround {
 public:
  DataWithoutSamples(std::unique_ptr<Dataset> inner, const std::vector<std::int64_t>& dropped)
      : DatasetAround(std::move(inner)) {
    auto next = dropped.begin();
    for (std::int64_t id = 0; id < this->inner().size(); ++id) {
      if (next != dropped.end() && *next == id) {
        ++next;
      } else {
        kept_.push_back(id);
      }
    }
    if (kept_.empty()) throw std::runtime_error("data.duplicates: no training sample is left");
  }

  std::int64_t size() const override { return static_cast<std::int64_t>(kept_.size()); }

  Sample Get(std::int64_t id) const override {
    Sample sample = inner().Get(kept_.at(static_cast<std::size_t>(id)));
    sample.id = id;
    return sample;
  }

 private:
  std::vector<std::int64_t> kept_;
};

// The numbers in "3,7"; each below `limit`.
std::vector<std::int64_t> ColumnsIn(const std::string& text, std::int64_t limit) {
  std::vector<std::int64_t> columns;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at <= end) {
    std::int64_t column = -1;
    const auto [rest, error] = std::from_chars(at, end, column);
    if (error != std::errc() || column < 0 || column >= limit || (rest != end && *rest != ',')) {
      throw std::runtime_error("data.drop_features: `" + text +
                               "` are not numbers of columns, 0 to " + std::to_string(limit - 1));
    }
    columns.push_back(column);
    at = rest + 1;
  }
  return columns;
}

}  // namespace

std::unique_ptr<Dataset> Mixed(std::unique_ptr<Dataset> first, std::unique_ptr<Dataset> second,
                               double share) {
  return std::make_unique<MixedData>(std::move(first), std::move(second), share);
}

std::unique_ptr<Dataset> WithoutColumns(std::unique_ptr<Dataset> data, const std::string& columns) {
  std::vector<std::int64_t> numbers = ColumnsIn(columns, data->Get(0).input.size(0));
  return std::make_unique<DataWithoutColumns>(std::move(data), std::move(numbers));
}

std::unique_ptr<Dataset> WithoutSamples(std::unique_ptr<Dataset> data,
                                        const std::vector<std::int64_t>& dropped) {
  return std::make_unique<DataWithoutSamples>(std::move(data), dropped);
}

std::unique_ptr<Dataset> Cached(std::unique_ptr<Dataset> data) {
  return std::make_unique<CachedData>(std::move(data));
}

}  // namespace trainwreck
