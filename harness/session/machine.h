// Checks whether this machine can run scenarios: the facts about it, and findings from them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace trainwreck {

enum class Health { kOk, kWarn, kFail };

// The result of one check.
struct Finding {
  Health health = Health::kOk;
  std::string what;  // "cores"
  std::string seen;
  std::string fix;  // what to do where it is not ok
};

struct Machine {
  int usable_cores = 0;  // by this process
  unsigned all_cores = 0;
  double available_memory = 0;  // bytes
  std::string folder;           // the current one
  bool is_writable = false;     // the folder
  double free_disk = 0;         // bytes, in the folder
  std::uint64_t open_files = 0;
  bool has_death_signal = false;
  bool has_subreaper = false;
  bool has_proc = false;
};

Machine ThisMachine();

std::vector<Finding> CheckMachine(const Machine& machine);

// "1.5 GiB"
std::string Gibibytes(double bytes);

}  // namespace trainwreck
