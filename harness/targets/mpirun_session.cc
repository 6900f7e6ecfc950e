#include "harness/targets/mpirun_session.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace trainwreck {
namespace {

namespace fs = std::filesystem;

// On all machines. The name for mpirun's own alone will not do: mpirun names the folder for its
// ranks by this one, and MPI_Init refuses both together.
constexpr char kFolder[] = "OMPI_MCA_orte_tmpdir_base";
constexpr char kFolderHere[] = "OMPI_MCA_orte_local_tmpdir_base";

}  // namespace

MpirunSession::MpirunSession(std::map<std::string, std::string>& environment) {
  for (const char* name : {kFolder, kFolderHere}) {
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
