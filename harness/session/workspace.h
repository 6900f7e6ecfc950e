// Where runs are made that nobody keeps.
#pragma once

#include <string>

namespace trainwreck {

// A new folder in the user's cache, which goes when it is done with.
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
