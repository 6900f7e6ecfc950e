// The CPU, and a library in NCCL's place, for the tests of broken_nccl_check.cc.
#include "trainer/devices/broken_nccl.h"

#include <cstdlib>
#include <stdexcept>
#include <vector>

#include "preload/nccl_calls.h"
#include "trainer/devices/backend_communicator.h"

namespace trainwreck {
namespace {

using Works = c10::intrusive_ptr<c10d::Work>;
constexpr ncclDataType_t kFloat32 = 7;
constexpr ncclRedOp_t kSum = 0;

class DoneWork : public c10d::Work {
 public:
  bool isCompleted() override { return true; }
  bool wait(std::chrono::milliseconds /*timeout*/) override { return true; }
};

class LibraryBackend : public c10d::Backend {
 public:
  LibraryBackend() : Backend(0, 1) {}
  ~LibraryBackend() override { AbortIfFailed(); }
  void eagerConnectSingleDevice(at::Device /*device*/) override {
    ncclUniqueId id;
    Check(ncclGetUniqueId(&id));
    Check(ncclCommInitRank(&comm_, 1, id, 0));
  }
  void shutdown() override {
    AbortIfFailed();
    Check(ncclCommDestroy(comm_));
  }
  Works allreduce(std::vector<at::Tensor>& tensors, const c10d::AllreduceOptions&) override {
    at::Tensor& t = tensors[0];
    Check(ncclAllReduce(t.data_ptr(), t.data_ptr(), t.numel(), kFloat32, kSum, comm_, nullptr));
    return c10::make_intrusive<DoneWork>();
  }
  Works broadcast(std::vector<at::Tensor>& tensors, const c10d::BroadcastOptions&) override {
    at::Tensor& t = tensors[0];
    Check(ncclBroadcast(t.data_ptr(), t.data_ptr(), t.numel(), kFloat32, 0, comm_, nullptr));
    return c10::make_intrusive<DoneWork>();
  }
  Works reduce(std::vector<at::Tensor>& tensors, const c10d::ReduceOptions&) override {
    at::Tensor& t = tensors[0];
    Check(ncclReduce(t.data_ptr(), t.data_ptr(), t.numel(), kFloat32, kSum, 0, comm_, nullptr));
    return c10::make_intrusive<DoneWork>();
  }

 private:
  void Check(ncclResult_t result) {
    if (result == 0) return;
    has_failed_ = true;
    throw std::runtime_error("NCCL error " + std::to_string(result));
  }
  // A group that has failed must be left alone.
  void AbortIfFailed() const {
    if (has_failed_) std::abort();
  }

  ncclComm_t comm_ = nullptr;
  bool has_failed_ = false;
};

}  // namespace

std::string NcclShim() {
  return std::string(std::getenv("TEST_SRCDIR")) + "/trainwreck/preload/libtrainwreck_nccl.so";
}

std::string WhyNothingIsBroken() { return ""; }

OneRank OpenOneRank(const GroupOptions& options) {
  return {.communicator = std::make_unique<BackendCommunicator>(
              options, at::kCPU, c10::make_intrusive<LibraryBackend>(),
              BackendRecords{.calls = [] { return std::string(R"({"entries": ["a call"]})"); }})};
}

}  // namespace trainwreck
