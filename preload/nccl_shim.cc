// For LD_PRELOAD: takes the place of NCCL's calls, does to them what TRAINWRECK_NCCL says
// (nccl_rules.h), and passes them on. Each act is a line of JSON in the file that
// TRAINWRECK_NCCL_LOG names. It is written before the act, so that it is there when the program
// hangs because of it. Works with every program that uses a shared libnccl: linked, loaded with
// dlopen, or called through Python's ctypes.
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "preload/nccl_abi.h"
#include "preload/nccl_rules.h"

#define TRAINWRECK_EXPORT __attribute__((visibility("default")))

namespace trainwreck::preload {
namespace {

using Dlsym = void* (*)(void*, const char*);

// Not by dlsym, which is ours. Its version is that of the glibc that has it, by processor and age.
Dlsym RealDlsym() {
  static const Dlsym real = [] {
    for (const char* version : {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"}) {
      if (void* found = dlvsym(RTLD_NEXT, "dlsym", version)) {
        return reinterpret_cast<Dlsym>(found);
      }
    }
    std::fprintf(stderr, "trainwreck: NCCL's shim finds no dlsym in this C library\n");
    std::abort();
  }();
  return real;
}

// A call that moves data, whatever its function.
struct Call {
  NcclOp op;
  const char* function;
  const void* send = nullptr;
  void* receive = nullptr;
  std::size_t count = 0;
  ncclDataType_t datatype = 0;
  ncclRedOp_t reduction = 0;
  int peer = 0;  // or root
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  bool in_place = false;  // ncclBcast
};

struct Interposed {
  const char* name;
  void* ours;
  std::atomic<void*> real{nullptr};
};
Interposed* Find(const char* name);

// NCCL's own function. A library that is loaded for its caller alone is not in the search order:
// the loader still knows it by its name.
void* Real(const char* name) {
  Interposed* const entry = Find(name);
  if (entry != nullptr) {
    if (void* known = entry->real.load()) return known;
  }
  void* found = RealDlsym()(RTLD_NEXT, name);
  for (const char* library : {"libnccl.so.2", "libnccl.so"}) {
    if (found != nullptr) break;
    if (void* handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD)) {
      found = RealDlsym()(handle, name);
      if (entry != nullptr && found == entry->ours) found = nullptr;
    }
  }
  if (entry != nullptr && found != nullptr) entry->real = found;
  return found;
}

template <typename... Parameters>
ncclResult_t CallReal(const char* name, Parameters... parameters) {
  void* const real = Real(name);
  if (real == nullptr) {
    std::fprintf(stderr, "trainwreck: %s was called, and there is no libnccl\n", name);
    return kNcclSystemError;
  }
  return reinterpret_cast<ncclResult_t (*)(Parameters...)>(real)(parameters...);
}

ncclResult_t Issue(const Call& c) {
  switch (c.op) {
    case NcclOp::kAllReduce:
      return CallReal(c.function, c.send, c.receive, c.count, c.datatype, c.reduction, c.comm,
                      c.stream);
    case NcclOp::kReduce:
      return CallReal(c.function, c.send, c.receive, c.count, c.datatype, c.reduction, c.peer,
                      c.comm, c.stream);
    case NcclOp::kBroadcast:
      if (c.in_place) {
        return CallReal(c.function, c.receive, c.count, c.datatype, c.peer, c.comm, c.stream);
      }
      return CallReal(c.function, c.send, c.receive, c.count, c.datatype, c.peer, c.comm, c.stream);
    case NcclOp::kAllGather:
    case NcclOp::kAllToAll:
      return CallReal(c.function, c.send, c.receive, c.count, c.datatype, c.comm, c.stream);
    case NcclOp::kReduceScatter:
      return CallReal(c.function, c.send, c.receive, c.count, c.datatype, c.reduction, c.comm,
                      c.stream);
    case NcclOp::kSend:
      return CallReal(c.function, c.send, c.count, c.datatype, c.peer, c.comm, c.stream);
    case NcclOp::kRecv:
      return CallReal(c.function, c.receive, c.count, c.datatype, c.peer, c.comm, c.stream);
    case NcclOp::kGroupStart:
    case NcclOp::kGroupEnd:
      return CallReal(c.function);
  }
  return kNcclSystemError;
}

// The rank among all of the run, as the launcher says; else that of the communicator.
int RankOf(ncclComm_t comm) {
  for (const char* name :
       {"RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID", "TRAINWRECK_RANK"}) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != '\0') return std::atoi(value);
  }
  int rank = -1;
  if (comm != nullptr && Real("ncclCommUserRank") != nullptr) {
    CallReal("ncclCommUserRank", comm, &rank);
  }
  return rank;
}

std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return quoted + '"';
}

void Report(const NcclRules::Match& match, NcclOp op, int rank, const std::string& before,
            const std::string& after) {
  const char* path = std::getenv("TRAINWRECK_NCCL_LOG");
  if (path == nullptr || *path == '\0') return;
  const std::string line =
      "{\"t\": \"event\", \"event\": \"fired\", \"id\": " + Quoted(match.rule->id) +
      ", \"how\": " + Quoted(NameOf(match.rule->action)) + ", \"op\": " + Quoted(NameOf(op)) +
      ", \"call\": " + std::to_string(match.call) + ", \"rank\": " + std::to_string(rank) +
      ", \"pid\": " + std::to_string(getpid()) + ", \"before\": " + before +
      ", \"after\": " + after + "}\n";
  const int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  const bool written =
      fd >= 0 && write(fd, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  if (!written) std::fprintf(stderr, "trainwreck: %s: cannot be written: %s", path, line.c_str());
  if (fd >= 0) close(fd);
}

class Shim {
 public:
  explicit Shim(std::vector<NcclRule> rules) : rules_(std::move(rules)) {}

  ncclResult_t Do(Call call) {
    if (depth_ > 0) return Issue(call);  // NCCL's own calls of its functions
    const int rank = RankOf(call.comm);
    for (const NcclRules::Match& match : rules_.Count(call.op, rank)) {
      if (match.rule->action == NcclAction::kReorder) {
        const std::lock_guard lock(mutex_);
        if (!held_) {
          held_ = Held{match, call, rank};
          return kNcclSuccess;
        }
        continue;  // one at a time
      }
      if (const auto result = Act(match, rank, call)) return *result;
    }
    const ncclResult_t result = Pass(call);
    if (!MovesData(call.op) || result != kNcclSuccess) return result;
    return IssueHeldAfter(call);
  }

  // A call that is held for this communicator is never made.
  void Forget(ncclComm_t comm) {
    const std::lock_guard lock(mutex_);
    if (held_ && held_->call.comm == comm) held_.reset();
  }

 private:
  struct Held {
    NcclRules::Match match;
    Call call;
    int rank;
  };

  static ncclResult_t Pass(const Call& call) {
    ++depth_;
    const ncclResult_t result = Issue(call);
    --depth_;
    return result;
  }

  // Changes the call, or gives the result that it has without being made.
  static std::optional<ncclResult_t> Act(const NcclRules::Match& match, int rank, Call& call) {
    const NcclRule& rule = *match.rule;
    switch (rule.action) {
      case NcclAction::kDelay:
        Report(match, call.op, rank, "0", std::to_string(rule.delay_ms));
        std::this_thread::sleep_for(std::chrono::milliseconds(rule.delay_ms));
        return std::nullopt;
      case NcclAction::kDrop:
        Report(match, call.op, rank, "\"called\"", "\"left out\"");
        return kNcclSuccess;
      case NcclAction::kError:
        Report(match, call.op, rank, "0", std::to_string(rule.code));
        if (call.op == NcclOp::kGroupEnd) Pass(call);  // or the group would stay open
        return rule.code;
      case NcclAction::kFewer: {
        const std::size_t before = call.count;
        call.count -= rule.elements < before ? rule.elements : before;
        Report(match, call.op, rank, std::to_string(before), std::to_string(call.count));
        return std::nullopt;
      }
      case NcclAction::kRetype: {
        const ncclDataType_t before = call.datatype;
        const std::size_t old_bytes = BytesOfDatatype(before);
        const std::size_t new_bytes = BytesOfDatatype(rule.datatype);
        // Never beyond the end of the program's buffers.
        if (old_bytes > 0 && new_bytes > old_bytes) call.count = call.count * old_bytes / new_bytes;
        call.datatype = rule.datatype;
        Report(match, call.op, rank, std::to_string(before), std::to_string(rule.datatype));
        return std::nullopt;
      }
      case NcclAction::kReorder:
        return std::nullopt;
    }
    return std::nullopt;
  }

  ncclResult_t IssueHeldAfter(const Call& call) {
    std::optional<Held> held;
    {
      const std::lock_guard lock(mutex_);
      held.swap(held_);
    }
    if (!held) return kNcclSuccess;
    // Calls that are alike have changed places, too.
    const auto described = [](const std::string& which, const Call& one) {
      return Quoted(which + ", " + std::string(NameOf(one.op)) + " of " +
                    std::to_string(one.count));
    };
    const std::string first = described("call " + std::to_string(held->match.call), held->call);
    const std::string second = described("the next", call);
    Report(held->match, held->call.op, held->rank, "[" + first + ", " + second + "]",
           "[" + second + ", " + first + "]");
    return Pass(held->call);
  }

  static inline thread_local int depth_ = 0;
  NcclRules rules_;
  std::mutex mutex_;
  std::optional<Held> held_;
};

Shim& TheShim() {
  static Shim& shim = *[] {
    const char* text = std::getenv("TRAINWRECK_NCCL");
    try {
      return new Shim(ParseNcclRules(text != nullptr ? text : ""));
    } catch (const std::exception& error) {
      std::fprintf(stderr, "trainwreck: TRAINWRECK_NCCL: %s\n", error.what());
      std::_Exit(2);
    }
  }();
  return shim;
}

// A rule that cannot be read ends the program at its start, not at the first call.
[[maybe_unused]] const bool is_read = (TheShim(), true);

}  // namespace
}  // namespace trainwreck::preload

using trainwreck::preload::NcclOp;
using trainwreck::preload::TheShim;

extern "C" {

// A name of the newest C library alone, which a part of the C++ library wants that nothing here
// uses.
__attribute__((visibility("hidden"))) unsigned arc4random() { std::abort(); }

TRAINWRECK_EXPORT ncclResult_t ncclAllReduce(const void* send, void* receive, std::size_t count,
                                             ncclDataType_t datatype, ncclRedOp_t reduction,
                                             ncclComm_t comm, cudaStream_t stream) {
  return TheShim().Do({.op = NcclOp::kAllReduce,
                       .function = "ncclAllReduce",
                       .send = send,
                       .receive = receive,
                       .count = count,
                       .datatype = datatype,
                       .reduction = reduction,
                       .comm = comm,
                       .stream = stream});
}

TRAINWRECK_EXPORT ncclResult_t ncclReduce(const void* send, void* receive, std::size_t count,
                                          ncclDataType_t datatype, ncclRedOp_t reduction, int root,
                                          ncclComm_t comm, cudaStream_t stream) {
  return TheShim().Do({.op = NcclOp::kReduce,
                       .function = "ncclReduce",
                       .send = send,
                       .receive = receive,
                       .count = count,
                       .datatype = datatype,
                       .reduction = reduction,
                       .peer = root,
                       .comm = comm,
                       .stream = stream});
}

TRAINWRECK_EXPORT ncclResult_t ncclBroadcast(const void* send, void* receive, std::size_t count,
                                             ncclDataType_t datatype, int root, ncclComm_t comm,
                                             cudaStream_t stream) {
  return TheShim().Do({.op = NcclOp::kBroadcast,
                       .function = "ncclBroadcast",
                       .send = send,
                       .receive = receive,
                       .count = count,
                       .datatype = datatype,
                       .peer = root,
                       .comm = comm,
                       .stream = stream});
}

TRAINWRECK_EXPORT ncclResult_t ncclBcast(void* buffer, std::size_t count, ncclDataType_t datatype,
                                         int root, ncclComm_t comm, cudaStream_t stream) {
  return TheShim().Do({.op = NcclOp::kBroadcast,
                       .function = "ncclBcast",
                       .receive = buffer,
                       .count = count,
                       .datatype = datatype,
                       .peer = root,
                       .comm = comm,
                       .stream = stream,
                       .in_place = true});
}

TRAINWRECK_EXPORT ncclResult_t ncclAllGather(const void* send, void* receive, std::size_t count,
                                             ncclDataType_t datatype, ncclComm_t comm,
                                             cudaStream_t stream) {
  return TheShim().Do({.op = NcclOp::kAllGather,
                       .function = "ncclAllGather",
                       .send = send,
                       .receive = receive,
                       .count = count,
                       .datatype = datatype,
                       .comm = comm,
                       .stream = stream});
}

TRAINWRECK_EXPORT ncclResult_t ncclAlltoAll(const void* send, void* receive, std::size_t count,
                                            ncclDataType_t datatype, ncclComm_t comm,
                                            cudaStream_t stream) {
  return TheShim().Do({.op = NcclOp::kAllToAll,
                       .function = "ncclAlltoAll",
                       .send = send,
                       .receive = receive,
                       .count = count,
                       .datatype = datatype,
                       .comm = comm,
                       .stream = stream});
}

TRAINWRECK_EXPORT ncclResult_t ncclReduceScatter(const void* send, void* receive, std::size_t count,
                                                 ncclDataType_t datatype, ncclRedOp_t reduction,
                                                 ncclComm_t comm, cudaStream_t stream) {
  return TheShim().Do({.op = NcclOp::kReduceScatter,
                       .function = "ncclReduceScatter",
                       .send = send,
                       .receive = receive,
                       .count = count,
                       .datatype = datatype,
                       .reduction = reduction,
                       .comm = comm,
                       .stream = stream});
}

TRAINWRECK_EXPORT ncclResult_t ncclSend(const void* send, std::size_t count,
                                        ncclDataType_t datatype, int peer, ncclComm_t comm,
                                        cudaStream_t stream) {
  return TheShim().Do({.op = NcclOp::kSend,
                       .function = "ncclSend",
                       .send = send,
                       .count = count,
                       .datatype = datatype,
                       .peer = peer,
                       .comm = comm,
                       .stream = stream});
}

TRAINWRECK_EXPORT ncclResult_t ncclRecv(void* receive, std::size_t count, ncclDataType_t datatype,
                                        int peer, ncclComm_t comm, cudaStream_t stream) {
  return TheShim().Do({.op = NcclOp::kRecv,
                       .function = "ncclRecv",
                       .receive = receive,
                       .count = count,
                       .datatype = datatype,
                       .peer = peer,
                       .comm = comm,
                       .stream = stream});
}

TRAINWRECK_EXPORT ncclResult_t ncclGroupStart() {
  return TheShim().Do({.op = NcclOp::kGroupStart, .function = "ncclGroupStart"});
}
TRAINWRECK_EXPORT ncclResult_t ncclGroupEnd() {
  return TheShim().Do({.op = NcclOp::kGroupEnd, .function = "ncclGroupEnd"});
}

TRAINWRECK_EXPORT ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  TheShim().Forget(comm);
  return trainwreck::preload::CallReal("ncclCommDestroy", comm);
}
TRAINWRECK_EXPORT ncclResult_t ncclCommAbort(ncclComm_t comm) {
  TheShim().Forget(comm);
  return trainwreck::preload::CallReal("ncclCommAbort", comm);
}

// Programs that load libnccl themselves ask its handle for functions, and would pass us by. All
// other questions are handed on by a jump: the answer may depend on who asks.
TRAINWRECK_EXPORT __attribute__((optimize("O2"))) void* dlsym(void* handle, const char* name) {
  if (handle != RTLD_NEXT && std::strncmp(name, "nccl", 4) == 0) {
    if (auto* entry = trainwreck::preload::Find(name)) {
      void* const found = trainwreck::preload::RealDlsym()(handle, name);
      if (found != nullptr && found != entry->ours) entry->real = found;
      if (trainwreck::preload::Real(name) != nullptr) return entry->ours;
      return trainwreck::preload::RealDlsym()(RTLD_NEXT, name);  // so that dlerror says why
    }
  }
  return trainwreck::preload::RealDlsym()(handle, name);
}

}  // extern "C"

namespace trainwreck::preload {
namespace {

Interposed* Find(const char* name) {
#define TRAINWRECK_OURS(function) \
  { #function, reinterpret_cast < void*>(&function) }
  static std::array<Interposed, 13> all{{
      TRAINWRECK_OURS(ncclAllReduce),
      TRAINWRECK_OURS(ncclReduce),
      TRAINWRECK_OURS(ncclBroadcast),
      TRAINWRECK_OURS(ncclBcast),
      TRAINWRECK_OURS(ncclAlltoAll),
      TRAINWRECK_OURS(ncclAllGather),
      TRAINWRECK_OURS(ncclReduceScatter),
      TRAINWRECK_OURS(ncclSend),
      TRAINWRECK_OURS(ncclRecv),
      TRAINWRECK_OURS(ncclGroupStart),
      TRAINWRECK_OURS(ncclGroupEnd),
      TRAINWRECK_OURS(ncclCommDestroy),
      TRAINWRECK_OURS(ncclCommAbort),
  }};
#undef TRAINWRECK_OURS
  for (Interposed& one : all) {
    if (std::strcmp(one.name, name) == 0) return &one;
  }
  return nullptr;
}

}  // namespace
}  // namespace trainwreck::preload
