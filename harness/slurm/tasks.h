// Tasks of a job array as Slurm's programs print them, and what follows from their states. Nothing
// here starts a program.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace trainwreck {

struct SlurmTask {
  std::int64_t job = 0;  // of the array
  int index = 0;
  std::string state;    // "RUNNING"
  int exit_status = 0;  // of the batch script; 128 + signal when killed
  std::string nodes;    // empty: none yet
  std::string reason;   // why it waits: "Resources", "Priority"; empty: for nothing
};

// For `squeue --noheader --array -O`: one line is one task. Fields have no fixed width.
inline constexpr char kSqueueFormat[] =
    "ArrayJobID:|,ArrayTaskID:|,State:|,exit_code:|,NodeList:|,Reason:|";
// Lines that are no tasks, such as warnings, are left out.
std::vector<SlurmTask> ParseSqueue(const std::string& text);

// For `sacct --noheader --parsable2 --allocations --format`.
inline constexpr char kSacctFormat[] = "JobID,State,ExitCode,NodeList";
std::vector<SlurmTask> ParseSacct(const std::string& text);

// Whether a task in this state has ended and stays so. States that are not known have not: a job
// that Slurm still has is waited for.
bool HasEnded(const std::string& state);

// A state of ours: Slurm forgets jobs some minutes after their end (MinJobAge), and does not keep
// accounts everywhere.
inline constexpr char kForgotten[] = "FORGOTTEN";

// Whether a shard that ended so without verdicts is to be submitted again, given the ends of its
// earlier submissions. A node took it down (failed, or wanted by somebody else): up to 3 times. Its
// time was up, or nobody knows: once, since the machine may have been slow. Else never: it would
// end in the same way, as for lack of memory.
bool IsSubmittedAgain(const std::string& state, const std::vector<std::string>& earlier);

// Whether a shard with this exit status has written verdicts. They may be seen later than its end,
// since a shared file system keeps old answers for up to a minute.
bool WritesVerdicts(int exit_status);

// {1, 2, 3, 7} as sbatch wants it: "1-3,7".
std::string ArrayText(const std::vector<int>& indices);

// As many of the first as one word of a command line holds: Linux allows 128 KiB.
std::vector<int> FirstThatFit(std::vector<int> indices);

// "1 running, 2 waiting (Resources)"
std::string Summary(const std::vector<SlurmTask>& tasks);

}  // namespace trainwreck
