#include "harness/cli/verbs/more_seeds.h"

#include <filesystem>
#include <iostream>
#include <optional>

#include "harness/bisect/repository.h"
#include "harness/cli/arguments.h"
#include "harness/process/command.h"
#include "harness/report/report.h"
#include "harness/session/session.h"

namespace trainwreck {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFolder = ".trainwreck/more-seeds";

// Goes to a folder and comes back.
class Visit {
 public:
  explicit Visit(const std::string& folder) : home_(fs::current_path()) {
    fs::current_path(folder);
  }
  ~Visit() {
    std::error_code error;
    fs::current_path(home_, error);
  }
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;

 private:
  fs::path home_;
};

// The options of the recorded `trainwreck run`; empty: it was no such command.
std::optional<Options> ReadCommandLine(const std::string& line) {
  const std::vector<std::string> words = SplitCommandLine(line);
  if (words.size() < 2 || words[1] != "run") return std::nullopt;
  std::vector<const char*> argv;
  for (const std::string& word : words) argv.push_back(word.c_str());
  Options options;
  if (ParseArguments(static_cast<int>(argv.size()), argv.data(), options)) return std::nullopt;
  return options;
}

// The digest of the target that these options name in `folder`; empty: there is none that works.
std::string DigestIn(const std::string& folder, const Options& options) {
  const Visit visit(folder);
  try {
    return DigestOfTarget(OpenSession(options.common, /*builds=*/true).target);
  } catch (const std::exception& error) {
    std::cerr << "trainwreck: in " << folder << ": " << error.what() << "\n";
    return "";
  }
}

std::vector<std::string> CommandFor(const Options& recorded, const MissingSeeds& missing,
                                    const std::string& output) {
  std::vector<std::string> command = {"/proc/self/exe", "run"};
  auto add = [&](const std::string& option, const std::string& value) {
    if (!value.empty()) command.insert(command.end(), {option, value});
  };
  const RunOptions& run = recorded.run;
  if (run.selection.paths.empty()) {
    command.push_back(missing.scenario);
  } else {
    command.insert(command.end(), run.selection.paths.begin(), run.selection.paths.end());
  }
  add("--each-seed", std::to_string(missing.first) + ":" + std::to_string(missing.end));
  add("--target", recorded.common.target);
  add("--scenarios-root", recorded.common.scenarios_root);
  for (const std::string& point : run.points) add("--point", point);
  for (const std::string& change : run.set) add("--set", change);
  if (run.cores > 0) add("--cores", std::to_string(run.cores));
  if (run.exec) add("--isolate", "exec");
  if (run.full) command.push_back("--full");
  command.insert(command.end(), {"--keep", "none", "--history", "none", "--output", output});
  return command;
}

// Verdicts of one seed each, "nan/x@7", as a record of the seeds that they are of.
Record RecordOf(const StoredReport& stored) {
  Record record = MakeRecord(stored.verdicts, stored.info);
  for (CaseRecord& one : record.cases) {
    const std::size_t at = one.name.rfind('@');
    if (at == std::string::npos) continue;
    const int seed = std::stoi(one.name.substr(at + 1));
    one.name.resize(at);
    for (MarginRecord& margin : one.margins) {
      std::map<int, double> by_seed;
      for (const auto& [zero, value] : margin.by_seed) by_seed[zero + seed] = value;
      margin.by_seed = std::move(by_seed);
    }
    for (TrainingRecord& training : one.trainings) training.seed += seed;
  }
  return record;
}

std::vector<Record> RunIn(const std::string& folder, const Options& recorded,
                          const std::vector<MissingSeeds>& missing, std::string& why) {
  std::vector<Record> records;
  const std::string scratch = fs::absolute(kFolder).string();
  for (const MissingSeeds& one : missing) {
    const std::string output = scratch + "/run", log = scratch + "/log";
    fs::remove_all(output);
    fs::create_directories(scratch);
    const CommandResult called = RunCommand(CommandFor(recorded, one, output),
                                            {.folder = folder, .log = log, .environment = {}});
    if (called.status == kExitInterrupted) throw Interrupted();
    if (!fs::exists(output + "/verdicts.json")) {
      why = "'" + one.scenario + "' could not be run, see " + log;
      return {};
    }
    records.push_back(RecordOf(ReadJsonReport(output + "/verdicts.json")));
    fs::remove_all(output);
  }
  return records;
}

// Where this folder lies in a worktree of the commit; empty, with the reason, when there is none.
std::string Worktree(const std::string& commit, std::string& why) {
  try {
    const Repository repository(".");
    const std::string folder = fs::absolute(std::string(kFolder) + "/worktree").string();
    repository.CheckOut(folder, commit);
    const fs::path below = fs::relative(fs::current_path(), repository.root());
    return (fs::path(folder) / below).lexically_normal().string();
  } catch (const RepositoryError& error) {
    why = error.what();
    return "";
  }
}

}  // namespace

std::vector<std::string> SplitCommandLine(const std::string& line) {
  std::vector<std::string> words;
  std::string word;
  bool in_word = false, quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '\'') {
      quoted = !quoted;
      in_word = true;
    } else if (c == '\\' && !quoted && i + 1 < line.size()) {
      word += line[++i];
      in_word = true;
    } else if (c == ' ' && !quoted) {
      if (in_word) words.push_back(std::move(word));
      word.clear();
      in_word = false;
    } else {
      word += c;
      in_word = true;
    }
  }
  if (in_word) words.push_back(std::move(word));
  return words;
}

std::vector<Record> RunMissingSeeds(const Record& side, const std::vector<MissingSeeds>& missing,
                                    std::string& why) {
  const auto recorded = ReadCommandLine(side.command_line);
  if (!recorded) {
    why = "its command is not known";
    return {};
  }
  const std::string here = fs::current_path().string();
  const std::string digest = DigestIn(here, *recorded);
  if (!side.target_digest.empty() && digest == side.target_digest) {
    return RunIn(here, *recorded, missing, why);
  }
  why = "its program (" + side.target_digest.substr(0, 8) + ") is not the one that is here (" +
        (digest.empty() ? "none" : digest.substr(0, 8)) + ")";
  if (side.commit.empty() || side.is_dirty) return {};
  std::string no_worktree;
  const std::string folder = Worktree(side.commit, no_worktree);
  std::vector<Record> records;
  if (folder.empty()) {
    why += ", and its commit cannot be checked out: " + no_worktree;
  } else if (DigestIn(folder, *recorded) != side.target_digest) {
    why += ", nor the one that its commit gives";
  } else {
    why.clear();
    records = RunIn(folder, *recorded, missing, why);
  }
  if (!folder.empty()) Repository(".").RemoveWorktree(std::string(kFolder) + "/worktree");
  return records;
}

}  // namespace trainwreck
