#include "harness/process/rank_processes.h"

#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

#include "harness/process/spawn.h"

namespace trainwreck {
namespace {

struct Stat {
  char state = '?';
  int parent = 0;
  int exit_status = 0;
};

// Fields 3, 4 and 52 of proc(5).
std::optional<Stat> ReadStat(int pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  if (!std::getline(file, text)) return std::nullopt;
  const std::size_t name_end = text.rfind(')');  // the name may hold spaces and parentheses
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(text.substr(name_end + 1));
  Stat stat;
  std::string skipped;
  fields >> stat.state >> stat.parent;
  for (int field = 5; field < 52; ++field) fields >> skipped;
  if (!(fields >> stat.exit_status)) stat.exit_status = 0;
  return stat;
}

std::optional<int> RankOf(int pid, const std::string& variable) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/environ", std::ios::binary);
  for (std::string entry; std::getline(file, entry, '\0');) {
    if (entry.compare(0, variable.size() + 1, variable + "=") != 0) continue;
    char* end = nullptr;
    const std::string text = entry.substr(variable.size() + 1);
    const long rank = std::strtol(text.c_str(), &end, 10);
    if (!text.empty() && *end == '\0' && rank >= 0) return static_cast<int>(rank);
  }
  return std::nullopt;
}

// A killed process has to give its memory back.
constexpr std::chrono::seconds kLongestEnd{5};

bool HasEnded(int pid) {
  const auto stat = ReadStat(pid);
  return !stat || stat->state == 'Z' || stat->state == 'X';
}

}  // namespace

std::map<int, RankProcess> FindRankProcesses(const std::string& run_folder,
                                             const std::string& rank_variable, int except) {
  std::map<int, int> rank_of;  // pid -> rank
  for (const int pid : ProcessesWith({std::string(kRunVariable) + "=" + run_folder})) {
    if (pid == except) continue;
    if (const auto rank = RankOf(pid, rank_variable)) rank_of[pid] = *rank;
  }
  std::map<int, RankProcess> found;
  for (const auto& [pid, rank] : rank_of) {
    const auto stat = ReadStat(pid);
    if (!stat || stat->state == 'Z') continue;
    const auto above = rank_of.find(stat->parent);
    if (above != rank_of.end() && above->second == rank) continue;  // a helper of that rank
    found.emplace(rank, RankProcess{pid, stat->state});
  }
  return found;
}

void KillTogether(const std::vector<int>& pids) {
  kill(pids.front(), SIGSTOP);  // so that it does not see them end
  for (std::size_t i = 1; i < pids.size(); ++i) kill(pids[i], SIGKILL);
  const auto give_up = std::chrono::steady_clock::now() + kLongestEnd;
  for (std::size_t i = 1; i < pids.size() && std::chrono::steady_clock::now() < give_up;) {
    if (HasEnded(pids[i])) {
      ++i;
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  kill(pids.front(), SIGKILL);
}

std::optional<ProcessEnd> ReadProcessEnd(int pid) {
  const auto stat = ReadStat(pid);
  if (!stat) return std::nullopt;
  return ProcessEnd{stat->state, stat->exit_status};
}

}  // namespace trainwreck
