#include "harness/process/process_status.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

namespace trainwreck {

std::optional<ProcessStatus> ReadProcess(int pid) {
  const std::string folder = "/proc/" + std::to_string(pid);
  std::ifstream file(folder + "/stat");
  std::string text;
  if (!std::getline(file, text)) return std::nullopt;
  // The name stands in parentheses and may hold anything; what follows is plain.
  std::istringstream fields(text.substr(std::min(text.size(), text.rfind(')') + 1)));
  ProcessStatus status;
  std::int64_t user = 0;
  std::int64_t system = 0;
  std::string skipped;
  fields >> status.state;                                      // field 3 of proc(5)
  for (int field = 4; field < 14; ++field) fields >> skipped;  // up to cmajflt
  if (!(fields >> user >> system)) return std::nullopt;
  status.cpu_ticks = user + system;
  std::ifstream children(folder + "/task/" + std::to_string(pid) + "/children");
  status.has_children = !children || children.peek() != std::ifstream::traits_type::eof();
  return status;
}

}  // namespace trainwreck
