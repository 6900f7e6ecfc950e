#include "trainer/devices/communicator_nccl.h"

#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>
#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>
#include <utility>
#include <vector>

#include "harness/protocol/rank_files.h"
#include "trainer/devices/nccl_log.h"
#include "trainer/ranks/await_work.h"
#include "trainer/ranks/communicator.h"
#include "trainer/ranks/rendezvous.h"

namespace trainwreck {
namespace {

// A call that waits so long leaves a record of it, in case this process is stopped before the call
// fails: the supervisor looks after a stalled run in seconds, too.
constexpr std::chrono::seconds kSuspicious(1);

// LibTorch's own guards end the process (from a thread of theirs, by std::terminate, minutes later)
// where ours report the call that failed. The flight recorder stays on, and is written by us.
void LeaveErrorsToUs() {
  setenv("TORCH_NCCL_ASYNC_ERROR_HANDLING", "0", /*overwrite=*/1);
  setenv("TORCH_NCCL_ENABLE_MONITORING", "0", 1);
  setenv("TORCH_NCCL_DUMP_ON_TIMEOUT", "0", 1);
  setenv("TORCH_NCCL_PROPAGATE_ERROR", "0", 1);
  setenv("TORCH_NCCL_RETHROW_CUDA_ERRORS", "0", 1);
  setenv("TORCH_NCCL_TRACE_BUFFER_SIZE", "2000", 0);
  // Connect when the group is made: later, the host would wait within a call, where no timeout
  // reaches it.
  setenv("NCCL_RUNTIME_CONNECT", "0", 1);
}

class NcclCommunicator : public Communicator {
 public:
  NcclCommunicator(const GroupOptions& options, at::Device device)
      : options_(options), device_(device) {
    LeaveErrorsToUs();
    SetUpNcclEnvironment(options);
    RemoveDump();  // of an earlier attempt
    const auto store = Arrive(options);
    // NCCL itself would wait for ever for a rank that does not come.
    AwaitArrivals(*store, options);
    auto group_options = c10d::ProcessGroupNCCL::Options::create();
    group_options->timeout = Milliseconds(options.timeout_s);
    try {
      group_ = c10::make_intrusive<c10d::ProcessGroupNCCL>(store, options.rank, options.world_size,
                                                           std::move(group_options));
      // NCCL waits here for peers that have come, and may have died since.
      BoundedCall(options.timeout_s,
                  [group = group_, device] { group->eagerConnectSingleDevice(device); });
      std::vector<at::Tensor> token{at::zeros({1}, device)};
      Await(*group_->allreduce(token, c10d::AllreduceOptions()));
    } catch (const std::exception& error) {
      LeaveGroup();
      throw RendezvousFailure(*store, options, WithWarning(error.what()).c_str());
    }
  }

  // Only after a Barrier().
  ~NcclCommunicator() override {
    if (failed_) {
      LeaveGroup();
      return;
    }
    try {
      group_->shutdown();
    } catch (const std::exception& error) {  // all results are there already
      std::cerr << "trainwreck-trainer: NCCL does not shut down: " << error.what() << std::endl;
    }
  }

  int rank() const override { return options_.rank; }
  int world_size() const override { return options_.world_size; }

  void AllReduce(at::Tensor& tensor, Reduction reduction) override {
    c10d::AllreduceOptions options;
    options.reduceOp = reduction == Reduction::kSum   ? c10d::ReduceOp::SUM
                       : reduction == Reduction::kMax ? c10d::ReduceOp::MAX
                                                      : c10d::ReduceOp::MIN;
    Call(OpName(reduction), tensor,
         [&](std::vector<at::Tensor>& tensors) { return group_->allreduce(tensors, options); });
  }

  void Broadcast(at::Tensor& tensor, int root) override {
    c10d::BroadcastOptions options;
    options.rootRank = root;
    Call("broadcast", tensor,
         [&](std::vector<at::Tensor>& tensors) { return group_->broadcast(tensors, options); });
  }

  void Reduce(at::Tensor& tensor, int root) override {
    c10d::ReduceOptions options;
    options.rootRank = root;
    Call("reduce", tensor,
         [&](std::vector<at::Tensor>& tensors) { return group_->reduce(tensors, options); });
  }

  // Not ProcessGroupNCCL::barrier(), which blocks without a timeout.
  void Barrier() override {
    at::Tensor token = at::zeros({1}, device_);
    Call("barrier", token, [&](std::vector<at::Tensor>& tensors) {
      return group_->allreduce(tensors, c10d::AllreduceOptions());
    });
  }

 private:
  template <typename Start>
  void Call(const char* op, at::Tensor& tensor, const Start& start) {
    const int call = call_++;
    try {
      const bool stays = tensor.device() == device_ && tensor.is_contiguous();
      std::vector<at::Tensor> tensors{stays ? tensor : tensor.to(device_).contiguous()};
      Await(*start(tensors));
      if (!stays) tensor.copy_(tensors.front());
    } catch (const c10::OutOfMemoryError&) {
      failed_ = true;
      throw;
    } catch (const std::exception& error) {
      failed_ = true;
      Dump();
      throw std::runtime_error(CallFailure(op, call, options_, WithWarning(error.what()).c_str()));
    }
  }

  void Await(c10d::Work& work) const {
    const bool was_suspected = AwaitWork(work, options_.timeout_s, kSuspicious, [this] { Dump(); });
    if (was_suspected) RemoveDump();
  }

  // A group that has failed stays until the process ends: its destructor aborts it, and then waits
  // for a watchdog thread that sleeps for up to a minute.
  void LeaveGroup() noexcept { static_cast<void>(group_.release()); }

  std::string WithWarning(const char* what) const {
    const std::string warning = LastNcclWarning(NcclLogPath(options_));
    return FirstLine(what) + (warning.empty() ? "" : " (" + warning + ")");
  }

  std::string DumpPath() const {
    return options_.dump_dir + "/flight-recorder-rank" + std::to_string(options_.rank) + ".json";
  }

  void RemoveDump() const {
    if (!options_.dump_dir.empty()) std::remove(DumpPath().c_str());
  }

  void Dump() const noexcept {
    if (options_.dump_dir.empty()) return;
    try {
      std::ofstream file(DumpPath());
      file << c10d::dump_nccl_trace_json(/*includeCollectives=*/true, /*onlyActive=*/false);
    } catch (const std::exception&) {
      // The failure itself is what must be told.
    }
  }

  GroupOptions options_;
  at::Device device_;
  c10::intrusive_ptr<c10d::ProcessGroupNCCL> group_;
  int call_ = 0;
  bool failed_ = false;
};

}  // namespace

std::unique_ptr<Communicator> MakeNcclCommunicator(const GroupOptions& options, at::Device device) {
  return std::make_unique<NcclCommunicator>(options, device);
}

}  // namespace trainwreck
