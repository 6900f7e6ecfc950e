// Collectives over NVIDIA GPUs, one rank to a GPU (NCCL refuses two on one). Linked only into the
// CUDA program. Run with one rank on 2026-11-26, before most of it became BackendCommunicator; not
// run on a GPU since, and not yet between GPUs.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "trainer/parts.h"

namespace trainwreck {

// MakeGlooCommunicator for NCCL: a call returns when its result is there. It throws
// std::runtime_error in the same words when a peer is gone or the timeout passes. CUDA tensors of
// `device` are reduced where they are; CPU tensors travel over the device. After a failed call the
// group is of no more use. LibTorch's flight recorder is then written to
// <dump_dir>/flight-recorder-rank<k>.json, and before that when a call waits for more than a
// second.
std::unique_ptr<Communicator> MakeNcclCommunicator(const GroupOptions& options, at::Device device);

}  // namespace trainwreck
