#include "harness/launch/trace_bits.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "harness/protocol/digest.h"

namespace trainwreck {
namespace {

constexpr int kMaxMarks = 64;
constexpr std::size_t kMarkDigits = 8;

std::string Hexadecimal(std::uint64_t digest, std::size_t digits) {
  std::string text(digits, '0');
  for (std::size_t i = digits; i-- > 0; digest >>= 4) text[i] = "0123456789abcdef"[digest & 15];
  return text;
}

std::uint64_t DigestOf(double value, std::uint64_t seed) {
  // Payloads and signs of NaN are no part of a trace.
  if (std::isnan(value)) value = std::numeric_limits<double>::quiet_NaN();
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  return Digest({bytes, sizeof bytes}, seed);
}

int StepsOfAllRanks(const RunTrace& trace) {
  int steps = std::numeric_limits<int>::max();
  for (int rank = 0; rank < trace.world_size; ++rank) {
    steps = std::min(steps, trace.last_step(rank) + 1);
  }
  return steps;
}

int StepsOfAnyRank(const RunTrace& trace) {
  std::size_t steps = 0;
  for (const auto& [key, series] : trace.series) steps = std::max(steps, series.values.size());
  return static_cast<int>(steps);
}

bool SameBits(double a, double b) {
  if (std::isnan(a) && std::isnan(b)) return true;
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

}  // namespace

int FirstDifference(const Series& a, const Series& b, int steps) {
  for (int step = 0; step < steps; ++step) {
    if (a.Has(step) != b.Has(step)) return step;
    if (a.Has(step) && !SameBits(a.values[step], b.values[step])) return step;
  }
  return -1;
}

bool IsTimeOrMemory(const std::string& signal) {
  const std::string name = signal.substr(0, signal.find('{'));
  return name == "time" || name == "mfu" || name.starts_with("memory_") || name.ends_with("_s");
}

TraceBits BitsOf(const RunTrace& trace, bool whole) {
  TraceBits bits;
  bits.steps = StepsOfAnyRank(trace);
  if (!whole) bits.steps = std::min(bits.steps, StepsOfAllRanks(trace));
  // A sum of what each signal adds to a step, so that the order of the signals is nothing.
  std::vector<std::uint64_t> sums(static_cast<std::size_t>(bits.steps));
  std::uint64_t names = 0;
  for (const auto& [key, series] : trace.series) {
    const auto& [signal, rank] = key;
    if (IsTimeOrMemory(signal)) continue;
    const std::uint64_t name = Digest(signal + '\n' + std::to_string(rank));
    names += name;
    const int end = std::min(bits.steps, static_cast<int>(series.values.size()));
    for (int step = 0; step < end; ++step) {
      if (series.Has(step)) sums[step] += DigestOf(series.values[step], name);
    }
  }
  while (bits.steps / bits.every > kMaxMarks) bits.every *= 2;
  std::uint64_t digest = 0;
  for (int step = 0; step < bits.steps; ++step) {
    digest = Digest({reinterpret_cast<const char*>(&sums[step]), sizeof sums[step]}, digest);
    if ((step + 1) % bits.every == 0) bits.marks += Hexadecimal(digest, kMarkDigits);
  }
  bits.digest = Hexadecimal(digest, 16);
  bits.signals = Hexadecimal(names, kMarkDigits);
  return bits;
}

std::optional<BitsComparison> CompareBits(const TraceBits& a, const TraceBits& b) {
  if (a.steps <= 0 || b.steps <= 0 || a.every <= 0 || b.every <= 0) return std::nullopt;
  BitsComparison result;
  const int common = std::min(a.steps, b.steps), every = std::max(a.every, b.every);
  auto mark = [](const TraceBits& bits, int step) {
    const std::size_t at = static_cast<std::size_t>(step / bits.every - 1) * kMarkDigits;
    return at < bits.marks.size() ? bits.marks.substr(at, kMarkDigits) : "";
  };
  for (int step = every; step <= common; step += every) {
    result.steps = step;
    if (mark(a, step) == mark(b, step)) continue;
    result.first = step - every;
    result.last = step - 1;
    break;
  }
  if (a.steps == b.steps) {
    result.same_signals = a.signals == b.signals;
    if (result.same() && a.digest != b.digest) {
      result.first = result.steps;
      result.last = a.steps - 1;
    }
    result.steps = a.steps;
  }
  if (result.steps == 0) return std::nullopt;
  return result;
}

}  // namespace trainwreck
