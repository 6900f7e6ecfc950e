// A program that links libnccl and makes one call of each kind, as one rank. What came back is a
// line per call: its function, its result, the first and the last element.
#include <array>
#include <cstdio>
#include <functional>
#include <utility>

#include "preload/nccl_abi.h"

extern "C" {
ncclResult_t ncclGetUniqueId(ncclUniqueId*);
ncclResult_t ncclCommInitRank(ncclComm_t*, int, ncclUniqueId, int);
ncclResult_t ncclCommDestroy(ncclComm_t);
ncclResult_t ncclGroupStart();
ncclResult_t ncclGroupEnd();
ncclResult_t ncclAllReduce(const void*, void*, std::size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t,
                           cudaStream_t);
ncclResult_t ncclReduce(const void*, void*, std::size_t, ncclDataType_t, ncclRedOp_t, int,
                        ncclComm_t, cudaStream_t);
ncclResult_t ncclBroadcast(const void*, void*, std::size_t, ncclDataType_t, int, ncclComm_t,
                           cudaStream_t);
ncclResult_t ncclBcast(void*, std::size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t);
ncclResult_t ncclAllGather(const void*, void*, std::size_t, ncclDataType_t, ncclComm_t,
                           cudaStream_t);
ncclResult_t ncclAlltoAll(const void*, void*, std::size_t, ncclDataType_t, ncclComm_t,
                          cudaStream_t);
ncclResult_t ncclReduceScatter(const void*, void*, std::size_t, ncclDataType_t, ncclRedOp_t,
                               ncclComm_t, cudaStream_t);
ncclResult_t ncclSend(const void*, std::size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t);
ncclResult_t ncclRecv(void*, std::size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t);
}

namespace {
constexpr std::size_t kCount = 8;
constexpr ncclDataType_t kFloat32 = 7;
}  // namespace

int main() {
  ncclUniqueId id;
  ncclComm_t comm = nullptr;
  if (ncclGetUniqueId(&id) != 0 || ncclCommInitRank(&comm, 1, id, 0) != 0) return 1;
  std::array<float, kCount> send, receive;
  send.fill(1);
  void* const to = receive.data();
  const std::pair<const char*, std::function<ncclResult_t()>> calls[] = {
      {"ncclGroupStart", [] { return ncclGroupStart(); }},
      {"ncclAllReduce",
       [&] { return ncclAllReduce(send.data(), to, kCount, kFloat32, 0, comm, nullptr); }},
      {"ncclGroupEnd", [] { return ncclGroupEnd(); }},
      {"ncclReduce",
       [&] { return ncclReduce(send.data(), to, kCount, kFloat32, 0, 0, comm, nullptr); }},
      {"ncclBroadcast",
       [&] { return ncclBroadcast(send.data(), to, kCount, kFloat32, 0, comm, nullptr); }},
      {"ncclBcast", [&] { return ncclBcast(to, kCount, kFloat32, 0, comm, nullptr); }},
      {"ncclAllGather",
       [&] { return ncclAllGather(send.data(), to, kCount, kFloat32, comm, nullptr); }},
      {"ncclAlltoAll",
       [&] { return ncclAlltoAll(send.data(), to, kCount, kFloat32, comm, nullptr); }},
      {"ncclReduceScatter",
       [&] { return ncclReduceScatter(send.data(), to, kCount, kFloat32, 0, comm, nullptr); }},
      {"ncclSend", [&] { return ncclSend(send.data(), kCount, kFloat32, 0, comm, nullptr); }},
      {"ncclRecv", [&] { return ncclRecv(to, kCount, kFloat32, 0, comm, nullptr); }},
  };
  for (const auto& [name, call] : calls) {
    receive.fill(0);
    const ncclResult_t result = call();
    std::printf("%s %d %g %g\n", name, result, receive.front(), receive.back());
  }
  return ncclCommDestroy(comm);
}
