#include "harness/targets/globs.h"

#include <glob.h>
#include <string.h>
#include <sys/stat.h>

#include <utility>

namespace trainwreck {

bool HasWildcards(const std::string& text) { return text.find_first_of("*?") != std::string::npos; }

std::string EscapeForGlob(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (strchr("*?[]\\", c) != nullptr) escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::vector<std::string> FindMatches(const std::string& pattern) {
  std::vector<std::string> found;
  glob_t matches{};
  if (glob(pattern.c_str(), 0, nullptr, &matches) == 0) {
    found.assign(matches.gl_pathv, matches.gl_pathv + matches.gl_pathc);
  }
  globfree(&matches);
  return found;
}

std::optional<std::string> FindNewest(const std::vector<std::string>& folders,
                                      const std::string& pattern) {
  std::optional<std::string> newest;
  std::pair<std::int64_t, std::int64_t> newest_time;
  for (const std::string& folder : folders) {
    for (const std::string& path : FindMatches(EscapeForGlob(folder) + "/" + pattern)) {
      struct stat status;
      if (stat(path.c_str(), &status) != 0) continue;
      const std::pair<std::int64_t, std::int64_t> time{status.st_mtim.tv_sec,
                                                       status.st_mtim.tv_nsec};
      const bool is_newer = !newest || time > newest_time ||
                            (time == newest_time && strverscmp(path.c_str(), newest->c_str()) > 0);
      if (!is_newer) continue;
      newest = path;
      newest_time = time;
    }
  }
  return newest;
}

}  // namespace trainwreck
