#include "harness/targets/launched_spec.h"

#include <filesystem>
#include <map>
#include <stdexcept>
#include <utility>

#include "harness/targets/environment_variable.h"

namespace trainwreck {
namespace {

namespace fs = std::filesystem;

// The launcher's command line for ranks on this machine, up to the program's own.
std::vector<std::string> LauncherWords(const std::string& launcher, const std::string& ranks) {
  if (launcher == "torchrun") {
    // PyTorch reads dashes in these names from 2.0 on only. Each run has a store of its own. In
    // PyTorch 1.13 those of --standalone share one, and the first run that ends takes it away.
    return {"torchrun",    "--rdzv_backend=c10d", "--rdzv_endpoint=localhost:0",
            "--no_python", "--nproc_per_node",    ranks};
  }
  if (launcher == "mpirun") return {launcher, "-n", ranks};
  // Its tasks may be on other machines.
  if (launcher == "srun") {
    return {launcher, "-n", ranks, fs::read_symlink("/proc/self/exe").string(), "rank", "--"};
  }
  throw std::runtime_error("no launcher '" + launcher + "': torchrun, mpirun or srun");
}

}  // namespace

TargetSpec LaunchedSpec(const std::vector<std::string>& arguments) {
  TargetSpec spec;
  spec.name = arguments.at(0);
  spec.level = 1;
  spec.folder = fs::current_path().string();
  spec.launcher = spec.name == "mpirun" ? LauncherKind::kMpirun
                  : spec.name == "srun" ? LauncherKind::kSrun
                                        : LauncherKind::kTorchrun;
  const auto literal = [](const std::string& text) {
    std::string doubled, error;  // braces begin placeholders
    for (const char c : text)
      doubled += c == '{' || c == '}' ? std::string(2, c) : std::string(1, c);
    return TemplateText::Parse(doubled, error);
  };
  std::vector<std::string> words = LauncherWords(arguments.at(0), arguments.at(1));
  words.insert(words.end(), arguments.begin() + 2, arguments.end());
  Arguments line;
  for (const std::string& word : words) line.words.push_back(literal(word));
  spec.command.push_back(std::move(line));
  if (spec.launcher != LauncherKind::kTorchrun) {  // that one has an address of its own
    for (const char* name : {"MASTER_ADDR", "MASTER_PORT"}) {
      spec.environment[name] = literal(Variable(name));
    }
  }
  // Ranks share the cores of a machine, and a container's user is root.
  if (spec.launcher == LauncherKind::kMpirun) {
    for (const auto& [name, value] : std::map<std::string, std::string>{
             {"OMPI_ALLOW_RUN_AS_ROOT", "1"},
             {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
             {"OMPI_MCA_rmaps_base_oversubscribe", "1"},
             {"PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe"}}) {
      spec.environment[name] = literal(value);
    }
  }
  return spec;
}

}  // namespace trainwreck
