// The threads of a block as threads of the system, for the thread sanitizer: a missing barrier is a
// race that it reports, whatever the order. Barriers order memory, and so do the ends of blocks.
// Shuffles do not, as on a device: their values travel by relaxed atomics, which x86 keeps in
// order.
#include <pthread.h>
#include <sched.h>

#include <array>
#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include "kernels/cuda_blocks_on_cpu.h"
#include "kernels/cuda_on_cpu.h"

namespace trainwreck::kernels::cuda {
namespace {

constexpr std::size_t kMostThreads = 1024;

struct Lane {
  std::atomic<std::uint64_t> bits{0};
  std::atomic<std::uint64_t> given{0}, taken{0};  // how many values
};

std::array<Lane, kMostThreads> lanes;

// One after another in turn: who is late to leave a barrier would else be taken to have waited for
// what others did since.
constexpr unsigned kBarriers = 2;
std::array<pthread_barrier_t, kBarriers> barriers;
thread_local unsigned turn = 0;

void WaitAtBarrier() { pthread_barrier_wait(&barriers[turn++ % kBarriers]); }

void AwaitRelaxed(const std::atomic<std::uint64_t>& count, std::uint64_t least) {
  while (count.load(std::memory_order_relaxed) < least) sched_yield();
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

void StoreRelaxed(std::atomic<std::uint64_t>& into, std::uint64_t value) {
  std::atomic_signal_fence(std::memory_order_seq_cst);
  into.store(value, std::memory_order_relaxed);
}

}  // namespace

void SetSchedule(std::uint64_t) {}  // is the system's

void __syncthreads(Site) { WaitAtBarrier(); }

std::uint64_t ExchangeBits(unsigned, std::uint64_t bits, unsigned lane_mask, Site) {
  Lane& mine = lanes[threadIdx.x];
  Lane& other = lanes[threadIdx.x ^ lane_mask];
  const std::uint64_t values = mine.given.load(std::memory_order_relaxed) + 1;
  StoreRelaxed(mine.bits, bits);
  StoreRelaxed(mine.given, values);
  AwaitRelaxed(other.given, values);
  const std::uint64_t got = other.bits.load(std::memory_order_relaxed);
  StoreRelaxed(mine.taken, values);
  AwaitRelaxed(other.taken, values);  // or the next value would come too early
  return got;
}

void RunBlocks(const std::function<void()>& thread, unsigned blocks, unsigned threads) {
  for (pthread_barrier_t& barrier : barriers) pthread_barrier_init(&barrier, nullptr, threads);
  for (Lane& lane : lanes) {
    lane.given = 0;
    lane.taken = 0;
  }
  const auto run = [&](unsigned index) {
    threadIdx.x = index;
    blockDim.x = threads;
    for (unsigned block = 0; block < blocks; ++block) {
      blockIdx.x = block;
      if (index == 0) PoisonSharedMemory();
      WaitAtBarrier();
      thread();
      WaitAtBarrier();
    }
  };
  std::vector<std::thread> all;
  for (unsigned index = 0; index < threads; ++index) all.emplace_back(run, index);
  for (std::thread& one : all) one.join();
  for (pthread_barrier_t& barrier : barriers) pthread_barrier_destroy(&barrier);
}

}  // namespace trainwreck::kernels::cuda
