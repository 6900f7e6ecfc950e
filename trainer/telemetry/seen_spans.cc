#include "trainer/telemetry/seen_spans.h"

#include <algorithm>
#include <functional>
#include <string_view>

namespace trainwreck {
namespace {

// Calls do(hash) for each span of the batch.
template <typename Function>
void ForEachSpan(const Batch& batch, Function do_with) {
  const at::Tensor inputs = batch.inputs.cpu().contiguous();
  const std::int64_t rows = inputs.size(0);
  if (rows == 0) return;
  const std::int64_t columns = inputs.numel() / rows;
  const std::int64_t span =
      inputs.is_floating_point() ? columns : std::min(columns, SeenSpans::kSpan);
  const std::size_t bytes = inputs.element_size();
  const auto* data = static_cast<const char*>(inputs.const_data_ptr());
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t begin = 0; begin + span <= columns; ++begin) {
      const char* at = data + static_cast<std::size_t>(row * columns + begin) * bytes;
      do_with(std::hash<std::string_view>{}({at, static_cast<std::size_t>(span) * bytes}));
    }
  }
}

}  // namespace

void SeenSpans::Add(const Batch& batch) {
  ForEachSpan(batch, [this](std::size_t hash) { hashes_.insert(hash); });
}

SeenSpans::Count SeenSpans::CountIn(const Batch& batch) const {
  Count count;
  ForEachSpan(batch, [&](std::size_t hash) {
    ++count.spans;
    count.seen += static_cast<double>(hashes_.count(hash));
  });
  return count;
}

}  // namespace trainwreck
