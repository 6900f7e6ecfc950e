#include "trainer/devices/backend_communicator.h"

#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <utility>
#include <vector>

#include "trainer/ranks/await_work.h"
#include "trainer/ranks/communicator.h"
#include "trainer/ranks/rendezvous.h"

namespace trainwreck {
namespace {

// A call that waits so long leaves a record of it, in case this process is stopped before the call
// fails: the supervisor looks after a stalled run in seconds, too.
constexpr std::chrono::seconds kSuspicious(1);

// A call of the group that may block for ever. Its thread gives the group up before the call is
// over, so that the last one to hold it, and to destroy it, is never a thread that nobody waits
// for.
void BoundedCallOf(c10::intrusive_ptr<c10d::Backend> group, double timeout_s,
                   const std::function<void(c10d::Backend&)>& call) {
  BoundedCall(timeout_s, [group = std::move(group), call]() mutable {
    const c10::intrusive_ptr<c10d::Backend> held = std::move(group);
    call(*held);
  });
}

}  // namespace

BackendCommunicator::BackendCommunicator(const GroupOptions& options, at::Device device,
                                         c10::intrusive_ptr<c10d::Backend> group,
                                         BackendRecords records)
    : options_(options), device_(device), group_(std::move(group)), records_(std::move(records)) {
  RemoveDump();  // of an earlier attempt
  try {
    BoundedCallOf(group_, options.timeout_s,
                  [device](c10d::Backend& backend) { backend.eagerConnectSingleDevice(device); });
    std::vector<at::Tensor> token{at::zeros({1}, device)};
    Await(*group_->allreduce(token, c10d::AllreduceOptions()));
  } catch (const std::exception& error) {
    LeaveGroup();
    throw std::runtime_error(WithWarning(error.what()));
  }
}

BackendCommunicator::~BackendCommunicator() {
  if (failed_) {
    LeaveGroup();
    return;
  }
  try {
    BoundedCallOf(group_, options_.timeout_s, [](c10d::Backend& backend) { backend.shutdown(); });
  } catch (const std::exception& error) {  // all results are there already
    std::cerr << "trainwreck-trainer: the group of ranks does not shut down: " << error.what()
              << std::endl;
    LeaveGroup();
  }
}

void BackendCommunicator::AllReduce(at::Tensor& tensor, Reduction reduction) {
  c10d::AllreduceOptions options;
  options.reduceOp = reduction == Reduction::kSum   ? c10d::ReduceOp::SUM
                     : reduction == Reduction::kMax ? c10d::ReduceOp::MAX
                                                    : c10d::ReduceOp::MIN;
  Call(OpName(reduction), tensor,
       [&](std::vector<at::Tensor>& tensors) { return group_->allreduce(tensors, options); });
}

void BackendCommunicator::Broadcast(at::Tensor& tensor, int root) {
  c10d::BroadcastOptions options;
  options.rootRank = root;
  Call("broadcast", tensor,
       [&](std::vector<at::Tensor>& tensors) { return group_->broadcast(tensors, options); });
}

void BackendCommunicator::Reduce(at::Tensor& tensor, int root) {
  c10d::ReduceOptions options;
  options.rootRank = root;
  Call("reduce", tensor,
       [&](std::vector<at::Tensor>& tensors) { return group_->reduce(tensors, options); });
}

// Not the backend's own barrier: NCCL's blocks without a timeout.
void BackendCommunicator::Barrier() {
  at::Tensor token = at::zeros({1}, device_);
  Call("barrier", token, [&](std::vector<at::Tensor>& tensors) {
    return group_->allreduce(tensors, c10d::AllreduceOptions());
  });
}

void BackendCommunicator::Call(const char* op, at::Tensor& tensor, const Start& start) {
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

void BackendCommunicator::Await(c10d::Work& work) const {
  const bool was_suspected = AwaitWork(work, options_.timeout_s, kSuspicious, [this] { Dump(); });
  if (was_suspected) RemoveDump();
}

std::string BackendCommunicator::WithWarning(const char* what) const {
  const std::string warning = records_.warning ? records_.warning() : "";
  return FirstLine(what) + (warning.empty() ? "" : " (" + warning + ")");
}

std::string BackendCommunicator::DumpPath() const {
  return options_.dump_dir + "/flight-recorder-rank" + std::to_string(options_.rank) + ".json";
}

void BackendCommunicator::RemoveDump() const {
  if (!options_.dump_dir.empty()) std::remove(DumpPath().c_str());
}

void BackendCommunicator::Dump() const noexcept {
  if (options_.dump_dir.empty() || !records_.calls) return;
  try {
    std::ofstream(DumpPath()) << records_.calls();
  } catch (const std::exception&) {
    // The failure itself is what must be told.
  }
}

}  // namespace trainwreck
