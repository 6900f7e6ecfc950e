// The few words of NCCL's binary interface that the shim and the fake library need, which have been
// the same since NCCL 2.7. Its own header would bring CUDA's.
#pragma once

#include <cstddef>

extern "C" {
using ncclComm_t = struct ncclComm*;
using cudaStream_t = struct CUstream_st*;
using ncclResult_t = int;
using ncclDataType_t = int;
using ncclRedOp_t = int;
struct ncclUniqueId {
  char internal[128];
};
}

namespace trainwreck::preload {
inline constexpr ncclResult_t kNcclSuccess = 0;
inline constexpr ncclResult_t kNcclSystemError = 2;
inline constexpr ncclResult_t kNcclInvalidArgument = 4;
}  // namespace trainwreck::preload
