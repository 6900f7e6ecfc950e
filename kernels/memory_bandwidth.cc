#include "kernels/memory_bandwidth.h"

#include <algorithm>
#include <ctime>

namespace trainwreck::kernels {
namespace {

using Words [[gnu::vector_size(64), gnu::aligned(1), gnu::may_alias]] = std::uint64_t;

#if defined(__x86_64__)
__attribute__((target_clones("avx512f", "avx2", "default")))
#endif
std::uint64_t
SumWords(const char* data, std::int64_t bytes) {
  Words sums[4] = {};
  for (std::int64_t i = 0; i + 256 <= bytes; i += 256) {
    for (std::int64_t k = 0; k < 4; ++k) {
      sums[k] += *reinterpret_cast<const Words*>(data + i + 64 * k);
    }
  }
  const Words total = sums[0] + sums[1] + sums[2] + sums[3];
  std::uint64_t result = 0;
  for (int k = 0; k < 8; ++k) result += total[k];
  return result;
}

}  // namespace

double ThreadSeconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double ReadBandwidth(const void* data, std::int64_t bytes) {
  volatile std::uint64_t sink = 0;
  double best = 0;
  for (int pass = 0; pass < 20; ++pass) {
    const double start = ThreadSeconds();
    sink = SumWords(static_cast<const char*>(data), bytes);
    best = std::max(best, static_cast<double>(bytes) / (ThreadSeconds() - start) * 1e-9);
  }
  (void)sink;
  return best;
}

}  // namespace trainwreck::kernels
