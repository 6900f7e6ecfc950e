#include "harness/bisect/more_seeds.h"

#include <filesystem>
#include <iostream>

#include "harness/bisect/repository.h"
#include "harness/process/command.h"
#include "harness/report/report.h"
#include "harness/session/recording.h"
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

// The digest of the target that these options name in `folder`; empty: there is none that works.
std::string DigestIn(const std::string& folder, const RecordedRun& recorded) {
  const Visit visit(folder);
  try {
    return DigestOfTarget(OpenSession(recorded.common, /*builds=*/true).target);
  } catch (const std::exception& error) {
    std::cerr << "trainwreck: in " << folder << ": " << error.what() << "\n";
    return "";
  }
}

MoreSeeds RunIn(const std::string& folder, const RecordedRun& recorded,
                const std::vector<MissingSeeds>& missing, const std::string& program) {
  MoreSeeds more;
  const std::string scratch = fs::absolute(kFolder).string();
  for (const MissingSeeds& one : missing) {
    const std::string output = scratch + "/run", log = scratch + "/log";
    fs::remove_all(output);
    fs::create_directories(scratch);
    std::vector<std::string> command = WordsFor(recorded, one, output);
    command.insert(command.begin(), program);
    const CommandResult called =
        RunCommand(command, {.folder = folder, .log = log, .environment = {}});
    if (called.status == kExitInterrupted) throw Interrupted();
    if (!fs::exists(output + "/verdicts.json")) {
      return {{}, "'" + one.scenario + "' could not be run, see " + log};
    }
    more.records.push_back(RecordOfSeeds(ReadJsonReport(output + "/verdicts.json")));
    fs::remove_all(output);
  }
  return more;
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

// Runs these seeds as `side` was run, and adds them. Whether any seed was added.
bool AddTo(Record& side, const std::string& name, const std::vector<MissingSeeds>& missing,
           const SeedsRequest& request, std::ostream& out) {
  if (missing.empty()) return false;
  for (const MissingSeeds& one : missing) {
    out << "# " << name << ": running seeds " << one.first << " to " << one.end - 1 << " of "
        << one.scenario << "\n"
        << std::flush;
  }
  const auto recorded = request.read(side.command_line);
  const MoreSeeds more = recorded ? RunMissingSeeds(side, *recorded, missing, request.program)
                                  : MoreSeeds{{}, "its command is not known"};
  bool is_added = false;
  for (const Record& record : more.records) {
    if (record.target_digest != side.target_digest) continue;
    AddSeedsToHistory(request.history, side.id, record);
    side = Combine({side, record});
    is_added = true;
  }
  if (more.why.empty()) return is_added;
  out << "# " << name << ": no more seeds of it: " << more.why << "\n";
  if (!side.commit.empty()) {
    out << "# build commit " << side.commit.substr(0, 10)
        << (side.is_dirty ? " with its changes" : "") << ", and there: " << side.command_line
        << " --seeds " << missing.back().end << "\n";
  }
  return is_added;
}

}  // namespace

std::vector<std::string> WordsFor(const RecordedRun& recorded, const MissingSeeds& missing,
                                  const std::string& output) {
  std::vector<std::string> command = {"run"};
  auto add = [&](const std::string& option, const std::string& value) {
    if (!value.empty()) command.insert(command.end(), {option, value});
  };
  if (recorded.paths.empty()) {
    command.push_back(missing.scenario);
  } else {
    command.insert(command.end(), recorded.paths.begin(), recorded.paths.end());
  }
  add("--each-seed", std::to_string(missing.first) + ":" + std::to_string(missing.end));
  add("--target", recorded.common.target);
  add("--scenarios-root", recorded.common.scenarios_root);
  for (const std::string& point : recorded.points) add("--point", point);
  for (const std::string& change : recorded.set) add("--set", change);
  if (recorded.cores > 0) add("--cores", std::to_string(recorded.cores));
  if (recorded.exec) add("--isolate", "exec");
  if (recorded.full) command.push_back("--full");
  command.insert(command.end(), {"--keep", "none", "--history", "none", "--output", output});
  return command;
}

MoreSeeds RunMissingSeeds(const Record& side, const RecordedRun& recorded,
                          const std::vector<MissingSeeds>& missing, const std::string& program) {
  const std::string here = fs::current_path().string();
  const std::string digest = DigestIn(here, recorded);
  if (!side.target_digest.empty() && digest == side.target_digest) {
    return RunIn(here, recorded, missing, program);
  }
  std::string why = "its program (" + side.target_digest.substr(0, 8) +
                    ") is not the one that is here (" +
                    (digest.empty() ? "none" : digest.substr(0, 8)) + ")";
  if (side.commit.empty() || side.is_dirty) return {{}, why};
  std::string no_worktree;
  const std::string folder = Worktree(side.commit, no_worktree);
  if (folder.empty()) {
    return {{}, why + ", and its commit cannot be checked out: " + no_worktree};
  }
  MoreSeeds more;
  if (DigestIn(folder, recorded) != side.target_digest) {
    more.why = why + ", nor the one that its commit gives";
  } else {
    more = RunIn(folder, recorded, missing, program);
  }
  Repository(".").RemoveWorktree(std::string(kFolder) + "/worktree");
  return more;
}

bool AddMissingSeeds(Sides& sides, const std::map<std::string, int>& wanted,
                     const SeedsRequest& request, std::ostream& out) {
  const auto of_a = MissingOf(sides.a, sides.a, sides.b, wanted, request.at_most);
  const auto of_b = MissingOf(sides.b, sides.a, sides.b, wanted, request.at_most);
  const bool more_of_a = AddTo(sides.a, "A", of_a, request, out);
  const bool more_of_b = AddTo(sides.b, "B", of_b, request, out);
  return more_of_a || more_of_b;
}

}  // namespace trainwreck
