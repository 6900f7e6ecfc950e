// Open MPI 4 keeps the files of all jobs that a user runs on a machine under one folder, and a job
// that ends removes it where it is empty: maybe just when another job makes its own in there, which
// then fails ("orte_session_dir failed"). Runs are made side by side, so each gets a folder of its
// own.
#pragma once

#include <map>
#include <string>

namespace trainwreck {

class MpirunSession {
 public:
  // Names the folder in `environment`, unless the user's own environment or the target's says where
  // these files are to be.
  explicit MpirunSession(std::map<std::string, std::string>& environment);
  ~MpirunSession();  // removes it
  MpirunSession(const MpirunSession&) = delete;
  MpirunSession& operator=(const MpirunSession&) = delete;

 private:
  std::string folder_;  // empty: not ours
};

}  // namespace trainwreck
