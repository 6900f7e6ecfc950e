// A job array of shards: what is kept of it beside its results, so that a harness that is started
// again finds it, and the calls of Slurm's programs. All its submissions have one name that no
// other job has; so Slurm itself says which there are, even if the harness was killed within one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/slurm/tasks.h"

namespace trainwreck {

struct ShardRecord {
  std::int64_t job = 0;           // of its last submission; 0: none that is known
  std::vector<std::string> ends;  // states in which the submissions before it ended
};

struct SlurmJob {
  std::string name;
  std::string command;              // what each shard does; another one is another job
  std::vector<ShardRecord> shards;  // of shard 1, 2, ...
  bool is_over = false;             // merged, or cancelled: the next invocation makes a new one

  bool WasSubmitted() const;
};

SlurmJob NewSlurmJob(const std::string& command, int shards);

// The job that an earlier invocation left in its output folder; empty: none, or one that is over.
// Throws ConfigurationError for a damaged record.
std::optional<SlurmJob> LoadSlurmJob(const std::string& output);
void StoreSlurmJob(const std::string& output, const SlurmJob& job);  // throws std::system_error

// The folder of the job below `output`, absolute: its script, logs and shards.
std::string FolderOf(const std::string& output, const SlurmJob& job);

// The folders of a shard's attempts that have verdicts, the newest last. Each attempt has its own:
// one on a node that was given up may still be writing.
std::vector<std::string> AttemptsOf(const std::string& job_folder, int shard);

// The batch script. It runs `program run words...` in `folder` as the shard of its task.
std::string ShardScript(const std::string& program, const std::vector<std::string>& words,
                        const std::string& folder, const std::string& job_folder, int shards);

struct SlurmAnswer {
  bool is_there = false;
  std::string error;  // else: in Slurm's words
  std::vector<SlurmTask> tasks;
};

// What the controller knows of the job. Throws Interrupted.
SlurmAnswer AskQueue(const SlurmJob& job);
// What the accounts know of its submissions; nothing where no accounts are kept. Throws
// Interrupted.
std::vector<SlurmTask> AskAccounts(const SlurmJob& job);

struct Submission {
  std::int64_t job = 0;  // 0: refused, or not known
  std::string error;
};
// Submits these shards. `options` are those of sbatch, as "partition=gpu".
Submission Submit(const SlurmJob& job, const std::vector<int>& shards,
                  const std::vector<std::string>& options, const std::string& job_folder);

// Cancels all submissions, also after an interruption. Returns the error; empty: it is done.
std::string Cancel(const SlurmJob& job);

}  // namespace trainwreck
