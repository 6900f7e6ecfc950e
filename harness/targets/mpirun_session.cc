#include "harness/targets/mpirun_session.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace trainwreck {
namespace {

namespace fs = std::filesystem;

// Of mpirun's own machine: on others its daemons have one folder each anyway.
constexpr char kFolder[] = "OMPI_MCA_orte_local_tmpdir_base";
// The same for all machines.
constexpr char kFolderEverywhere[] = "OMPI_MCA_orte_tmpdir_base";

}  // namespace

MpirunSession::MpirunSession(std::map<std::string, std::string>& environment) {
  for (const char* name : {kFolder, kFolderEverywhere}) {
    if (environment.contains(name) || std::getenv(name) != nullptr) return;
  }
  std::error_code error;
  fs::path temporary = fs::temp_directory_path(error);
  if (error) return;
  // Not the run's folder: that may be on a network, and its name may be long.
  std::string folder = temporary / "trainwreck-mpirun-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) return;
  environment[kFolder] = folder;
  folder_ = std::move(folder);
}

MpirunSession::~MpirunSession() {
  if (folder_.empty()) return;
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

}  // namespace trainwreck
