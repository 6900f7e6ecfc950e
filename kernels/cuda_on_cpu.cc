#include "kernels/cuda_on_cpu.h"

#include <ucontext.h>

#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <stdexcept>
#include <vector>

namespace trainwreck::kernels::cuda {
namespace {

constexpr std::size_t kStackBytes = std::size_t{64} * 1024;

// The threads of one block. Each runs until it needs another's value or a barrier, then the next
// one runs.
class Block {
 public:
  Block(unsigned threads, const std::function<void()>& body)
      : body_(body), fibers_(threads), gives_(threads) {
    for (Fiber& fiber : fibers_) Prepare(fiber);
  }

  void Run() {
    running_ = this;
    bool any = true;
    while (any) {
      any = false;
      for (current_ = 0; current_ < fibers_.size(); ++current_) {
        if (fibers_[current_].finished) continue;
        any = true;
        threadIdx.x = static_cast<unsigned>(current_);
        swapcontext(&scheduler_, &fibers_[current_].context);
      }
    }
    running_ = nullptr;
  }

  // Returns when every other thread has come to its own next call.
  void Yield() {
    Fiber& fiber = fibers_[current_];
    swapcontext(&fiber.context, &scheduler_);
  }

  std::uint64_t Exchange(std::uint64_t bits, unsigned mask) {
    const std::size_t self = current_;
    gives_[self] = bits;
    Yield();
    const std::uint64_t other = gives_[self ^ mask];
    Yield();  // nobody gives anew before all have taken
    return other;
  }

  static Block* running() { return running_; }

 private:
  struct Fiber {
    ucontext_t context;
    bool finished = false;
  };

  void Prepare(Fiber& fiber) {
    const std::size_t index = static_cast<std::size_t>(&fiber - fibers_.data());
    // Stacks are kept: a test starts thousands of blocks, one after another.
    static std::vector<std::unique_ptr<char[]>> stacks;
    while (stacks.size() <= index) stacks.push_back(std::make_unique<char[]>(kStackBytes));
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = stacks[index].get();
    fiber.context.uc_stack.ss_size = kStackBytes;
    fiber.context.uc_link = &scheduler_;
    makecontext(&fiber.context, &Block::Enter, 0);
  }

  static void Enter() {
    Block* const block = running_;
    block->body_();
    block->fibers_[block->current_].finished = true;
  }

  static inline Block* running_ = nullptr;
  const std::function<void()>& body_;
  std::vector<Fiber> fibers_;
  std::vector<std::uint64_t> gives_;
  std::size_t current_ = 0;
  ucontext_t scheduler_;
};

std::map<Stream, std::deque<std::function<void()>>> queues;

struct EventState {
  Stream stream = nullptr;
  bool done = true;
};

CallCounts counts;

bool RunOne(Stream stream) {
  auto& queue = queues[stream];
  if (queue.empty()) return false;
  const std::function<void()> work = std::move(queue.front());
  queue.pop_front();
  work();
  return true;
}

}  // namespace

void __syncthreads() { Block::running()->Yield(); }

std::uint64_t ExchangeBits(std::uint64_t bits, unsigned mask) {
  return Block::running()->Exchange(bits, mask);
}

void Enqueue(std::function<void()> thread, unsigned blocks, unsigned threads, Stream stream) {
  if (blocks == 0 || threads == 0 || threads > 1024) {
    throw std::runtime_error("cudaLaunchKernel: invalid configuration argument");
  }
  ++counts.launches;
  queues[stream].push_back([thread = std::move(thread), blocks, threads] {
    blockDim.x = threads;
    for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x) Block(threads, thread).Run();
  });
}

std::string WhyUnusable() { return ""; }
std::string DeviceName() { return "none: the kernels run on the CPU"; }
CallCounts Counts() { return counts; }

void* AllocateDevice(std::size_t bytes) {
  ++counts.synchronising;
  void* data = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  std::memset(data, 0xa5, bytes);  // nobody may count on zeros
  return data;
}
void* AllocatePinned(std::size_t bytes) { return AllocateDevice(bytes); }
void FreeDevice(void* data) noexcept {
  // As on a device: what is under way may still use the memory.
  for (auto& [stream, queue] : queues) WaitForStream(stream);
  std::free(data);
}
void FreePinned(void* data) noexcept { FreeDevice(data); }

Event MakeEvent() { return new EventState; }
void FreeEvent(Event event) noexcept { delete static_cast<EventState*>(event); }

void WaitFor(Event event) {
  ++counts.synchronising;
  EventState* state = static_cast<EventState*>(event);
  while (!state->done && RunOne(state->stream)) continue;
}

void WaitForStream(Stream stream) {
  ++counts.synchronising;
  while (RunOne(stream)) continue;
}

void CopyAsync(void* to, const void* from, std::size_t bytes, Stream stream) {
  ++counts.copies;
  queues[stream].push_back([=] { std::memcpy(to, from, bytes); });
}

void ClearAsync(void* data, std::size_t bytes, Stream stream) {
  ++counts.copies;
  queues[stream].push_back([=] { std::memset(data, 0, bytes); });
}

void Record(Event event, Stream stream) {
  EventState* state = static_cast<EventState*>(event);
  *state = {stream, false};
  queues[stream].push_back([=] { state->done = true; });
}

bool IsDone(Event event) {
  const EventState* state = static_cast<EventState*>(event);
  if (!state->done) RunOne(state->stream);
  return state->done;
}

void LaunchKernel(const void*, unsigned, unsigned, void**, Stream) {
  throw std::logic_error("kernels on the CPU are launched by Enqueue");
}

}  // namespace trainwreck::kernels::cuda
