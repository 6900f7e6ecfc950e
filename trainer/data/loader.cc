#include "trainer/data/loader.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace trainwreck {
namespace {

std::optional<SampleDefect> NotFinite(const Sample& sample, const at::Tensor& tensor,
                                      const char* field) {
  const at::Tensor plain = tensor.contiguous();
  const auto* values = plain.const_data_ptr<float>();
  for (std::int64_t i = 0; i < plain.numel(); ++i) {
    if (!std::isfinite(values[i])) {
      return SampleDefect{sample.id, field, i, values[i], "not finite"};
    }
  }
  return std::nullopt;
}

std::optional<SampleDefect> OutOfRange(const Sample& sample, const at::Tensor& tensor,
                                       std::int64_t limit, const char* field) {
  const at::Tensor plain = tensor.contiguous();
  const auto* values = plain.const_data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < plain.numel(); ++i) {
    if (values[i] < 0 || values[i] >= limit) {
      return SampleDefect{sample.id, field, i, static_cast<double>(values[i]),
                          "out of range [0, " + std::to_string(limit) + ")"};
    }
  }
  return std::nullopt;
}

Sample Truncated(Sample sample, std::int64_t max_len) {
  if (max_len == 0 || sample.target.dim() == 0 || sample.target.size(0) <= max_len) return sample;
  for (at::Tensor* tensor : {&sample.input, &sample.target, &sample.weight, &sample.document}) {
    if (tensor->defined()) *tensor = tensor->narrow(0, 0, max_len);
  }
  return sample;
}

// Rows of equal shape into one tensor: a copy each, where at::stack would dispatch for each.
at::Tensor StackRows(const std::vector<Sample>& samples, at::Tensor Sample::*field) {
  const at::Tensor& first = samples.front().*field;
  std::vector<std::int64_t> shape = {static_cast<std::int64_t>(samples.size())};
  shape.insert(shape.end(), first.sizes().begin(), first.sizes().end());
  at::Tensor rows = at::empty(shape, first.options());
  const auto row_bytes = static_cast<std::size_t>(first.nbytes());
  auto* out = static_cast<char*>(rows.mutable_data_ptr());
  for (const Sample& sample : samples) {
    const at::Tensor row = (sample.*field).contiguous();
    TORCH_CHECK(row.sizes() == first.sizes() && row.dtype() == first.dtype(), "sample ", sample.id,
                " has another shape or type than sample ", samples.front().id);
    std::memcpy(out, row.const_data_ptr(), row_bytes);
    out += row_bytes;
  }
  return rows;
}

std::string Describe(const SampleDefect& defect) {
  return "sample " + std::to_string(defect.sample) + ": " + defect.field + "[" +
         std::to_string(defect.position) + "] " + defect.why;
}

Json IdsOf(const std::vector<Sample>& samples) {
  Json ids = Json::array();
  for (const Sample& sample : samples) ids.push_back(sample.id);
  return ids;
}

}  // namespace

std::optional<SampleDefect> FindDefect(const Sample& sample, const Dataset& data) {
  auto defect = data.input_limit() > 0
                    ? OutOfRange(sample, sample.input, data.input_limit(), "input")
                    : NotFinite(sample, sample.input, "input");
  if (!defect) defect = OutOfRange(sample, sample.target, data.target_limit(), "target");
  if (!defect) defect = NotFinite(sample, sample.weight, "weight");
  if (!defect && !sample.weight.any().item<bool>()) {
    defect = SampleDefect{sample.id, "weight", 0, 0.0, "all 0"};
  }
  return defect;
}

Batch Collate(const std::vector<Sample>& samples) {
  Batch batch;
  if (samples.empty()) return batch;
  for (const Sample& sample : samples) batch.ids.push_back(sample.id);
  batch.inputs = StackRows(samples, &Sample::input);
  batch.targets = StackRows(samples, &Sample::target);
  batch.weights = StackRows(samples, &Sample::weight);
  if (samples.front().document.defined()) batch.documents = StackRows(samples, &Sample::document);
  return batch;
}

std::vector<Sample> WithoutPadding(std::vector<Sample> samples) {
  std::int64_t longest = 1;
  for (const Sample& sample : samples) {
    const at::Tensor weights = sample.weight.contiguous();
    const auto* weight = weights.const_data_ptr<float>();
    std::int64_t length = weights.numel();
    while (length > longest && weight[length - 1] == 0) --length;
    longest = std::max(longest, length);
  }
  for (Sample& sample : samples) sample = Truncated(std::move(sample), longest);
  return samples;
}

Loader::Loader(Sampler& sampler, const Dataset& data, LoaderOptions options, EventSink& events)
    : sampler_(sampler), data_(data), options_(options), events_(events) {}

std::optional<Batch> Loader::Next() {
  while (true) {
    const std::vector<std::int64_t> ids = sampler_.Next();
    if (ids.empty()) return sampler_.is_shadow() ? std::optional<Batch>(Batch()) : std::nullopt;
    std::vector<Sample> samples;
    samples.reserve(ids.size());
    for (std::int64_t id : ids) samples.push_back(Truncated(data_.Get(id), options_.max_len));
    if (options_.guard != LoaderGuard::kNone) samples = Guard(std::move(samples));
    if (options_.trim_padding) samples = WithoutPadding(std::move(samples));
    if (!samples.empty()) return Collate(samples);
  }
}

std::vector<Sample> Loader::Guard(std::vector<Sample> samples) {
  std::vector<Sample> good;
  for (const Sample& sample : samples) {
    const std::optional<SampleDefect> defect = FindDefect(sample, data_);
    if (!defect) {
      good.push_back(sample);
      continue;
    }
    events_.Report(events::kSampleRejected, {{"sample", defect->sample},
                                             {"field", defect->field},
                                             {"position", defect->position},
                                             {"value", EncodeNumber(defect->value)},
                                             {"why", defect->why}});
    if (options_.guard == LoaderGuard::kStop) throw GuardStop(Describe(*defect));
  }
  if (good.size() == samples.size()) return samples;
  if (options_.guard == LoaderGuard::kSkipBatch) {
    events_.Report(events::kBatchSkipped, {{"samples", IdsOf(samples)}});
    good.clear();
  }
  skipped_ += static_cast<std::int64_t>(samples.size() - good.size());
  return good;
}

}  // namespace trainwreck
