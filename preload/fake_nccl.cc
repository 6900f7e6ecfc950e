// Stands in for libnccl.so.2 in tests: ranks are processes of one machine, buffers are the host's,
// and every call is made at once. Two ranks or more meet in a file that all of them map; a call
// waits for its peers for ever, as NCCL's does. Each call is a line in the file that FAKE_NCCL_LOG
// names. Floats alone are added; other types are moved as bytes.
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "preload/nccl_abi.h"
#include "preload/nccl_rules.h"

namespace {

using trainwreck::preload::BytesOfDatatype;
using trainwreck::preload::kNcclInvalidArgument;
using trainwreck::preload::kNcclSuccess;
using trainwreck::preload::kNcclSystemError;

constexpr int kMaxRanks = 4;
constexpr std::size_t kMaxBytes = 1 << 16;
constexpr ncclDataType_t kFloat32 = 7;

struct Meeting {
  std::atomic<long> came[kMaxRanks];  // how often
  std::size_t bytes[kMaxRanks];
  char data[kMaxRanks][kMaxBytes];
};

void Log(const char* function, std::size_t count, int datatype, int peer) {
  const char* path = std::getenv("FAKE_NCCL_LOG");
  if (path == nullptr) return;
  char line[128];
  const int length =
      std::snprintf(line, sizeof line, "%s %zu %d %d\n", function, count, datatype, peer);
  const int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (write(fd, line, static_cast<std::size_t>(length)) != length) std::abort();
  close(fd);
}

}  // namespace

struct ncclComm {
  Meeting* meeting;
  int ranks;
  int rank;
  long times = 0;

  // Returns when all have come as often.
  void Meet() {
    meeting->came[rank] = ++times;
    for (int peer = 0; peer < ranks; ++peer) {
      while (meeting->came[peer] < times) sched_yield();
    }
  }

  void Give(const void* data, std::size_t bytes) {
    meeting->bytes[rank] = bytes;
    if (bytes > 0) std::memcpy(meeting->data[rank], data, bytes);
    Meet();
  }
};

namespace {

// The sum over ranks of what all of them gave.
void Sum(const ncclComm& comm, char* into, std::size_t bytes, ncclDataType_t datatype) {
  std::memcpy(into, comm.meeting->data[0], bytes);
  for (int peer = 1; peer < comm.ranks; ++peer) {
    const std::size_t common = std::min(bytes, comm.meeting->bytes[peer]);
    for (std::size_t at = 0; datatype == kFloat32 && at + sizeof(float) <= common;
         at += sizeof(float)) {
      float sum, other;
      std::memcpy(&sum, into + at, sizeof sum);
      std::memcpy(&other, comm.meeting->data[peer] + at, sizeof other);
      sum += other;
      std::memcpy(into + at, &sum, sizeof sum);
    }
  }
}

}  // namespace

extern "C" {

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  std::snprintf(id->internal, sizeof id->internal, "/tmp/fake-nccl-XXXXXX");
  const int fd = mkstemp(id->internal);
  if (fd < 0 || ftruncate(fd, sizeof(Meeting)) != 0) return kNcclSystemError;
  close(fd);
  return kNcclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank) {
  if (ranks > kMaxRanks) return kNcclInvalidArgument;
  const int fd = open(id.internal, O_RDWR);
  void* memory = mmap(nullptr, sizeof(Meeting), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (fd < 0 || memory == MAP_FAILED) return kNcclSystemError;
  close(fd);
  *comm = new ncclComm{static_cast<Meeting*>(memory), ranks, rank};
  (*comm)->Meet();
  if (rank == 0) unlink(id.internal);
  return kNcclSuccess;
}

ncclResult_t ncclCommUserRank(ncclComm_t comm, int* rank) {
  *rank = comm->rank;
  return kNcclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  Log("ncclCommDestroy", 0, 0, 0);
  munmap(comm->meeting, sizeof(Meeting));
  delete comm;
  return kNcclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) { return ncclCommDestroy(comm); }

ncclResult_t ncclGroupStart() {
  Log("ncclGroupStart", 0, 0, 0);
  return kNcclSuccess;
}
ncclResult_t ncclGroupEnd() {
  Log("ncclGroupEnd", 0, 0, 0);
  return kNcclSuccess;
}

ncclResult_t ncclAllReduce(const void* send, void* receive, std::size_t count,
                           ncclDataType_t datatype, ncclRedOp_t, ncclComm_t comm, cudaStream_t) {
  Log("ncclAllReduce", count, datatype, -1);
  const std::size_t bytes = count * BytesOfDatatype(datatype);
  comm->Give(send, bytes);
  Sum(*comm, static_cast<char*>(receive), bytes, datatype);
  comm->Meet();
  return kNcclSuccess;
}

ncclResult_t ncclReduce(const void* send, void* receive, std::size_t count, ncclDataType_t datatype,
                        ncclRedOp_t, int root, ncclComm_t comm, cudaStream_t) {
  Log("ncclReduce", count, datatype, root);
  const std::size_t bytes = count * BytesOfDatatype(datatype);
  comm->Give(send, bytes);
  if (comm->rank == root) Sum(*comm, static_cast<char*>(receive), bytes, datatype);
  comm->Meet();
  return kNcclSuccess;
}

ncclResult_t ncclBroadcast(const void* send, void* receive, std::size_t count,
                           ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t) {
  Log("ncclBroadcast", count, datatype, root);
  const std::size_t bytes = count * BytesOfDatatype(datatype);
  comm->Give(comm->rank == root ? send : nullptr, comm->rank == root ? bytes : 0);
  std::memcpy(receive, comm->meeting->data[root], bytes);
  comm->Meet();
  return kNcclSuccess;
}

// As NCCL's, it calls a function that the shim takes the place of.
ncclResult_t ncclBcast(void* buffer, std::size_t count, ncclDataType_t datatype, int root,
                       ncclComm_t comm, cudaStream_t stream) {
  Log("ncclBcast", count, datatype, root);
  return ncclBroadcast(buffer, buffer, count, datatype, root, comm, stream);
}

ncclResult_t ncclAllGather(const void* send, void* receive, std::size_t count,
                           ncclDataType_t datatype, ncclComm_t comm, cudaStream_t) {
  Log("ncclAllGather", count, datatype, -1);
  const std::size_t bytes = count * BytesOfDatatype(datatype);
  comm->Give(send, bytes);
  for (int peer = 0; peer < comm->ranks; ++peer) {
    std::memcpy(static_cast<char*>(receive) + static_cast<std::size_t>(peer) * bytes,
                comm->meeting->data[peer], bytes);
  }
  comm->Meet();
  return kNcclSuccess;
}

ncclResult_t ncclReduceScatter(const void* send, void* receive, std::size_t count,
                               ncclDataType_t datatype, ncclRedOp_t, ncclComm_t comm,
                               cudaStream_t) {
  Log("ncclReduceScatter", count, datatype, -1);
  const std::size_t bytes = count * BytesOfDatatype(datatype);
  comm->Give(send, bytes * static_cast<std::size_t>(comm->ranks));
  static thread_local char sums[kMaxBytes];
  Sum(*comm, sums, bytes * static_cast<std::size_t>(comm->ranks), datatype);
  std::memcpy(receive, sums + static_cast<std::size_t>(comm->rank) * bytes, bytes);
  comm->Meet();
  return kNcclSuccess;
}

ncclResult_t ncclAlltoAll(const void* send, void* receive, std::size_t count,
                          ncclDataType_t datatype, ncclComm_t comm, cudaStream_t) {
  Log("ncclAlltoAll", count, datatype, -1);
  const std::size_t bytes = count * BytesOfDatatype(datatype);
  comm->Give(send, bytes * static_cast<std::size_t>(comm->ranks));
  for (int peer = 0; peer < comm->ranks; ++peer) {
    std::memcpy(static_cast<char*>(receive) + static_cast<std::size_t>(peer) * bytes,
                comm->meeting->data[peer] + static_cast<std::size_t>(comm->rank) * bytes, bytes);
  }
  comm->Meet();
  return kNcclSuccess;
}

// A pair meets as all do: tests have two ranks.
ncclResult_t ncclSend(const void* send, std::size_t count, ncclDataType_t datatype, int peer,
                      ncclComm_t comm, cudaStream_t) {
  Log("ncclSend", count, datatype, peer);
  comm->Give(send, count * BytesOfDatatype(datatype));
  comm->Meet();
  return kNcclSuccess;
}

ncclResult_t ncclRecv(void* receive, std::size_t count, ncclDataType_t datatype, int peer,
                      ncclComm_t comm, cudaStream_t) {
  Log("ncclRecv", count, datatype, peer);
  comm->Give(nullptr, 0);
  std::memcpy(receive, comm->meeting->data[peer], count * BytesOfDatatype(datatype));
  comm->Meet();
  return kNcclSuccess;
}

}  // extern "C"
