// Tells whether two runs have the same signals bit for bit, after their traces are gone. It is a
// digest that grows step by step, with marks at some steps, so a run that was stopped early is
// compared over the steps that both runs have. Signals of time and memory are left out, because
// they depend on the machine.
//
//   result.bits = BitsOf(result.trace, result.end == RunEnd::kCompleted);
//   if (const auto compared = CompareBits(before, after)) { if (!compared->same()) ...; }
#pragma once

#include <optional>
#include <string>

#include "harness/protocol/run_trace.h"

namespace trainwreck {

struct TraceBits {
  int steps = 0;        // in the digest; 0: nothing is recorded
  std::string digest;   // of all of them; 16 hexadecimal digits
  std::string signals;  // digest of the names of the signals; 8 digits
  int every = 1;        // steps from mark to mark, a power of two
  std::string marks;    // 8 digits each, of all steps up to the mark
  bool operator==(const TraceBits&) const = default;
};

// The bits of a run. If it is not `whole`, they cover only the steps that every rank has: how far a
// rank came before the run was stopped or killed is chance.
TraceBits BitsOf(const RunTrace& trace, bool whole);

struct BitsComparison {
  int steps = 0;   // the steps compared
  int first = -1;  // the first difference lies in [first, last]; -1: there is none
  int last = -1;
  bool same_signals = true;  // the same names
  bool same() const { return first < 0; }
};

// Compares the steps that both have. Empty: nothing is recorded on a side, or no mark is common.
std::optional<BitsComparison> CompareBits(const TraceBits& a, const TraceBits& b);

// The first step below `steps` at which the values have different bits, or only one has a value;
// -1: there is none. Traces do not keep payloads and signs of NaN.
int FirstDifference(const Series& a, const Series& b, int steps);

// Whether the signal ("time", "mfu", "step_s", "memory_peak_bytes", with or without a {module})
// measures the machine as well as the program.
bool IsTimeOrMemory(const std::string& signal);

}  // namespace trainwreck
