#include "harness/targets/python_hooks.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <utility>

#include "harness/protocol/parse_json.h"

namespace trainwreck {
namespace {

namespace fs = std::filesystem;

// From the program's folder: in a wheel, as ci/install.sh installs it, and in Bazel's output tree.
constexpr const char* kPackages[] = {"..", "../share/trainwreck/python/trainwreck",
                                     "../../python/packed/trainwreck"};

}  // namespace

std::string FindPythonHooks() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  for (const char* package : kPackages) {
    const fs::path file = (program.parent_path() / package / "hooks.json").lexically_normal();
    if (fs::is_regular_file(file, error)) return file.string();
  }
  return "";
}

TargetDescription DescribePythonHooks(const std::string& file) {
  std::ifstream text(file);
  if (!text) throw std::runtime_error(file + ": the description of the hooks cannot be read");
  return DescriptionFromJson(ParseJson(text));
}

void AddPythonHooks(const TargetSpec& spec, TargetDescription& target) {
  TargetDescription hooks = DescribePythonHooks(spec.hooks);
  for (SignalInfo& signal : hooks.signals) {
    if (target.FindSignal(signal.name) == nullptr) target.signals.push_back(std::move(signal));
  }
  AddEvents(hooks.events, target);
  for (FaultInfo& fault : hooks.faults) {
    if (target.FindFault(fault.name) != nullptr) {
      throw std::runtime_error(spec.hooks + ": the harness has a fault '" + fault.name +
                               "' itself");
    }
    target.faults.push_back(std::move(fault));
  }
  target.features.insert(target.features.end(), hooks.features.begin(), hooks.features.end());
}

void SetPythonHooks(const TargetSpec& spec, std::map<std::string, std::string>& environment) {
  const std::string startup = (fs::path(spec.hooks).parent_path() / "startup").string();
  const char* inherited = std::getenv("PYTHONPATH");
  std::string& path =
      environment.try_emplace("PYTHONPATH", inherited ? inherited : "").first->second;
  path = path.empty() ? startup : startup + ":" + path;
  std::string without;
  for (const SourceSpec& source : spec.sources) {
    for (const auto& [signal, name] : source.names)
      without += (without.empty() ? "" : ",") + signal;
  }
  environment["TRAINWRECK_ADAPTER"] = "python";
  environment["TRAINWRECK_ADAPTER_WITHOUT"] = without;
}

}  // namespace trainwreck
