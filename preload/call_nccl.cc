// A program that links libnccl and makes one call of each kind, as one rank. What came back is a
// line per call: its function, its result, the first and the last element.
#include <array>
#include <cstdio>
#include <functional>
#include <utility>

#include "preload/nccl_calls.h"

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
