// Follows a job array of shards from its submission to the last of its shards.
#pragma once

#include <functional>
#include <iosfwd>
#include <map>
#include <string>
#include <vector>

#include "harness/slurm/job.h"

namespace trainwreck {

struct SlurmOrder {
  std::string output;                // folder of the invocation
  std::vector<std::string> options;  // of sbatch, as "partition=gpu"
  // Whether a folder has all verdicts of its shard. A shard that was told to end has only some.
  std::function<bool(const std::string& folder)> is_whole;
};

struct SlurmResult {
  std::map<int, std::string> folders;  // by shard; of one that was lost: what it has, if anything
  std::map<int, std::string> lost;     // shard -> why, for shards without all verdicts
  bool interrupted = false;            // by a signal: the job was cancelled, or left
};

// Submits what is not submitted yet, waits for all shards, and submits again what a node took down.
// Cancels the job when interrupted by SIGINT, which a user sends. By SIGTERM or SIGHUP, which come
// with the end of the login or its node, the job is left: a later call goes on. From here on SIGHUP
// is handled as SIGTERM is, unless it is ignored. Says on `out` what happens. While Slurm does not
// answer it waits. Throws ConfigurationError if Slurm refuses the first submission.
SlurmResult FollowSlurmJob(SlurmJob& job, const SlurmOrder& order, std::ostream& out);

}  // namespace trainwreck
