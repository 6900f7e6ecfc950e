#include <c10/util/intrusive_ptr.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <sstream>
#include <stdexcept>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <utility>
#include <vector>

#include "harness/trainer/communicator.h"

namespace trainwreck {
namespace {

std::chrono::milliseconds Milliseconds(double seconds) {
  return std::chrono::milliseconds(
      std::max<std::int64_t>(1, static_cast<std::int64_t>(seconds * 1e3)));
}

std::string ArrivalKey(int rank) { return "arrived/" + std::to_string(rank); }

// What LibTorch says without its C++ backtrace.
std::string FirstLine(const char* message) {
  std::string text(message);
  return text.substr(0, text.find('\n'));
}

// Which ranks never came to the rendezvous; empty: all did.
std::string MissingRanks(c10d::Store& store, int world_size) {
  std::string missing;
  for (int rank = 0; rank < world_size; ++rank) {
    if (!store.check({ArrivalKey(rank)})) missing += " " + std::to_string(rank);
  }
  return missing;
}

class GlooCommunicator : public Communicator {
 public:
  explicit GlooCommunicator(const GlooOptions& options) : options_(options) {
    auto store = c10::make_intrusive<c10d::FileStore>(options.rendezvous_file, options.world_size);
    store->setTimeout(Milliseconds(options.timeout_s));
    store->set(ArrivalKey(options.rank), std::vector<std::uint8_t>{1});
    auto group_options = c10d::ProcessGroupGloo::Options::create(Milliseconds(options.timeout_s));
    // By number rather than by name: no resolver, no way off this machine.
    group_options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1"));
    group_options->threads = 1;  // calls are made one at a time
    try {
      group_ = c10::make_intrusive<c10d::ProcessGroupGloo>(store, options.rank, options.world_size,
                                                           std::move(group_options));
    } catch (const std::exception& error) {
      std::ostringstream message;
      message << "rendezvous of rank " << options.rank << " of " << options.world_size << " at "
              << options.rendezvous_file << " within " << options.timeout_s << " s: ";
      const std::string missing = MissingRanks(*store, options.world_size);
      message << (missing.empty() ? FirstLine(error.what())
                                  : "these ranks have not come:" + missing);
      throw std::runtime_error(message.str());
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
      throw std::runtime_error(std::string(op) + " (call " + std::to_string(call) + " of rank " +
                               std::to_string(options_.rank) + " of " +
                               std::to_string(options_.world_size) +
                               "): " + FirstLine(error.what()));
    }
  }

  GlooOptions options_;
  c10::intrusive_ptr<c10d::ProcessGroupGloo> group_;
  int call_ = 0;
};

}  // namespace

std::unique_ptr<Communicator> MakeGlooCommunicator(const GlooOptions& options) {
  if (options.world_size < 1 || options.rank < 0 || options.rank >= options.world_size) {
    throw std::runtime_error("rank " + std::to_string(options.rank) + " of " +
                             std::to_string(options.world_size) + " ranks does not exist");
  }
  // Gloo writes to sockets whose peer may just have died: that must be an error of the call, which
  // says which call it was, and not this process's own death.
  std::signal(SIGPIPE, SIG_IGN);
  return std::make_unique<GlooCommunicator>(options);
}

}  // namespace trainwreck
