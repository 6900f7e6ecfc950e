#include <c10/util/intrusive_ptr.h>

#include <csignal>
#include <stdexcept>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <utility>
#include <vector>

#include "trainer/ranks/communicator.h"
#include "trainer/ranks/rendezvous.h"

namespace trainwreck {
namespace {

class GlooCommunicator : public Communicator {
 public:
  explicit GlooCommunicator(const GroupOptions& options) : options_(options) {
    const auto store = Arrive(options);
    // A store at a wrong place may have nobody to name who is missing: rank 0 says so of all.
    if (options.rendezvous_file.empty()) AwaitArrivals(*store, options);
    auto group_options = c10d::ProcessGroupGloo::Options::create(Milliseconds(options.timeout_s));
    // By number rather than by name: no resolver, no way off this machine.
    group_options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1"));
    group_options->threads = 1;  // calls are made one at a time
    try {
      group_ = c10::make_intrusive<c10d::ProcessGroupGloo>(store, options.rank, options.world_size,
                                                           std::move(group_options));
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
