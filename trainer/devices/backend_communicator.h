// Collectives of a c10d backend whose own waits and ends cannot be trusted, as NCCL's: a call
// returns when its result is there or its time is over, and a group that has failed is never
// destroyed. Written after the last contact with a GPU: not run on a GPU yet.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>

#include <functional>
#include <string>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <vector>

#include "trainer/parts.h"

namespace trainwreck {

// What a backend itself has to say of a failure; each may be empty.
struct BackendRecords {
  std::function<std::string()> warning = nullptr;  // its last one
  std::function<std::string()> calls = nullptr;    // a record of its calls, as JSON
};

class BackendCommunicator : public Communicator {
 public:
  // Connects the group: waits for peers that have come, and may have died since. Throws
  // std::runtime_error with what the backend says, and leaves the group then.
  BackendCommunicator(const GroupOptions& options, at::Device device,
                      c10::intrusive_ptr<c10d::Backend> group, BackendRecords records);
  // Only after a Barrier(). Never throws, and ends when its time is over: a group that does not
  // shut down is told of on stderr, and left.
  ~BackendCommunicator() override;
  BackendCommunicator(const BackendCommunicator&) = delete;
  BackendCommunicator& operator=(const BackendCommunicator&) = delete;

  int rank() const override { return options_.rank; }
  int world_size() const override { return options_.world_size; }
  void AllReduce(at::Tensor& tensor, Reduction reduction) override;
  void Broadcast(at::Tensor& tensor, int root) override;
  void Reduce(at::Tensor& tensor, int root) override;
  void Barrier() override;

 private:
  using Start = std::function<c10::intrusive_ptr<c10d::Work>(std::vector<at::Tensor>& tensors)>;
  void Call(const char* op, at::Tensor& tensor, const Start& start);
  void Await(c10d::Work& work) const;
  // A group that has failed stays until the process ends: NCCL's destructor aborts it, and then
  // waits for a watchdog thread that sleeps for up to a minute.
  void LeaveGroup() noexcept { static_cast<void>(group_.release()); }
  std::string WithWarning(const char* what) const;
  std::string DumpPath() const;
  void RemoveDump() const;
  void Dump() const noexcept;

  GroupOptions options_;
  at::Device device_;
  c10::intrusive_ptr<c10d::Backend> group_;
  BackendRecords records_;
  int call_ = 0;
  bool failed_ = false;
};

}  // namespace trainwreck
