// A folder for runs that are not kept.
#pragma once

#include <string>

namespace trainwreck {

// A new folder in the user's cache, which is removed at the end.
class Workspace {
 public:
  Workspace();
  ~Workspace();
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace trainwreck
