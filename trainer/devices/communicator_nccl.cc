#include "trainer/devices/communicator_nccl.h"

#include <c10/util/intrusive_ptr.h>

#include <cstdlib>
#include <exception>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>
#include <utility>

#include "harness/protocol/rank_files.h"
#include "trainer/devices/backend_communicator.h"
#include "trainer/devices/nccl_log.h"
#include "trainer/ranks/rendezvous.h"

namespace trainwreck {
namespace {

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

}  // namespace

std::unique_ptr<Communicator> MakeNcclCommunicator(const GroupOptions& options, at::Device device) {
  LeaveErrorsToUs();
  SetUpNcclEnvironment(options);
  const auto store = Arrive(options);
  // NCCL itself would wait for ever for a rank that does not come.
  AwaitArrivals(*store, options);
  auto group_options = c10d::ProcessGroupNCCL::Options::create();
  group_options->timeout = Milliseconds(options.timeout_s);
  try {
    return std::make_unique<BackendCommunicator>(
        options, device,
        c10::make_intrusive<c10d::ProcessGroupNCCL>(store, options.rank, options.world_size,
                                                    std::move(group_options)),
        BackendRecords{.warning = [log = NcclLogPath(options)] { return LastNcclWarning(log); },
                       .calls =
                           [] {
                             return c10d::dump_nccl_trace_json(/*includeCollectives=*/true,
                                                               /*onlyActive=*/false);
                           }});
  } catch (const std::exception& error) {
    throw RendezvousFailure(*store, options, error.what());
  }
}

}  // namespace trainwreck
