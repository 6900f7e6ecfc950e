// First phases that several runs share: the first of them makes it, the others begin with a copy of
// its folder. One object serves one call of the launcher.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/plan/run.h"

namespace trainwreck {

class SharedPhases {
 public:
  // `folder`: for what is kept while runs still need it.
  SharedPhases(std::string folder, const std::vector<const Run*>& runs);
  ~SharedPhases();  // removes what is kept
  SharedPhases(const SharedPhases&) = delete;
  SharedPhases& operator=(const SharedPhases&) = delete;

  // Whether another run is just making the run's first phase.
  bool MustWait(const Run& run) const;

  // That the run begins now: without a phase to copy it is the one that makes it.
  void Begin(const Run& run);
  // Copies the first phase into the run's folder, if another run has made it, and returns that
  // run's id; else empty. Throws std::filesystem::filesystem_error.
  std::string CopyInto(const Run& run, const std::string& folder) const;
  // That the run, in this folder, has made its first phase. Throws as CopyInto does.
  void Keep(const Run& run, const std::string& folder);
  // That the run has ended, or failed in its first phase: then another run makes it.
  void End(const Run& run);

 private:
  struct Phase {
    int users = 0;               // that have not ended
    const Run* maker = nullptr;  // that has begun to make it
    std::string made_by;         // not empty: its folder is kept
    std::string folder;
  };

  Phase* Find(const Run& run) const;  // null: the run shares its first phase with no other

  const std::string folder_;
  std::map<std::string, Phase> phases_;  // by the digest of their plan
  std::map<const Run*, Phase*> phase_of_;
};

}  // namespace trainwreck
