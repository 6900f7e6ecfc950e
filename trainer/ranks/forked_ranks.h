// For tests: runs a body as so many real processes, as ranks are, and collects how each ended.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace trainwreck {

struct RankEnd {
  int exit_code = -1;  // 0: the body returned; 1: it threw; 99: killed at the limit
  int signal = 0;
  std::string output;  // what the body returned, or the message of what it threw
  double seconds = 0;  // from the start of all ranks to this one's end
};

// `body(rank)` runs in a fork of this process, which must have one thread. Ranks that are not done
// after `limit_s` are killed.
std::vector<RankEnd> RunForked(int world_size, const std::function<std::string(int rank)>& body,
                               double limit_s = 30);

// A folder of its own under the test's temporary folder, removed with all that is in it.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::string& path() const { return path_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace trainwreck
