// checkpoint.cut_write: a checkpoint that does not get onto the disk as a whole: the process is
// killed in the middle of its write, or the disk or the writer's quota is full.
#include <sys/resource.h>

#include <csignal>
#include <cstdint>
#include <utility>

#include "injectors/checkpoint/store_around.h"
#include "injectors/injector.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "checkpoint.cut_write",
          .doc =
              "Lets files grow to a share of the checkpoint's bytes while it is written; the "
              "kernel refuses what comes behind (RLIMIT_FSIZE, the quota of one writer). It limits "
              "each file that the process writes meanwhile: beside training, let the checkpoint "
              "be larger than the trace. The trigger's steps are steps done: `at: 50` is the "
              "checkpoint after 50 steps.",
          .params = {{.name = "share",
                      .type = ValueType::kNumber,
                      .default_value = 0.5,
                      .min = 0,
                      .max = 1,
                      .unit = "share",
                      .doc = "Of the bytes of all entries."},
                     {.name = "how",
                      .type = ValueType::kString,
                      .default_value = "killed",
                      .choices = {"killed", "full"},
                      .unit = "",
                      .doc = "killed: the process gets SIGKILL where the bytes end; full: its "
                             "write fails, as on a full disk."}},
          .evidence =
              "written before the act: steps_done, how, before (the bytes of all entries), "
              "after (the bytes that get onto the disk)"};
}

void KillThisProcess(int) { raise(SIGKILL); }

// Limits the size of files that this process writes, until it goes out of scope.
class FileSizeLimit {
 public:
  FileSizeLimit(std::uint64_t bytes, void (*at_the_limit)(int))
      : handler_(std::signal(SIGXFSZ, at_the_limit)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  void (*handler_)(int);
  rlimit before_{};
};

class CutWrite : public Injector {
 public:
  using Injector::Injector;

  std::unique_ptr<CheckpointStore> Wrap(std::unique_ptr<CheckpointStore> store) override {
    return std::make_unique<StoreAround<CutWrite>>(std::move(store), *this);
  }

  void Save(CheckpointStore& inner, int steps_done, const StateDict& state) {
    if (!ActsAt(steps_done)) return inner.Save(steps_done, state);
    std::uint64_t bytes = 0;
    for (const auto& [name, tensor] : state) bytes += tensor.nbytes();
    const auto limit =
        static_cast<std::uint64_t>(static_cast<double>(bytes) * param("share").get<double>());
    const bool is_killed = param("how") == "killed";
    Fired({{"steps_done", steps_done}, {"how", param("how")}, {"before", bytes}, {"after", limit}});
    const FileSizeLimit scope(limit, is_killed ? KillThisProcess : SIG_IGN);
    inner.Save(steps_done, state);
  }
};

REGISTER_FAULT(Info, CutWrite);

}  // namespace
}  // namespace trainwreck
