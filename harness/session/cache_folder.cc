// The user's cache folder (session.h).
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <iostream>
#include <string>

#include "harness/launch/private_file.h"
#include "harness/session/session.h"
#include "harness/text/clean_text.h"

namespace trainwreck {
namespace {

namespace fs = std::filesystem;

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string WantedFolder() {
  if (std::string cache = Variable("TRAINWRECK_CACHE"); !cache.empty()) return cache;
  if (std::string cache = Variable("XDG_CACHE_HOME"); !cache.empty()) return cache + "/trainwreck";
  if (std::string home = Variable("HOME"); !home.empty()) return home + "/.cache/trainwreck";
  if (std::string test = Variable("TEST_TMPDIR"); !test.empty()) return test + "/trainwreck-cache";
  return "/tmp/trainwreck-cache-" + std::to_string(getuid());
}

// Makes it, for this user alone. What is wrong with it, or empty.
std::string Prepare(const std::string& folder) {
  std::error_code error;
  const fs::path parent = fs::path(folder).parent_path();
  if (!parent.empty()) fs::create_directories(parent, error);
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return std::string("cannot be made: ") + std::strerror(errno);
  }
  if (!fs::is_directory(folder, error)) return "is no folder";
  if (!IsOursAlone(folder)) {
    return "belongs to another user, or others may write to it ('chmod go-w' on a folder of your "
           "own)";
  }
  if (access(folder.c_str(), W_OK | X_OK) != 0) {
    return std::string("cannot be written: ") + std::strerror(errno);
  }
  return "";
}

// For one invocation, where nobody else can reach.
class PrivateFolder {
 public:
  PrivateFolder() {
    const std::string base = Variable("TMPDIR");
    path_ = (base.empty() ? "/tmp" : base) + "/trainwreck-XXXXXX";
    if (mkdtemp(path_.data()) != nullptr) return;
    throw ConfigurationError("cannot make a temporary folder " + path_ + ": " +
                             std::strerror(errno) + "; name one with TMPDIR=DIR");
  }
  ~PrivateFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace

std::string CacheFolder() {
  static const std::string wanted = WantedFolder();
  static const std::string problem = Prepare(wanted);
  if (problem.empty()) return wanted;
  static const bool is_said = [] {
    std::cerr
        << "trainwreck: warning: no cache: " << CleanText(wanted) << " " << problem
        << "; what is learnt of the target is forgotten (TRAINWRECK_CACHE=DIR names another)\n";
    return true;
  }();
  static_cast<void>(is_said);
  static const PrivateFolder instead;
  return instead.path();
}

}  // namespace trainwreck
