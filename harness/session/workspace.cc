#include "harness/session/workspace.h"

#include <stdlib.h>

#include <filesystem>
#include <system_error>

#include "harness/session/session.h"

namespace trainwreck {

Workspace::Workspace() : path_(CacheFolder() + "/work-XXXXXX") {
  if (mkdtemp(path_.data()) == nullptr) {
    throw ConfigurationError("cannot make a folder in " + CacheFolder());
  }
}

Workspace::~Workspace() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace trainwreck
