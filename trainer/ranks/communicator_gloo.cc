#include <c10/util/intrusive_ptr.h>
#include <sched.h>

#include <csignal>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <utility>
#include <vector>

#include "trainer/ranks/communicator.h"
#include "trainer/ranks/rendezvous.h"

namespace trainwreck {
namespace {

// The threads started while this lives take no core from a running thread when they wake
// (SCHED_BATCH, which threads inherit); their share of the cores stays the same. Gloo needs it
// where ranks have fewer cores than threads: its loop asks epoll again and again for an event whose
// connection another thread has locked, and the one that holds the lock is the one that the loop,
// woken by the peer's answer, has just taken the core from.
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
      start()->wait();
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
