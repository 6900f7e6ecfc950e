#include "trainer/telemetry/batch_report.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/isfinite.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "harness/protocol/trace.h"
#include "trainer/data/tokenizer.h"
#include "trainer/memory_owner.h"

namespace trainwreck {
namespace {

constexpr int kMostSamples = 16;
constexpr std::int64_t kMostValues = 128;

using NamedTensor = std::pair<const char*, at::Tensor>;

std::vector<NamedTensor> TensorsOf(const Batch& batch) {
  std::vector<NamedTensor> all = {{"inputs", batch.inputs},
                                  {"targets", batch.targets},
                                  {"weights", batch.weights},
                                  {"documents", batch.documents}};
  std::erase_if(all, [](const NamedTensor& item) { return !item.second.defined(); });
  return all;
}

Json Summary(const at::Tensor& tensor) {
  const at::Tensor values = tensor.to(at::kCPU, at::kDouble);
  const at::Tensor finite = values.masked_select(at::isfinite(values));
  Json json = {{"shape", tensor.sizes().vec()},
               {"dtype", c10::toString(tensor.scalar_type())},
               {"nonfinite", values.numel() - finite.numel()}};
  if (finite.numel() > 0) {
    json["min"] = finite.min().item<double>();
    json["max"] = finite.max().item<double>();
    json["mean"] = finite.mean().item<double>();
  }
  return json;
}

Json ValuesOf(const at::Tensor& row) {
  const at::Tensor values = row.to(at::kCPU, at::kDouble).flatten().contiguous();
  Json json = Json::array();
  for (std::int64_t i = 0; i < std::min(values.numel(), kMostValues); ++i) {
    const double value = values.const_data_ptr<double>()[i];
    const bool is_count = !row.is_floating_point();
    json.push_back(is_count ? Json(static_cast<std::int64_t>(value)) : EncodeNumber(value));
  }
  return json;
}

std::string TextOf(const Json& tokens, const Tokenizer& tokenizer) {
  std::string text;
  for (const Json& token : tokens) {
    const std::string_view piece = tokenizer.TextOf(token.get<std::int64_t>());
    text += piece.empty() ? "?" : piece;
  }
  for (char& c : text) {
    if (c != '\n' && (c < ' ' || c > '~')) c = '?';
  }
  return text;
}

}  // namespace

Json DescribeBatch(const Batch& batch, std::size_t micro_batch, const Tokenizer* tokenizer) {
  const UncountedMemory measuring;
  at::NoGradGuard no_grad;
  Json tensors = Json::object(), samples = Json::array();
  for (const auto& [name, tensor] : TensorsOf(batch)) tensors[name] = Summary(tensor);
  for (int i = 0; i < std::min(batch.size(), kMostSamples); ++i) {
    Json sample = {{"id", batch.ids[i]}};
    for (const auto& [name, tensor] : TensorsOf(batch)) sample[name] = ValuesOf(tensor[i]);
    if (tokenizer != nullptr) sample["text"] = TextOf(sample["inputs"], *tokenizer);
    samples.push_back(std::move(sample));
  }
  const int left_out = std::max(0, batch.size() - kMostSamples);
  return {{"micro_batch", micro_batch},
          {"tensors", std::move(tensors)},
          {"samples", std::move(samples)},
          {"left_out", left_out}};
}

namespace events {

const EventKind kBatch("batch", {"micro_batch", "tensors", "samples", "left_out"},
                       "The micro-batch that a step works with: statistics of its tensors, and its "
                       "first samples; only where the plan's record names it");

}  // namespace events
}  // namespace trainwreck
