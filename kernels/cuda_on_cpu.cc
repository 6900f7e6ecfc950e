#include "kernels/cuda_on_cpu.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <new>
#include <stdexcept>

#include "kernels/cuda_blocks_on_cpu.h"
#include "kernels/out_of_memory.h"

// The linker's names for the begin and the end of a section.
extern char kSharedBegin[] __asm__("__start_cuda_shared") __attribute__((weak));
extern char kSharedEnd[] __asm__("__stop_cuda_shared") __attribute__((weak));

namespace trainwreck::kernels::cuda {
namespace {

constexpr unsigned char kFresh = 0xa5;   // nobody may count on zeros
constexpr unsigned char kPoison = 0xff;  // NaN, or -1
constexpr std::size_t kAlignment = 16;   // the widest load

std::size_t PageBytes() {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

std::size_t RoundUp(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }

// Pages of their own, with one at each end that cannot be touched. The data lie at the far end.
struct Allocation {
  char* pages = nullptr;
  std::size_t page_bytes = 0;
  std::size_t bytes = 0;
  bool is_device = false;

  void Protect(int protection) const {
    if (mprotect(pages, page_bytes, protection) != 0) throw std::bad_alloc();
  }
};

// By the address of the data.
std::map<char*, Allocation>& Allocations() {
  static auto& all = *new std::map<char*, Allocation>;
  return all;
}

int until_refusal = 0;  // allocations; 0: none is refused

[[noreturn]] void Refuse(std::size_t bytes, bool is_device) {
  if (is_device) throw OutOfDeviceMemory(bytes);
  throw OutOfPinnedMemory();
}

void* Allocate(std::size_t bytes, bool is_device) {
  if (until_refusal > 0 && --until_refusal == 0) Refuse(bytes, is_device);
  const std::size_t page = PageBytes();
  Allocation made{.page_bytes = RoundUp(std::max<std::size_t>(bytes, 1), page),
                  .bytes = bytes,
                  .is_device = is_device};
  void* all =
      mmap(nullptr, made.page_bytes + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (all == MAP_FAILED) Refuse(bytes, is_device);
  made.pages = static_cast<char*>(all) + page;
  made.Protect(PROT_READ | PROT_WRITE);
  std::memset(made.pages, kFresh, made.page_bytes);
  char* const data = made.pages + made.page_bytes - RoundUp(bytes, kAlignment);
  if (is_device) made.Protect(PROT_NONE);
  Allocations().emplace(data, made);
  return data;
}

// What lies around the data, up to the pages that cannot be touched, is as it was.
void CheckSurroundings(const char* data, const Allocation& made) {
  const auto is_fresh = [](const char* begin, const char* end) {
    return std::all_of(begin, end,
                       [](char byte) { return static_cast<unsigned char>(byte) == kFresh; });
  };
  made.Protect(PROT_READ | PROT_WRITE);
  const char* const end = made.pages + made.page_bytes;
  if (is_fresh(made.pages, data) && is_fresh(data + made.bytes, end)) return;
  std::fprintf(stderr, "a buffer of %zu bytes was written outside of its bounds\n", made.bytes);
  std::abort();
}

void Free(void* data) {
  if (data == nullptr) return;
  const auto found = Allocations().find(static_cast<char*>(data));
  if (found == Allocations().end()) {
    std::fprintf(stderr, "memory was freed that was not allocated, or was freed before\n");
    std::abort();
  }
  CheckSurroundings(found->first, found->second);
  munmap(found->second.pages - PageBytes(), found->second.page_bytes + 2 * PageBytes());
  Allocations().erase(found);
}

void RequireKnown(const void* data, std::size_t bytes) {
  const char* const begin = static_cast<const char*>(data);
  auto after = Allocations().upper_bound(const_cast<char*>(begin));
  if (after != Allocations().begin()) {
    const auto& [start, made] = *--after;
    if (begin + bytes <= start + made.bytes) return;
  }
  throw std::runtime_error("a copy of memory that is neither the device's nor pinned");
}

// Device memory can be touched while this lives: a kernel or a copy runs.
class OnDevice {
 public:
  OnDevice() { Protect(PROT_READ | PROT_WRITE); }
  ~OnDevice() { Protect(PROT_NONE); }
  OnDevice(const OnDevice&) = delete;

 private:
  static void Protect(int protection) {
    for (const auto& [data, made] : Allocations()) {
      if (made.is_device) made.Protect(protection);
    }
  }
};

std::map<Stream, std::deque<std::function<void()>>> queues;
std::string sticky_error;

struct EventState {
  Stream stream = nullptr;
  bool done = true;
};

CallCounts counts;

void RequireNoError() {
  if (!sticky_error.empty()) throw std::runtime_error("cudaErrorLaunchFailure: " + sticky_error);
}

bool RunOne(Stream stream) {
  auto& queue = queues[stream];
  if (queue.empty()) return false;
  const std::function<void()> work = std::move(queue.front());
  queue.pop_front();
  try {
    const OnDevice running;
    work();
  } catch (const std::exception& error) {
    sticky_error = error.what();
    for (auto& [other, waiting] : queues) waiting.clear();
    RequireNoError();
  }
  return true;
}

void FinishAll() noexcept {
  // As on a device: what is under way may still use the memory.
  try {
    for (auto& [stream, queue] : queues) {
      while (RunOne(stream)) continue;
    }
  } catch (const std::exception&) {
    // The next call reports it.
  }
}

}  // namespace

void PoisonSharedMemory() {
  if (kSharedBegin != nullptr) {
    std::memset(kSharedBegin, kPoison, static_cast<std::size_t>(kSharedEnd - kSharedBegin));
  }
}

void RefuseAllocation(int number) { until_refusal = number; }
bool HasRefused() { return until_refusal == 0; }
std::size_t LiveBuffers() { return Allocations().size(); }

void ResetDevice() {
  sticky_error.clear();
  queues.clear();
}

void Enqueue(std::function<void()> thread, unsigned blocks, unsigned threads, Stream stream) {
  RequireNoError();
  if (blocks == 0 || threads == 0 || threads > 1024) {
    throw std::runtime_error("cudaLaunchKernel: invalid configuration argument");
  }
  ++counts.launches;
  queues[stream].push_back(
      [thread = std::move(thread), blocks, threads] { RunBlocks(thread, blocks, threads); });
}

std::string WhyUnusable() { return ""; }
std::string DeviceName() { return "none: the kernels run on the CPU"; }
std::string ErrorLeftBehind() { return sticky_error; }
CallCounts Counts() { return counts; }

void* AllocateDevice(std::size_t bytes) {
  RequireNoError();
  ++counts.synchronising;
  return Allocate(bytes, /*is_device=*/true);
}
void* AllocatePinned(std::size_t bytes) {
  RequireNoError();
  ++counts.synchronising;
  return Allocate(bytes, /*is_device=*/false);
}
void FreeDevice(void* data) noexcept {
  ++counts.synchronising;
  FinishAll();
  Free(data);
}
void FreePinned(void* data) noexcept { FreeDevice(data); }

Event MakeEvent() { return new EventState; }
void FreeEvent(Event event) noexcept { delete static_cast<EventState*>(event); }

void WaitFor(Event event) {
  RequireNoError();
  ++counts.synchronising;
  EventState* state = static_cast<EventState*>(event);
  while (!state->done && RunOne(state->stream)) continue;
}

void WaitForStream(Stream stream) {
  RequireNoError();
  ++counts.synchronising;
  while (RunOne(stream)) continue;
}

void CopyAsync(void* to, const void* from, std::size_t bytes, Stream stream) {
  RequireNoError();
  RequireKnown(to, bytes);
  RequireKnown(from, bytes);
  ++counts.copies;
  queues[stream].push_back([=] { std::memcpy(to, from, bytes); });
}

void ClearAsync(void* data, std::size_t bytes, Stream stream) {
  RequireNoError();
  RequireKnown(data, bytes);
  ++counts.copies;
  queues[stream].push_back([=] { std::memset(data, 0, bytes); });
}

void Record(Event event, Stream stream) {
  RequireNoError();
  EventState* state = static_cast<EventState*>(event);
  *state = {stream, false};
  queues[stream].push_back([=] { state->done = true; });
}

bool IsDone(Event event) {
  RequireNoError();
  const EventState* state = static_cast<EventState*>(event);
  if (!state->done) RunOne(state->stream);
  return state->done;
}

void LaunchKernel(const void*, unsigned, unsigned, void**, Stream) {
  throw std::logic_error("kernels on the CPU are launched by Enqueue");
}

}  // namespace trainwreck::kernels::cuda
