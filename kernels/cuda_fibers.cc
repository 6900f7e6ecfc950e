// The threads of a block as fibers. See cuda_on_cpu.h.
#include <ucontext.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/cuda_blocks_on_cpu.h"
#include "kernels/cuda_on_cpu.h"

namespace trainwreck::kernels::cuda {
namespace {

constexpr std::size_t kStackBytes = std::size_t{64} * 1024;

std::mt19937_64& Order() {
  static std::mt19937_64 order(1);
  return order;
}

std::string Line(const Site& site) {
  const std::string file = site.file_name();
  return file.substr(file.rfind('/') + 1) + ":" + std::to_string(site.line());
}

bool AreOne(const Site& a, const Site& b) {
  return a.line() == b.line() && a.column() == b.column() &&
         std::string_view(a.file_name()) == b.file_name();
}

// The threads of one block. Each runs until it needs another's value or a barrier; then any other
// that can go on does.
class Block {
 public:
  Block(unsigned threads, const std::function<void()>& body) : body_(body), fibers_(threads) {
    for (Fiber& fiber : fibers_) Prepare(fiber);
  }

  void Run() {
    running_ = this;
    while (PickNext()) {
      threadIdx.x = static_cast<unsigned>(current_);
      swapcontext(&scheduler_, &fibers_[current_].context);
      if (!error_.empty()) break;
    }
    running_ = nullptr;
    if (!error_.empty()) throw std::runtime_error(error_);
  }

  void WaitAtBarrier(const Site& site) {
    Fiber& fiber = fibers_[current_];
    fiber.state = State::kAtBarrier;
    fiber.site = site;
    Yield(fiber);
  }

  std::uint64_t Exchange(unsigned mask, std::uint64_t bits, unsigned lane_mask, const Site& site) {
    Fiber& fiber = fibers_[current_];
    const unsigned lane = current_ % kWarp;
    if (((mask >> lane) & 1) == 0) {
      Fail("the mask of the shuffle at " + Line(site) + " leaves out its caller, lane " +
           std::to_string(lane));
    }
    const unsigned other = lane ^ lane_mask;
    if (other >= kWarp || ((mask >> other) & 1) == 0) {
      Fail("the shuffle at " + Line(site) + " reads lane " + std::to_string(other) +
           ", which its mask leaves out");
    }
    fiber.state = State::kAtShuffle;
    fiber.site = site;
    fiber.mask = mask;
    fiber.lane_mask = lane_mask;
    fiber.bits = bits;
    TryShuffle(current_ / kWarp * kWarp, fiber);
    Yield(fiber);
    return fiber.bits;
  }

  static Block& running() { return *running_; }

 private:
  enum class State { kReady, kAtBarrier, kAtShuffle, kEnded };
  struct Fiber {
    ucontext_t context;
    State state = State::kReady;
    Site site;
    unsigned mask = 0, lane_mask = 0;
    std::uint64_t bits = 0;
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
    block->fibers_[block->current_].state = State::kEnded;
  }

  void Yield(Fiber& fiber) { swapcontext(&fiber.context, &scheduler_); }

  // Ends the block: none of its threads goes on.
  void Fail(std::string error) {
    error_ = std::move(error);
    Yield(fibers_[current_]);
  }

  static auto Is(State state) {
    return [state](const Fiber& fiber) { return fiber.state == state; };
  }

  // Chooses a thread that can go on; false: all have ended, or none can.
  bool PickNext() {
    if (PickReady()) return true;
    if (std::all_of(fibers_.begin(), fibers_.end(), Is(State::kEnded))) return false;
    if (OpenBarrier()) return PickReady();
    error_ = DescribeStuck();
    return false;
  }

  bool PickReady() {
    ready_.clear();
    for (std::size_t i = 0; i < fibers_.size(); ++i) {
      if (fibers_[i].state == State::kReady) ready_.push_back(i);
    }
    if (ready_.empty()) return false;
    current_ = ready_[Order()() % ready_.size()];
    return true;
  }

  bool OpenBarrier() {
    const Site& site = fibers_.front().site;
    for (const Fiber& fiber : fibers_) {
      if (fiber.state != State::kAtBarrier || !AreOne(fiber.site, site)) return false;
    }
    for (Fiber& fiber : fibers_) fiber.state = State::kReady;
    return true;
  }

  // If all lanes that `fiber`'s mask names have come to its shuffle, they get their values.
  void TryShuffle(std::size_t first, const Fiber& fiber) {
    std::vector<std::size_t> lanes;
    for (std::size_t lane = 0; lane < kWarp; ++lane) {
      if (((fiber.mask >> lane) & 1) == 0) continue;
      if (first + lane >= fibers_.size()) return;
      const Fiber& other = fibers_[first + lane];
      const bool has_come = other.state == State::kAtShuffle && other.mask == fiber.mask &&
                            other.lane_mask == fiber.lane_mask && AreOne(other.site, fiber.site);
      if (!has_come) return;
      lanes.push_back(lane);
    }
    std::uint64_t given[kWarp] = {};
    const unsigned lane_mask = fiber.lane_mask;
    for (const std::size_t lane : lanes) given[lane] = fibers_[first + lane].bits;
    for (const std::size_t lane : lanes) {
      fibers_[first + lane].bits = given[lane ^ lane_mask];
      fibers_[first + lane].state = State::kReady;
    }
  }

  static std::string Describe(std::size_t thread, const Fiber& fiber) {
    const std::string name = "thread " + std::to_string(thread);
    switch (fiber.state) {
      case State::kAtBarrier:
        return name + " waits at the barrier at " + Line(fiber.site);
      case State::kAtShuffle:
        return name + " waits at the shuffle at " + Line(fiber.site);
      case State::kEnded:
        return name + " has ended";
      case State::kReady:
        break;
    }
    return name + " runs";
  }

  // One that waits, and one that does something else.
  std::string DescribeStuck() const {
    const auto waits = std::find_if(fibers_.begin(), fibers_.end(), [](const Fiber& fiber) {
      return fiber.state == State::kAtShuffle || fiber.state == State::kAtBarrier;
    });
    const auto other = std::find_if(fibers_.begin(), fibers_.end(), [&](const Fiber& fiber) {
      return fiber.state != waits->state || !AreOne(fiber.site, waits->site);
    });
    std::string text = Describe(static_cast<std::size_t>(waits - fibers_.begin()), *waits);
    if (other != fibers_.end()) {
      text += "; " + Describe(static_cast<std::size_t>(other - fibers_.begin()), *other);
    }
    return text;
  }

  static inline Block* running_ = nullptr;
  const std::function<void()>& body_;
  std::vector<Fiber> fibers_;
  std::vector<std::size_t> ready_;
  std::size_t current_ = 0;
  std::string error_;
  ucontext_t scheduler_;
};

}  // namespace

void SetSchedule(std::uint64_t seed) { Order().seed(seed); }

void __syncthreads(Site site) { Block::running().WaitAtBarrier(site); }

std::uint64_t ExchangeBits(unsigned mask, std::uint64_t bits, unsigned lane_mask, Site site) {
  return Block::running().Exchange(mask, bits, lane_mask, site);
}

void RunBlocks(const std::function<void()>& thread, unsigned blocks, unsigned threads) {
  std::vector<unsigned> order(blocks);
  std::iota(order.begin(), order.end(), 0U);
  std::shuffle(order.begin(), order.end(), Order());
  blockDim.x = threads;
  for (const unsigned block : order) {
    blockIdx.x = block;
    PoisonSharedMemory();
    Block(threads, thread).Run();
  }
}

}  // namespace trainwreck::kernels::cuda
