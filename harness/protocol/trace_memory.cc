#include "harness/protocol/trace_memory.h"

namespace trainwreck {
namespace {

constexpr std::int64_t kNodeBytes = 48;  // of a map: the links, and what the allocator adds

template <typename Numbers>
std::int64_t HeapBytes(const Numbers& numbers) {
  return static_cast<std::int64_t>(numbers.capacity() * sizeof(numbers[0]));
}

std::int64_t SeriesBytes(const Series& series) {
  return static_cast<std::int64_t>(sizeof(Series)) + HeapBytes(series.values) +
         HeapBytes(series.present);
}

}  // namespace

// Recurses: no deeper than a parsed text may be nested.
std::int64_t MemoryBytes(const Json& value) {
  std::int64_t bytes = sizeof(Json);
  if (value.is_object()) {
    for (const auto& [key, field] : value.items()) {
      bytes += kNodeBytes + static_cast<std::int64_t>(sizeof(std::string) + key.size()) +
               MemoryBytes(field);
    }
  } else if (value.is_array()) {
    for (const Json& element : value) bytes += MemoryBytes(element);
    bytes += kNodeBytes;
  } else if (value.is_string()) {
    bytes += kNodeBytes + static_cast<std::int64_t>(value.get_ref<const std::string&>().size());
  }
  return bytes;
}

std::int64_t MemoryBytes(const RunTrace& trace) {
  std::int64_t bytes = 0;
  for (const auto& [name, series] : trace.series) {
    bytes += kNodeBytes + static_cast<std::int64_t>(sizeof(name) + name.first.size()) +
             SeriesBytes(series);
  }
  for (const auto& [rank, series] : trace.time_s) bytes += kNodeBytes + SeriesBytes(series);
  for (const Event& event : trace.events) {
    bytes +=
        static_cast<std::int64_t>(sizeof(Event) + event.name.size()) + MemoryBytes(event.fields);
  }
  for (const auto& [rank, collectives] : trace.collectives) {
    for (const Collective& one : collectives) {
      bytes += static_cast<std::int64_t>(sizeof(Collective) + one.op.size() + one.shape.size() +
                                         one.dtype.size());
    }
  }
  for (const auto& [rank, start] : trace.starts) bytes += kNodeBytes + MemoryBytes(start);
  return bytes;
}

}  // namespace trainwreck
