#include "harness/process/proc_folder.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <unordered_map>
#include <vector>

#include "harness/process/spawn.h"

namespace trainwreck {
namespace {

std::string ReadSmallFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<pid_t> AllProcesses() {
  std::vector<pid_t> found;
  DIR* proc = opendir("/proc");
  if (proc == nullptr) return found;
  while (const dirent* entry = readdir(proc)) {
    if (const pid_t pid = std::atoi(entry->d_name); pid > 0) found.push_back(pid);
  }
  closedir(proc);
  return found;
}

}  // namespace

std::optional<ProcessInfo> ReadProcessInfo(pid_t pid) {
  const std::string stat = ReadSmallFile("/proc/" + std::to_string(pid) + "/stat");
  const std::size_t name_end = stat.rfind(')');  // the name may hold spaces and parentheses
  if (name_end == std::string::npos) return std::nullopt;
  ProcessInfo info;
  char state;
  if (std::sscanf(stat.c_str() + name_end + 1, " %c %d %d", &state, &info.parent, &info.group) !=
      3) {
    return std::nullopt;
  }
  return info;
}

std::string CommandOf(pid_t pid) {
  const std::string folder = "/proc/" + std::to_string(pid);
  std::string command = ReadSmallFile(folder + "/cmdline");
  if (command.empty()) command = ReadSmallFile(folder + "/comm");
  while (!command.empty() && (command.back() == '\0' || command.back() == '\n')) command.pop_back();
  std::replace(command.begin(), command.end(), '\0', ' ');
  return command.substr(0, 200);
}

std::vector<int> ProcessesWith(const std::vector<std::string>& entries) {
  std::set<pid_t> spared;  // somebody may have exported an entry in the shell that we come from
  for (pid_t pid = getpid(); pid > 0 && spared.insert(pid).second;) {
    const auto info = ReadProcessInfo(pid);
    pid = info ? info->parent : 0;
  }
  std::vector<int> found;
  for (const pid_t pid : AllProcesses()) {
    if (spared.contains(pid)) continue;
    const std::string environment =
        '\0' + ReadSmallFile("/proc/" + std::to_string(pid) + "/environ");
    const bool has_all = std::all_of(entries.begin(), entries.end(), [&](const std::string& entry) {
      return environment.find('\0' + entry + '\0') != std::string::npos;
    });
    if (has_all) found.push_back(pid);
  }
  return found;
}

std::vector<pid_t> Descendants(pid_t root) {
  std::unordered_map<pid_t, std::vector<pid_t>> children;
  for (const pid_t pid : AllProcesses()) {
    if (const auto info = ReadProcessInfo(pid)) children[info->parent].push_back(pid);
  }
  std::vector<pid_t> found{root};
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto below = children.find(found[i]);
    if (below != children.end())
      found.insert(found.end(), below->second.begin(), below->second.end());
  }
  found.erase(found.begin());
  return found;
}

}  // namespace trainwreck
