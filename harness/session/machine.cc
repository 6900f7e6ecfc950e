#include "harness/session/machine.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <thread>

#include "harness/session/session.h"

namespace trainwreck {
namespace {

namespace fs = std::filesystem;

constexpr double kGibibyte = 1 << 30;

double AvailableMemory() {
  std::ifstream file("/proc/meminfo");
  std::string key, unit;
  double kibibytes = 0;
  while (file >> key >> kibibytes) {
    std::getline(file, unit);
    if (key == "MemAvailable:") return kibibytes * 1024;
  }
  return 0;
}

double FreeDisk() {
  struct statvfs disk {};
  if (statvfs(".", &disk) != 0) return 0;
  return static_cast<double>(disk.f_bavail) * static_cast<double>(disk.f_frsize);
}

Finding CheckDisk(const Machine& machine) {
  if (!machine.is_writable) {
    return {Health::kFail, "disk", machine.folder + " is not writable",
            "run elsewhere, or name a folder with --output DIR"};
  }
  return {machine.free_disk >= kGibibyte ? Health::kOk : Health::kWarn, "disk",
          Gibibytes(machine.free_disk) + " free here",
          "traces and checkpoints of the suite need some hundred MB: --output DIR on another disk"};
}

Finding CheckMemory(const Machine& machine) {
  const Health health = machine.available_memory >= 2 * kGibibyte     ? Health::kOk
                        : machine.available_memory >= 0.5 * kGibibyte ? Health::kWarn
                                                                      : Health::kFail;
  return {health, "memory", Gibibytes(machine.available_memory) + " available",
          "each rank of the reference trainer takes about 0.2 GiB: use fewer cores (-j)"};
}

// What runs cannot do without.
Finding Require(bool is_there, const std::string& what, const std::string& well,
                const std::string& ill, const std::string& fix) {
  return {is_there ? Health::kOk : Health::kFail, what, is_there ? well : ill, fix};
}

}  // namespace

std::string Gibibytes(double bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f GiB", bytes / kGibibyte);
  return text;
}

Machine ThisMachine() {
  Machine machine;
  machine.usable_cores = UsableCores();
  machine.all_cores = std::thread::hardware_concurrency();
  machine.available_memory = AvailableMemory();
  machine.folder = fs::current_path().string();
  machine.is_writable = access(".", W_OK) == 0;
  machine.free_disk = FreeDisk();
  struct rlimit limit {};
  getrlimit(RLIMIT_NOFILE, &limit);
  machine.open_files = limit.rlim_cur;
  int ignored = 0;
  machine.has_death_signal = prctl(PR_GET_PDEATHSIG, &ignored) == 0;
  machine.has_subreaper = prctl(PR_GET_CHILD_SUBREAPER, &ignored) == 0;
  machine.has_proc = fs::exists("/proc/self/stat");
  return machine;
}

std::vector<Finding> CheckMachine(const Machine& machine) {
  return {
      {machine.usable_cores >= 2 ? Health::kOk : Health::kWarn, "cores",
       std::to_string(machine.usable_cores) + " usable of " + std::to_string(machine.all_cores),
       "scenarios of two ranks share one core; they are slower and their budgets may not do"},
      CheckMemory(machine),
      CheckDisk(machine),
      {machine.open_files >= 512 ? Health::kOk : Health::kWarn, "open files",
       "up to " + std::to_string(machine.open_files), "ulimit -n 1024"},
      Require(machine.has_death_signal, "death signal", "PR_SET_PDEATHSIG works",
              "no PR_SET_PDEATHSIG",
              "runs could outlive a killed harness: use Linux without this seccomp filter"),
      Require(machine.has_subreaper, "subreaper", "PR_SET_CHILD_SUBREAPER works",
              "no PR_SET_CHILD_SUBREAPER",
              "processes that hide could not be found: use Linux without this seccomp filter"),
      Require(machine.has_proc, "/proc", "mounted", "not mounted", "mount -t proc proc /proc"),
  };
}

}  // namespace trainwreck
