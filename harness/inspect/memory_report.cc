#include "harness/inspect/memory_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "harness/protocol/memory_signals.h"
#include "harness/statistics/trend.h"

namespace trainwreck {
namespace {

std::optional<statistics::Estimate> GrowthOf(const Series& series, int from, int to) {
  std::vector<double> steps, values;
  for (int step = from; step <= to; ++step) {
    if (!series.Has(step)) continue;
    steps.push_back(step);
    values.push_back(series.values[step]);
  }
  return statistics::Slope(std::move(steps), std::move(values), kMemoryConfidence);
}

// Bytes by name in an event's field; empty: it has none.
std::map<std::string, double> BytesIn(const Event& event, const char* field) {
  std::map<std::string, double> by_name;
  const auto found = event.fields.find(field);
  if (found == event.fields.end() || !found->is_object()) return by_name;
  for (const auto& [name, bytes] : found->items()) {
    if (bytes.is_number()) by_name[name] = bytes.get<double>();
  }
  return by_name;
}

// "blocks" and 3 of "blocks.3"; no number: -1.
std::pair<std::string, int> Numbered(const std::string& block) {
  const std::size_t dot = block.rfind('.');
  int number = -1;
  if (dot == std::string::npos) return {block, number};
  const char* end = block.data() + block.size();
  const auto [rest, error] = std::from_chars(block.data() + dot + 1, end, number);
  if (error != std::errc() || rest != end) return {block, -1};
  return {block.substr(0, dot), number};
}

// Blocks with numbers in a row, "blocks 0-5".
struct BlockRange {
  std::string name;
  int first = -1, last = -1;
  double bytes = 0;
  std::string text() const {
    if (first < 0) return name;
    return first == last ? fmt::format("{} {}", name, first)
                         : fmt::format("{} {}-{}", name, first, last);
  }
};

void FindPeak(const Series& series, MemoryReport& use) {
  for (int step = 0; step < static_cast<int>(series.values.size()); ++step) {
    if (!series.Has(step)) continue;
    use.settled_to = step;
    if (use.peak_step >= 0 && series.values[step] <= use.peak) continue;
    use.peak = series.values[step];
    use.peak_step = step;
  }
  use.settled_from = (use.settled_to + 1) / 2;
}

Json EstimateJson(const std::optional<statistics::Estimate>& estimate) {
  if (!estimate) return nullptr;
  return {{"value", estimate->value}, {"interval", {estimate->lo, estimate->hi}}};
}

const char* WordOf(MemoryVerdict verdict) {
  switch (verdict) {
    case MemoryVerdict::kUnknown:
      return "unknown";
    case MemoryVerdict::kPlateau:
      return "plateau";
    case MemoryVerdict::kGrows:
      return "grows";
    case MemoryVerdict::kRanOut:
      return "ran_out";
  }
  return "";
}

}  // namespace

MemoryVerdict MemoryReport::verdict() const {
  if (out_of_memory) return MemoryVerdict::kRanOut;
  if (!growth) return MemoryVerdict::kUnknown;
  return growth->lo > 0 ? MemoryVerdict::kGrows : MemoryVerdict::kPlateau;
}

MemoryReport MemoryOf(const RunTrace& trace, int rank) {
  MemoryReport use;
  for (const Event& event : trace.events) {
    if (event.name == "out_of_memory" && event.rank == rank) use.out_of_memory = event;
    // Each is of a higher peak than those before.
    if (event.name == "memory_blocks" && event.rank == rank) {
      use.blocks = BytesIn(event, "by_block");
      use.sites = BytesIn(event, "by_site");
    }
  }
  if (use.out_of_memory) {
    use.blocks = BytesIn(*use.out_of_memory, "activations_by_block");
    use.sites = BytesIn(*use.out_of_memory, "bytes_by_site");
  }
  const Series* peak = trace.Find(kPeakMemory, rank);
  use.signal = peak != nullptr ? kPeakMemory : kResidentMemory;
  if (peak == nullptr) peak = trace.Find(kResidentMemory, rank);
  if (peak == nullptr) {
    use.signal.clear();
    return use;
  }
  FindPeak(*peak, use);
  const Series* allocated = trace.Find(kAllocatedMemory, rank);
  use.growth =
      GrowthOf(allocated != nullptr ? *allocated : *peak, use.settled_from, use.settled_to);
  for (const auto& [key, series] : trace.series) {
    const std::string owner = MemoryOwnerIn(key.first);
    if (key.second != rank || owner.empty() || !series.Has(use.peak_step)) continue;
    use.parts.push_back({.owner = owner,
                         .at_peak = series.values[use.peak_step],
                         .growth = GrowthOf(series, use.settled_from, use.settled_to)});
  }
  std::stable_sort(use.parts.begin(), use.parts.end(),
                   [](const MemoryPart& a, const MemoryPart& b) { return a.at_peak > b.at_peak; });
  return use;
}

std::string BytesText(double bytes) {
  constexpr const char* kUnits[] = {"kB", "MB", "GB", "TB"};
  double scaled = std::abs(bytes);
  if (!(scaled >= 1000)) return fmt::format("{:.4g} B", bytes);
  int unit = -1;
  while (scaled >= 999.95 && unit < 3) {
    scaled /= 1000;
    ++unit;
  }
  return fmt::format("{}{:.4g} {}", bytes < 0 ? "-" : "", scaled, kUnits[unit]);
}

std::string SharesText(const MemoryReport& use) {
  std::string text;
  for (const MemoryPart& part : use.parts) {
    const double share = use.peak > 0 ? part.at_peak / use.peak : 0;
    if (share < 0.01) continue;
    text += fmt::format("{}{:.0f}% {}", text.empty() ? "" : ", ", 100 * share, part.owner);
  }
  return text;
}

std::string BlocksText(const std::map<std::string, double>& blocks, double all) {
  std::vector<std::pair<std::pair<std::string, int>, double>> numbered;
  for (const auto& [block, bytes] : blocks) numbered.emplace_back(Numbered(block), bytes);
  std::sort(numbered.begin(), numbered.end());
  std::vector<BlockRange> ranges;
  for (const auto& [block, bytes] : numbered) {
    const auto& [name, number] = block;
    const bool goes_on = number >= 0 && !ranges.empty() && ranges.back().name == name &&
                         ranges.back().last == number - 1;
    if (!goes_on) ranges.push_back({name, number, number, 0});
    ranges.back().last = number;
    ranges.back().bytes += bytes;
  }
  std::stable_sort(ranges.begin(), ranges.end(),
                   [](const BlockRange& a, const BlockRange& b) { return a.bytes > b.bytes; });
  std::string text;
  for (const BlockRange& range : ranges) {
    const double share = all > 0 ? range.bytes / all : 0;
    if (share < 0.01) continue;
    text += fmt::format("{}{:.0f}% {}", text.empty() ? "" : ", ", 100 * share, range.text());
  }
  return text;
}

std::vector<std::pair<std::string, double>> LargestSites(const MemoryReport& use) {
  double all = 0;
  for (const auto& [site, bytes] : use.sites) all += bytes;
  std::vector<std::pair<std::string, double>> largest;
  for (const auto& [site, bytes] : use.sites) {
    if (bytes >= 0.01 * all) largest.emplace_back(site, bytes);
  }
  std::stable_sort(largest.begin(), largest.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return largest;
}

Json ToJson(const MemoryReport& use) {
  Json parts = Json::array();
  for (const MemoryPart& part : use.parts) {
    parts.push_back({{"owner", part.owner},
                     {"at_peak_bytes", part.at_peak},
                     {"growth", EstimateJson(part.growth)}});
  }
  return {{"schema", "trainwreck/memory"},
          {"version", 1},
          {"verdict", WordOf(use.verdict())},
          {"signal", use.signal.empty() ? Json() : Json(use.signal)},
          {"peak_bytes", use.signal.empty() ? Json() : Json(use.peak)},
          {"peak_step", use.signal.empty() ? Json() : Json(use.peak_step)},
          {"parts", parts},
          {"activations_by_block", use.blocks},
          {"bytes_by_site", use.sites},
          {"settled_steps", {use.settled_from, use.settled_to}},
          {"growth", EstimateJson(use.growth)},
          {"out_of_memory", use.out_of_memory ? use.out_of_memory->fields : Json()}};
}

}  // namespace trainwreck
