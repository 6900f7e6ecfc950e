#include "trainer/data/overlap.h"

#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace trainwreck {
namespace {

std::string BytesOf(const at::Tensor& tensor) {
  const at::Tensor plain = tensor.contiguous();
  return {static_cast<const char*>(plain.const_data_ptr()), plain.nbytes()};
}

// The n-grams of a row, each once.
std::unordered_set<std::size_t> GramsOf(const at::Tensor& tokens) {
  const at::Tensor plain = tokens.contiguous();
  const auto* data = reinterpret_cast<const char*>(plain.const_data_ptr<std::int64_t>());
  const std::int64_t length = std::min(plain.size(0), kNearGram);
  std::unordered_set<std::size_t> grams;
  for (std::int64_t begin = 0; begin + length <= plain.size(0); ++begin) {
    const auto at = static_cast<std::size_t>(begin) * sizeof(std::int64_t);
    grams.insert(std::hash<std::string_view>{}(
        {data + at, static_cast<std::size_t>(length) * sizeof(std::int64_t)}));
  }
  return grams;
}

// Finds held-out samples that are near to a training sample, by number.
class NearRows {
 public:
  virtual ~NearRows() = default;
  virtual std::vector<std::int64_t> Near(const Sample& sample) const = 0;
};

class NearTokens : public NearRows {
 public:
  explicit NearTokens(const Dataset& held_out) {
    for (std::int64_t row = 0; row < held_out.size(); ++row) {
      for (const std::size_t gram : GramsOf(held_out.Get(row).input)) rows_[gram].push_back(row);
    }
  }

  std::vector<std::int64_t> Near(const Sample& sample) const override {
    const auto grams = GramsOf(sample.input);
    std::unordered_map<std::int64_t, std::int64_t> shared;  // with each held-out row
    for (const std::size_t gram : grams) {
      const auto found = rows_.find(gram);
      if (found == rows_.end()) continue;
      for (const std::int64_t row : found->second) ++shared[row];
    }
    std::vector<std::int64_t> near;
    for (const auto& [row, count] : shared) {
      if (static_cast<double>(count) >= kNearShare * static_cast<double>(grams.size())) {
        near.push_back(row);
      }
    }
    return near;
  }

 private:
  std::unordered_map<std::size_t, std::vector<std::int64_t>> rows_;  // that have the n-gram
};

class NearFeatures : public NearRows {
 public:
  explicit NearFeatures(const Dataset& held_out) {
    std::vector<at::Tensor> rows;
    for (std::int64_t row = 0; row < held_out.size(); ++row)
      rows.push_back(held_out.Get(row).input);
    rows_ = at::stack(rows);
    furthest_ = rows_.square().sum(1) * (kNearDistance * kNearDistance);
  }

  std::vector<std::int64_t> Near(const Sample& sample) const override {
    const at::Tensor squares = (rows_ - sample.input).square().sum(1);
    const at::Tensor near = at::where(squares.le(furthest_))[0].contiguous();
    const auto* begin = near.const_data_ptr<std::int64_t>();
    return {begin, begin + near.numel()};
  }

 private:
  at::Tensor rows_;      // [held-out samples, features]
  at::Tensor furthest_;  // squared distance of a near one; [held-out samples]
};

}  // namespace

std::vector<std::int64_t> Overlap::All() const {
  std::vector<std::int64_t> all;
  std::merge(equal.begin(), equal.end(), near.begin(), near.end(), std::back_inserter(all));
  return all;
}

Overlap FindOverlap(const Dataset& training, const Dataset& held_out) {
  std::unordered_map<std::string, std::vector<std::int64_t>> rows;  // held-out ones, by their bytes
  for (std::int64_t row = 0; row < held_out.size(); ++row) {
    rows[BytesOf(held_out.Get(row).input)].push_back(row);
  }
  std::unique_ptr<NearRows> near;
  if (held_out.input_limit() > 0) {
    near = std::make_unique<NearTokens>(held_out);
  } else {
    near = std::make_unique<NearFeatures>(held_out);
  }
  Overlap overlap;
  std::set<std::int64_t> seen;
  for (std::int64_t id = 0; id < training.size(); ++id) {
    const Sample sample = training.Get(id);
    const std::vector<std::int64_t> near_rows = near->Near(sample);
    seen.insert(near_rows.begin(), near_rows.end());
    if (const auto equal = rows.find(BytesOf(sample.input)); equal != rows.end()) {
      overlap.equal.push_back(id);
      seen.insert(equal->second.begin(), equal->second.end());
    } else if (!near_rows.empty()) {
      overlap.near.push_back(id);
    }
  }
  overlap.held_out_seen = static_cast<std::int64_t>(seen.size());
  return overlap;
}

}  // namespace trainwreck
