// The memory of a stored run, from its trace: the peak and whose it was, and whether memory still
// grows where the run should have settled.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/protocol/json.h"
#include "harness/protocol/run_trace.h"
#include "harness/statistics/spread.h"

namespace trainwreck {

// Part of the peak: "activations", of memory_activations_bytes.
struct MemoryPart {
  std::string owner;
  double at_peak = 0;  // bytes, at the step of the run's peak
  // Bytes per step over the settled steps, with an interval; empty: too few.
  std::optional<statistics::Estimate> growth;
};

enum class MemoryVerdict { kUnknown, kPlateau, kGrows, kRanOut };

struct MemoryReport {
  std::string signal;  // that the peak is of: memory_peak_bytes, else memory_bytes; empty: none
  double peak = 0;     // bytes
  int peak_step = -1;
  std::vector<MemoryPart> parts;  // the largest first; their sum is the peak
  // Of the activations at the peak, bytes of each block of the model; empty: not recorded. Where
  // the run ran out of memory, those of its end.
  std::map<std::string, double> blocks;
  // All bytes at that moment, by the call site that allocated them; empty: not recorded.
  std::map<std::string, double> sites;
  // The second half of the run, where optimizer state and caches are there: its growth per step,
  // of what is allocated after the step (memory_allocated_bytes, else `signal`).
  int settled_from = -1, settled_to = -1;
  std::optional<statistics::Estimate> growth;
  std::optional<Event> out_of_memory;  // the rank's event, if it ran out

  // It grows if the whole interval lies above 0.
  MemoryVerdict verdict() const;
};

inline constexpr double kMemoryConfidence = 0.95;

MemoryReport MemoryOf(const RunTrace& trace, int rank);

// "24.0 MB", "512 B"
std::string BytesText(double bytes);

// "83% activations, 12% optimizer", the largest first and none below 1%; empty: nobody is named.
std::string SharesText(const MemoryReport& use);

// "74% blocks 0-5, 3% head" of `all` bytes, the largest first and none below 1%: blocks of one name
// with numbers in a row are taken together.
std::string BlocksText(const std::map<std::string, double>& blocks, double all);

// Call sites and their bytes, the largest first and none below 1% of their sum.
std::vector<std::pair<std::string, double>> LargestSites(const MemoryReport& use);

Json ToJson(const MemoryReport& use);

}  // namespace trainwreck
