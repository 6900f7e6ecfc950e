#include "harness/slurm/job.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <set>
#include <sstream>

#include "harness/process/command.h"
#include "harness/protocol/parse_json.h"
#include "harness/session/session.h"
#include "harness/session/storage.h"
#include "harness/text/clean_text.h"
#include "harness/text/words.h"

namespace trainwreck {
namespace {

namespace fs = std::filesystem;

constexpr int kNotThere = 127;  // of RunCommand
constexpr char kScript[] = "shard.sh";

std::string RecordFile(const std::string& output) { return output + "/slurm/job.json"; }

// A program of Slurm, with all that it prints.
CommandResult CallSlurm(const std::vector<std::string>& command, bool to_its_end = false) {
  CommandResult called = RunCommand(command, {.folder = "",
                                              .log = "",
                                              .environment = {},
                                              .captures_errors = true,
                                              .ignores_interruption = to_its_end});
  if (called.status == kNotThere && called.out.empty()) {
    called.out = "there is no '" + command.front() + "' on this machine's PATH";
  }
  return called;
}

std::string UserOption() { return "--user=" + std::to_string(getuid()); }

// "17" or "17;cluster"; 0: another line.
std::int64_t JobOfLine(const std::string& line) {
  const std::size_t digits = std::min(line.find_first_not_of("0123456789"), line.size());
  constexpr std::size_t kMostDigits = 18;
  const bool is_number = digits > 0 && digits <= kMostDigits;
  return is_number && (digits == line.size() || line[digits] == ';') ? std::stoll(line) : 0;
}

}  // namespace

bool SlurmJob::WasSubmitted() const {
  return std::any_of(shards.begin(), shards.end(),
                     [](const ShardRecord& shard) { return shard.job != 0; });
}

SlurmJob NewSlurmJob(const std::string& command, int shards) {
  std::random_device random;
  std::ostringstream name;
  name << "trainwreck-" << std::hex << random() << random();
  return {.name = name.str(),
          .command = command,
          .shards = std::vector<ShardRecord>(static_cast<std::size_t>(shards)),
          .is_over = false};
}

std::optional<SlurmJob> LoadSlurmJob(const std::string& output) {
  const std::string file = RecordFile(output);
  if (!fs::exists(file)) return std::nullopt;
  try {
    const Json json = ParseJson(ReadWholeFile(file));
    SlurmJob job;
    job.name = json.at("name").get<std::string>();
    job.command = json.at("command").get<std::string>();
    job.is_over = json.at("over").get<bool>();
    for (const Json& shard : json.at("shards")) {
      job.shards.push_back({.job = shard.at("job").get<std::int64_t>(),
                            .ends = shard.at("ends").get<std::vector<std::string>>()});
    }
    if (job.is_over) return std::nullopt;
    return job;
  } catch (const std::exception& error) {
    throw ConfigurationError(file + " is no record of a job: " + error.what() +
                             "; name another folder with --output");
  }
}

void StoreSlurmJob(const std::string& output, const SlurmJob& job) {
  Json shards = Json::array();
  for (const ShardRecord& shard : job.shards) {
    shards.push_back({{"job", shard.job}, {"ends", shard.ends}});
  }
  const Json json = {
      {"name", job.name}, {"command", job.command}, {"shards", shards}, {"over", job.is_over}};
  WriteWholeFile(RecordFile(output), json.dump(1) + "\n");
}

std::string FolderOf(const std::string& output, const SlurmJob& job) {
  return (fs::absolute(output) / "slurm" / job.name).lexically_normal().string();
}

std::vector<std::string> AttemptsOf(const std::string& job_folder, int shard) {
  std::vector<fs::path> folders;
  std::error_code error;
  for (const auto& entry :
       fs::directory_iterator(job_folder + "/" + std::to_string(shard), error)) {
    if (fs::exists(entry.path() / "verdicts.json", error)) folders.push_back(entry.path());
  }
  std::sort(folders.begin(), folders.end(), [](const fs::path& a, const fs::path& b) {
    std::error_code ignored;
    return std::pair(fs::last_write_time(a / "verdicts.json", ignored), a) <
           std::pair(fs::last_write_time(b / "verdicts.json", ignored), b);
  });
  return {folders.begin(), folders.end()};
}

std::string ShardScript(const std::string& program, const std::vector<std::string>& words,
                        const std::string& folder, const std::string& job_folder, int shards) {
  std::string command = ShellWord(program) + " run";
  for (const std::string& word : words) command += " " + ShellWord(word);
  return "#!/bin/sh\n"
         "# One shard of a suite, as a task of a job array.\n"
         "cd " +
         ShellWord(folder) +
         " || exit 3  # Slurm would go on in /tmp\n"
         "unset GITHUB_STEP_SUMMARY\n"
         "exec " +
         command + " --history none --shard \"$SLURM_ARRAY_TASK_ID/" + std::to_string(shards) +
         "\" --output " + ShellWord(job_folder) +
         "/\"$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_JOB_ID.${SLURM_RESTART_COUNT:-0}\"\n";
}

SlurmAnswer AskQueue(const SlurmJob& job) {
  const CommandResult called =
      CallSlurm({"squeue", "--noheader", "--array", "--states=all", UserOption(),
                 "--name=" + job.name, std::string("--Format=") + kSqueueFormat});
  if (called.status != 0) {
    return {.is_there = false, .error = CleanText(InOneLine(called.out)), .tasks = {}};
  }
  return {.is_there = true, .error = "", .tasks = ParseSqueue(called.out)};
}

std::vector<SlurmTask> AskAccounts(const SlurmJob& job) {
  std::set<std::string> ids;
  for (const ShardRecord& shard : job.shards) {
    if (shard.job != 0) ids.insert(std::to_string(shard.job));
  }
  const CommandResult called =
      CallSlurm({"sacct", "--noheader", "--parsable2", "--allocations", "--jobs=" + Join(ids, ","),
                 std::string("--format=") + kSacctFormat});
  return called.status == 0 ? ParseSacct(called.out) : std::vector<SlurmTask>();
}

Submission Submit(const SlurmJob& job, const std::vector<int>& shards,
                  const std::vector<std::string>& options, const std::string& job_folder) {
  std::vector<std::string> command = {"sbatch",
                                      "--parsable",
                                      "--requeue",
                                      "--job-name=" + job.name,
                                      "--array=" + ArrayText(shards),
                                      "--output=" + job_folder + "/%a.log",
                                      "--open-mode=append"};
  for (const std::string& option : options) command.push_back("--" + option);
  command.push_back(job_folder + "/" + kScript);
  // Not cut off by an interruption: then nobody would know whether there is something to cancel.
  const CommandResult called = CallSlurm(command, /*to_its_end=*/true);
  Submission submission;
  std::istringstream lines(called.out);
  for (std::string line; std::getline(lines, line);) {
    if (called.status == 0 && JobOfLine(line) != 0) {
      submission.job = JobOfLine(line);
    } else {
      submission.error += (submission.error.empty() ? "" : " ") + CleanText(line);
    }
  }
  return submission;
}

std::string Cancel(const SlurmJob& job) {
  const CommandResult called =
      CallSlurm({"scancel", UserOption(), "--name=" + job.name}, /*to_its_end=*/true);
  return called.status == 0 ? "" : CleanText(InOneLine("scancel: " + called.out));
}

}  // namespace trainwreck
