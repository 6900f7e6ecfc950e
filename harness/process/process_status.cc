#include "harness/process/process_status.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>

namespace trainwreck {

std::optional<ProcessStatus> ReadProcess(int pid) {
  const std::string folder = "/proc/" + std::to_string(pid);
  std::ifstream file(folder + "/stat");
  std::string text;
  if (!std::getline(file, text)) return std::nullopt;
  // The name stands in parentheses and may hold anything; what follows is plain.
  std::istringstream fields(text.substr(std::min(text.size(), text.rfind(')') + 1)));
  ProcessStatus status;
  if (!(fields >> status.state)) return std::nullopt;  // field 3 of proc(5)
  std::ifstream children(folder + "/task/" + std::to_string(pid) + "/children");
  status.has_children = !children || children.peek() != std::ifstream::traits_type::eof();
  return status;
}

std::optional<double> ReadProcessorDemand(int pid) {
  std::error_code error;
  std::filesystem::directory_iterator threads("/proc/" + std::to_string(pid) + "/task", error);
  if (error) return std::nullopt;
  double nanoseconds = 0;
  bool is_known = false;
  for (; threads != std::filesystem::directory_iterator(); threads.increment(error)) {
    std::ifstream file(threads->path() / "schedstat");
    double had = 0;
    double waited = 0;
    if (!(file >> had >> waited)) continue;  // it has just ended
    is_known = true;
    nanoseconds += had + waited;
  }
  return is_known ? std::optional(1e-9 * nanoseconds) : std::nullopt;
}

}  // namespace trainwreck
