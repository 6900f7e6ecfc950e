#include <c10/util/intrusive_ptr.h>
#include <sched.h>
#include <sys/epoll.h>
#include <time.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <thread>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <utility>
#include <vector>

#include "trainer/ranks/communicator.h"
#include "trainer/ranks/rendezvous.h"

namespace trainwreck {
namespace {

// Gloo's loop asks epoll again and again for an event whose connection another thread has locked.
// Where ranks have fewer cores than threads, that thread may wait for a core meanwhile, and the
// loop would take a whole time slice for nothing. So a thread that has asked so often, each time at
// once, naps: see epoll_wait below.
class Impatience {
 public:
  // To be called for each event that epoll returns.
  void NapIfNeeded() {
    const std::int64_t now = Nanoseconds();
    asked_ = now - last_ < kAtOnceNs ? asked_ + 1 : 0;
    last_ = now;
    if (asked_ < kOften) return;
    const timespec nap{0, kNapNs};
    nanosleep(&nap, nullptr);
    last_ = Nanoseconds();
  }

 private:
  static constexpr std::int64_t kAtOnceNs = 3'000;  // less than it takes to read a message
  static constexpr int kOften = 16;                 // a lock is mostly free again after fewer
  static constexpr long kNapNs = 20'000;

  static std::int64_t Nanoseconds() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
  }

  std::int64_t last_ = 0;
  int asked_ = 0;
};

// The threads started while this lives take no core from a running thread when they wake
// (SCHED_BATCH, which threads inherit); their share of the cores stays the same. The thread that
// holds a connection's lock is the one that the loop, woken by the peer's answer, would take the
// core from.
class StartsYieldingThreads {
 public:
  StartsYieldingThreads() {
    if (sched_getscheduler(0) == SCHED_OTHER) changed_ = Set(SCHED_BATCH);
  }
  ~StartsYieldingThreads() {
    if (changed_) Set(SCHED_OTHER);
  }
  StartsYieldingThreads(const StartsYieldingThreads&) = delete;
  StartsYieldingThreads& operator=(const StartsYieldingThreads&) = delete;

 private:
  static bool Set(int policy) {
    const sched_param no_priority{};
    return sched_setscheduler(0, policy, &no_priority) == 0;
  }

  bool changed_ = false;
};

std::shared_ptr<gloo::transport::Device> OpenDevice(const GroupOptions& options) {
  using Group = c10d::ProcessGroupGloo;
  // By number rather than by name: no resolver, no way off this machine.
  if (IsLocalGroup(options)) return Group::createDeviceForHostname("127.0.0.1");
  if (const char* interface = std::getenv("GLOO_SOCKET_IFNAME")) {
    return Group::createDeviceForInterface(interface);
  }
  return Group::createDefaultDevice();  // by this machine's name
}

constexpr int kMostYields = 10000;

class GlooCommunicator : public Communicator {
 public:
  explicit GlooCommunicator(const GroupOptions& options) : options_(options) {
    const auto store = Arrive(options);
    // A store at a wrong place may have nobody to name who is missing: rank 0 says so of all.
    if (options.rendezvous_file.empty()) AwaitArrivals(*store, options);
    auto group_options = c10d::ProcessGroupGloo::Options::create(Milliseconds(options.timeout_s));
    const StartsYieldingThreads yielding;
    group_options->devices.push_back(OpenDevice(options));
    group_options->threads = 1;  // calls are made one at a time
    try {
      group_ = c10::make_intrusive<c10d::ProcessGroupGloo>(store, options.rank, options.world_size,
                                                           std::move(group_options));
      // No rank goes on, and perhaps dies, while others still connect: Gloo would leave some of
      // them waiting beyond their timeout.
      group_->barrier(c10d::BarrierOptions())->wait();
    } catch (const std::exception& error) {
      throw RendezvousFailure(*store, options, error.what());
    }
  }

  int rank() const override { return options_.rank; }
  int world_size() const override { return options_.world_size; }

  void AllReduce(at::Tensor& tensor, Reduction reduction) override {
    std::vector<at::Tensor> tensors{tensor};
    c10d::AllreduceOptions options;
    options.reduceOp = reduction == Reduction::kSum   ? c10d::ReduceOp::SUM
                       : reduction == Reduction::kMax ? c10d::ReduceOp::MAX
                                                      : c10d::ReduceOp::MIN;
    Wait(OpName(reduction), [&] { return group_->allreduce(tensors, options); });
  }

  void Broadcast(at::Tensor& tensor, int root) override {
    std::vector<at::Tensor> tensors{tensor};
    c10d::BroadcastOptions options;
    options.rootRank = root;
    Wait("broadcast", [&] { return group_->broadcast(tensors, options); });
  }

  void Reduce(at::Tensor& tensor, int root) override {
    std::vector<at::Tensor> tensors{tensor};
    c10d::ReduceOptions options;
    options.rootRank = root;
    Wait("reduce", [&] { return group_->reduce(tensors, options); });
  }

  void Barrier() override {
    Wait("barrier", [&] { return group_->barrier(c10d::BarrierOptions()); });
  }

 private:
  template <typename Start>
  void Wait(const char* op, const Start& start) {
    const int call = call_++;
    try {
      const auto work = start();
      work->wait();
      // Gloo's thread lets go of the tensors a moment later. What is in use must not depend on it.
      for (int i = 0; work.use_count() > 1 && i < kMostYields; ++i) std::this_thread::yield();
    } catch (const std::exception& error) {
      throw std::runtime_error(CallFailure(op, call, options_, error.what()));
    }
  }

  GroupOptions options_;
  c10::intrusive_ptr<c10d::ProcessGroupGloo> group_;
  int call_ = 0;
};

}  // namespace

std::unique_ptr<Communicator> MakeGlooCommunicator(const GroupOptions& options) {
  // Gloo writes to sockets whose peer may just have died: that must be an error of the call, which
  // says which call it was, and not this process's own death.
  std::signal(SIGPIPE, SIG_IGN);
  return std::make_unique<GlooCommunicator>(options);
}

}  // namespace trainwreck

// In place of the C library's, for all of this program, Gloo above all.
extern "C" int epoll_wait(int epoll, epoll_event* events, int capacity, int timeout_ms) {
  static thread_local trainwreck::Impatience impatience;
  const int count = epoll_pwait(epoll, events, capacity, timeout_ms, nullptr);
  if (count > 0) impatience.NapIfNeeded();
  return count;
}
