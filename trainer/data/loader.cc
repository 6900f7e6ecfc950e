#include "trainer/data/loader.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <utility>

#include "trainer/data/tokenizer.h"

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

double CountOf(const Batch& batch, bool per_sequence) {
  if (batch.size() == 0 || per_sequence) return batch.size();
  return batch.weights.sum().item<double>();
}

double BytesOfTargets(const std::vector<Sample>& samples, const Tokenizer& tokenizer) {
  double bytes = 0;
  for (const Sample& sample : samples) {
    const at::Tensor targets = sample.target.contiguous();
    const at::Tensor weights = sample.weight.contiguous();
    for (std::int64_t i = 0; i < targets.numel(); ++i) {
      if (weights.const_data_ptr<float>()[i] == 0) continue;
      bytes +=
          static_cast<double>(tokenizer.TextOf(targets.const_data_ptr<std::int64_t>()[i]).size());
    }
  }
  return bytes;
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

Loader::Loader(Sampler& sampler, const Dataset& data, LoaderOptions options, const Clock& clock,
               EventSink& events)
    : sampler_(sampler), data_(data), options_(options), clock_(clock), events_(events) {
  if (options_.workers > 0) workers_.emplace(options_.workers);
}

std::optional<Batch> Loader::Next() {
  if (std::exchange(step_, clock_.step) != clock_.step) given_ = 0;
  while (true) {
    Drawn drawn = Take();
    if (drawn.ids.empty()) {
      if (!drawn.is_shadow) return std::nullopt;
      ++given_;
      return Batch();
    }
    if (!drawn.batch) {
      std::vector<Sample> samples = drawn.samples.get();
      if (options_.guard != LoaderGuard::kNone) samples = Guard(std::move(samples));
      if (samples.empty()) continue;
      drawn.batch = BatchOf(std::move(samples));
    }
    ++given_;
    return std::move(drawn.batch);
  }
}

const Batch* Loader::Peek() {
  if (ahead_.empty() || ahead_.front().ids.empty()) return nullptr;
  Drawn& next = ahead_.front();
  if (next.batch) return &*next.batch;
  if (next.samples.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return nullptr;
  std::vector<Sample> samples;
  try {
    samples = next.samples.get();
  } catch (const std::exception&) {
    return nullptr;  // Next() throws it
  }
  const auto has_defect = [this](const Sample& sample) { return FindDefect(sample, data_); };
  if (options_.guard != LoaderGuard::kNone &&
      std::any_of(samples.begin(), samples.end(), has_defect)) {
    return nullptr;
  }
  return &next.batch.emplace(BatchOf(std::move(samples)));
}

Batch Loader::BatchOf(std::vector<Sample> samples) const {
  return Collate(options_.trim_padding ? WithoutPadding(std::move(samples)) : samples);
}

std::int64_t Loader::epoch() const {
  return ahead_.empty() ? sampler_.epoch() : ahead_.front().epoch;
}

void Loader::Save(StateDict& state) const {
  if (ahead_.empty()) return sampler_.Save(state);
  for (const auto& [name, tensor] : ahead_.front().sampler) state[name] = tensor;
}

void Loader::Load(const StateDict& state) {
  if (!ahead_.empty()) sampler_.Load(ahead_.front().sampler);  // for what `state` lacks
  ahead_.clear();
  sampler_.Load(state);
}

Loader::Drawn Loader::Take() {
  const auto ahead = static_cast<std::size_t>(options_.workers * options_.prefetch);
  while (ahead_.empty() || (ahead_.size() <= ahead && StepOfDraw() < end_)) {
    ahead_.push_back(Draw());
  }
  Drawn drawn = std::move(ahead_.front());
  ahead_.pop_front();
  return drawn;
}

Loader::Drawn Loader::Draw() {
  Drawn drawn{.epoch = sampler_.epoch()};
  if (workers_) sampler_.Save(drawn.sampler);
  drawn.ids = sampler_.Next();
  drawn.is_shadow = drawn.ids.empty() && sampler_.is_shadow();
  if (drawn.ids.empty()) return drawn;
  std::packaged_task<std::vector<Sample>()> fetch([this, ids = drawn.ids, step = StepOfDraw()] {
    AheadScope scope(step);
    std::vector<Sample> samples;
    samples.reserve(ids.size());
    for (std::int64_t id : ids) samples.push_back(Truncated(data_.Get(id), options_.max_len));
    return samples;
  });
  drawn.samples = fetch.get_future().share();
  if (workers_) {
    workers_->Add(WorkerThreads::Task([fetch = std::move(fetch)]() mutable { fetch(); }));
  } else {
    fetch();
  }
  return drawn;
}

int Loader::StepOfDraw() const {
  const std::int64_t before =
      given_ + std::count_if(ahead_.begin(), ahead_.end(), [](const Drawn& drawn) {
        return !drawn.ids.empty() || drawn.is_shadow;
      });
  return clock_.step + static_cast<int>(before / options_.micro_batches);
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
