#include "harness/targets/launcher_words.h"

#include <algorithm>
#include <cstdlib>

#include "harness/targets/option_roles.h"

namespace trainwreck {
namespace {

using Words = std::vector<std::string>;

// "/usr/bin/srun" -> "srun", "mpiexec" -> "mpirun"; empty: it starts no ranks.
std::string LauncherOf(const std::string& word) {
  const std::string name = word.substr(word.rfind('/') + 1);  // npos + 1: all of it
  if (name == "mpiexec") return "mpirun";
  const bool is_module = word == "torch.distributed.run" || word == "torch.distributed.launch";
  if (is_module || name == "torchrun") return "torchrun";
  return name == "srun" || name == "mpirun" ? name : "";
}

bool IsProgram(const std::string& word) {
  const std::string name = word.substr(word.rfind('/') + 1);
  return name.ends_with(".py") || name.starts_with("python");
}

// "--nproc-per-node" and "--nproc_per_node" are the same.
std::string OptionName(std::string word) {
  if (word.starts_with("--")) std::replace(word.begin(), word.end(), '-', '_');
  return word;
}

std::optional<int> NumberOf(const std::string& text) {
  const bool is_number = !text.empty() && IsWhole(text);
  return is_number ? std::optional<int>(std::atoi(text.c_str())) : std::nullopt;
}

struct Number {
  int value = 0;
  std::size_t at = 0;  // the word that has it
};

// The last of these options, as `-n 4`, `-n4`, `--ntasks 4` or `--ntasks=4`.
std::optional<Number> NumberAt(const Words& words, std::size_t begin, std::size_t end,
                               const std::vector<std::string>& names) {
  std::optional<Number> found;
  for (std::size_t i = begin; i < end; ++i) {
    const std::string name = OptionName(words[i].substr(0, words[i].find('=')));
    for (const std::string& wanted : names) {
      std::optional<int> value;
      std::size_t at = i;
      if (name == OptionName(wanted) && words[i].find('=') != std::string::npos) {
        value = NumberOf(words[i].substr(words[i].find('=') + 1));
      } else if (name == OptionName(wanted) && i + 1 < end) {
        value = NumberOf(words[at = i + 1]);
      } else if (wanted.size() == 2 && words[i].starts_with(wanted)) {
        value = NumberOf(words[i].substr(wanted.size()));
      }
      if (value) found = Number{*value, at};
    }
  }
  return found;
}

}  // namespace

LauncherWords FindLauncher(const Words& command) {
  LauncherWords found;
  std::size_t begin = 0;  // of the launcher that comes last
  for (std::size_t i = 0; i < command.size() && !command[i].ends_with(".py"); ++i) {
    const std::string launcher = LauncherOf(command[i]);
    if (launcher.empty() || (launcher != "torchrun" && i > 0)) continue;
    found.launcher = launcher;
    begin = i + 1;
  }
  if (begin == 0) return {};
  const auto program = std::find_if(command.begin() + begin, command.end(), IsProgram);
  if (program == command.end()) return {};
  found.count = static_cast<std::size_t>(program - command.begin());
  const std::string first = LauncherOf(command[0]);
  if (found.launcher == "torchrun") {
    const auto nodes = NumberAt(command, begin, found.count, {"--nnodes"});
    const auto ranks = NumberAt(command, begin, found.count, {"--nproc_per_node"});
    found.is_over_nodes = !first.empty() && first != "torchrun";
    const auto is_option = [](const std::string& word) {
      return OptionName(word) == OptionName("--no_python");
    };
    found.runs_python = std::none_of(command.begin() + begin, program, is_option);
    if (!ranks) return found;
    found.ranks = ranks->value * (nodes ? nodes->value : 1);
    if (!found.is_over_nodes && (!nodes || nodes->value == 1)) found.ranks_at = ranks->at;
    return found;
  }
  found.is_over_nodes = true;
  const bool is_srun = found.launcher == "srun";
  const std::vector<std::string> names =
      is_srun ? Words{"-n", "--ntasks"} : Words{"-n", "-np", "--np", "-c"};
  if (const auto ranks = NumberAt(command, begin, found.count, names)) {
    found.ranks = ranks->value;
    found.ranks_at = ranks->at;
    return found;
  }
  const auto nodes = NumberAt(command, begin, found.count, {"-N", "--nodes"});
  const auto each = NumberAt(command, begin, found.count, {"--ntasks_per_node"});
  if (is_srun && nodes) found.ranks = nodes->value * (each ? each->value : 1);
  return found;
}

}  // namespace trainwreck
