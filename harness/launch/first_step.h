// Whether an attempt has come to its first step: steps of earlier attempts stand in the same files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace trainwreck {

class FirstStepWatch {
 public:
  FirstStepWatch() = default;
  // Everything that the ranks have written up to now belongs to earlier attempts.
  // `takes_collectives`: a collective counts as well.
  FirstStepWatch(const std::string& folder, int ranks, bool takes_collectives);

  // Reads what is new, until it holds what counts, of any rank.
  bool Seen();

 private:
  struct File {
    std::string path;
    std::int64_t offset = 0;
    std::string tail;  // of an unfinished line
  };
  std::vector<File> files_;
  bool takes_collectives_ = true;
  bool seen_ = false;
};

}  // namespace trainwreck
