#include "harness/cli/verbs/run_on_slurm.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <set>

#include "harness/cli/verbs/merge.h"
#include "harness/report/report.h"
#include "harness/session/recording.h"
#include "harness/session/selection.h"
#include "harness/session/session.h"
#include "harness/session/storage.h"
#include "harness/slurm/follow.h"
#include "harness/text/words.h"

namespace trainwreck {
namespace {

namespace fs = std::filesystem;

// The words of `run` for a shard: without what belongs to the invocation as a whole. Each of these
// options has one value.
std::vector<std::string> WordsOfShard(const std::string& command_line) {
  static const std::set<std::string> kOfTheWhole = {"--on",      "--shards",   "--sbatch",
                                                    "--output",  "--history",  "--report",
                                                    "--require", "--max-skips"};
  const std::vector<std::string> words = SplitShellWords(command_line);
  std::vector<std::string> kept;
  for (std::size_t i = 2; i < words.size(); ++i) {  // after "trainwreck run"
    const std::size_t equals = words[i].find('=');
    if (!kOfTheWhole.contains(words[i].substr(0, equals))) {
      kept.push_back(words[i]);
    } else if (equals == std::string::npos) {
      ++i;
    }
  }
  return kept;
}

bool IsWhole(const std::string& folder, bool fail_fast) {
  try {
    return ReadJsonReport(folder + "/verdicts.json").info.unjudged == 0 || fail_fast;
  } catch (const std::exception&) {
    return false;
  }
}

// Asked once, and written down for all shards: the history may grow meanwhile.
void AddCosts(const RunOptions& run, const std::string& target, const std::string& folder,
              std::vector<std::string>& words) {
  if (!run.selection.shard_costs.empty()) return;
  const auto history = FindHistory(run.history);
  if (!history) return;
  const std::map<std::string, double> seconds = history->Seconds(target);
  if (seconds.empty()) return;
  const std::string path = fs::absolute(folder).lexically_normal().string() + "/costs.json";
  WriteWholeFile(path, CostsText(seconds));
  words.insert(words.end(), {"--shard-costs", path});
  std::cout << "# slurm: split by what " << seconds.size()
            << (seconds.size() == 1 ? " case" : " cases") << " took, of the history\n";
}

// The job that is in the output folder, or a new one with its script.
SlurmJob JobFor(const RunOptions& run, const std::string& output, int shards,
                const std::string& target) {
  std::vector<std::string> words = WordsOfShard(run.common.command_line);
  if (run.html) words.push_back("--no-html");  // the merged one has the page
  const std::string here = fs::current_path().string();
  const std::string program = fs::read_symlink("/proc/self/exe").string();
  const std::string command = here + ": run " + Join(words, " ") + ", " + std::to_string(shards) +
                              " shards, " + Join(run.sbatch, " ");
  if (std::optional<SlurmJob> job = LoadSlurmJob(output)) {
    if (job->command == command) {
      std::cout << "# slurm: following the job that is in " << output << "\n";
      return *job;
    }
    if (job->WasSubmitted()) {
      throw UsageError("the output folder '" + output + "' has another job: '" + job->command +
                       "', and not '" + command +
                       "'; name another folder, or end that job with "
                       "'scancel --name=" +
                       job->name + "' and remove " + output + "/slurm");
    }
  }
  SlurmJob job = NewSlurmJob(command, shards);
  const std::string folder = FolderOf(output, job);
  AddCosts(run, target, folder, words);
  const std::string script = folder + "/shard.sh";
  WriteWholeFile(script, ShardScript(program, words, here, folder, shards));
  chmod(script.c_str(), 0755);
  StoreSlurmJob(output, job);
  return job;
}

}  // namespace

void CheckSlurmOptions(const RunOptions& run) {
  if (run.on.empty()) {
    if (run.shards > 0) throw UsageError("--shards requires --on slurm; here, use --shard i/n");
    if (!run.sbatch.empty()) throw UsageError("--sbatch requires --on slurm");
    return;
  }
  if (run.shards == 0) throw UsageError("--on slurm requires --shards N: tasks of the job array");
  const bool has_verdicts = run.arms.empty() && run.only_seeds.empty() && !run.each_seed;
  if (!has_verdicts || run.bisect_codes || run.selection.shard_count > 1) {
    throw UsageError(
        "--on slurm does not go with --shard, --arm, --seed, --each-seed and --bisect-codes");
  }
  static const std::set<std::string> kOurs = {"array", "job-name",  "parsable", "wrap",
                                              "wait",  "test-only", "output",   "open-mode"};
  for (const std::string& option : run.sbatch) {
    if (option.empty() || option.front() == '-') {
      throw UsageError("--sbatch '" + option +
                       "': say an option of sbatch by its long name without dashes, as "
                       "partition=gpu");
    }
    if (kOurs.contains(option.substr(0, option.find('=')))) {
      throw UsageError("--sbatch '" + option + "': this option is set by 'run --on slurm'");
    }
  }
}

int RunOnSlurm(const RunOptions& run, int cases, const std::string& target) {
  const int shards = std::max(1, std::min(run.shards, cases));
  if (shards < run.shards) {
    std::cout << "# slurm: " << shards
              << (shards == 1 ? " shard, as there is 1 case" : " shards, as there are ")
              << (shards == 1 ? "" : std::to_string(cases) + " cases") << "\n";
  }
  const std::string output = MakeOutputFolder(run.output, /*is_latest=*/true);
  CheckWritable(output + "/verdicts.json", "--output");
  SlurmJob job = JobFor(run, output, shards, target);
  if (run.output.empty()) {
    std::cout << "# slurm: if this is cut off, the same command with --output " << output
              << " goes on\n";
  }
  const SlurmOrder order = {
      .output = output, .options = run.sbatch, .is_whole = [&](const std::string& folder) {
        return IsWhole(folder, run.fail_fast);
      }};
  const SlurmResult result = FollowSlurmJob(job, order, std::cout);
  if (result.interrupted) return kExitInterrupted;
  MergeOptions merge = {.common = run.common,
                        .folders = {},
                        .output = output,
                        .require = run.require,
                        .max_skips = run.max_skips,
                        .reports = run.reports,
                        .html = run.html,
                        .history = run.history};
  for (const auto& [shard, folder] : result.folders) merge.folders.push_back(folder);
  int status = merge.folders.empty() ? static_cast<int>(kExitInfrastructure)
                                     : MergeShards(merge, result.lost);
  if (!result.lost.empty() && status != kExitFailed) status = kExitInfrastructure;
  job.is_over = true;
  StoreSlurmJob(output, job);
  return status;
}

}  // namespace trainwreck
