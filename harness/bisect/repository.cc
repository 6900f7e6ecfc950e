#include "harness/bisect/repository.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <sstream>

#include "harness/process/command.h"

namespace trainwreck {
namespace {

namespace fs = std::filesystem;

std::string Trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

std::vector<std::string> Words(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

CommandResult CallGit(std::vector<std::string> arguments, const std::string& folder,
                      const std::string& log = "") {
  // A worktree of ours is none of the business of the user's hooks.
  std::vector<std::string> command = {"git",       "-c", "core.hooksPath=/dev/null", "-c",
                                      "gc.auto=0", "-c", "advice.detachedHead=false"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return RunCommand(command, {.folder = folder, .log = log, .environment = {{"LC_ALL", "C"}}});
}

// Killed in the middle of a checkout, git leaves its locks: of the index, of HEAD, of submodules.
// Nobody else works in a worktree of ours, so they can be removed.
void RemoveLocks(const fs::path& git_folder) {
  std::vector<fs::path> locks;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(git_folder)) {
    if (entry.path().extension() == ".lock") locks.push_back(entry.path());
  }
  for (const fs::path& lock : locks) fs::remove(lock);
}

}  // namespace

Repository::Repository(const std::string& folder) {
  const CommandResult result = CallGit({"rev-parse", "--show-toplevel"}, folder);
  if (result.status != 0) {
    throw RepositoryError("'" + fs::absolute(folder).lexically_normal().string() +
                          "' is in no git repository");
  }
  root_ = Trimmed(result.out);
}

std::string Repository::Git(const std::vector<std::string>& arguments,
                            const std::string& folder) const {
  const CommandResult result = CallGit(arguments, folder.empty() ? root_ : folder);
  if (result.status == 0) return result.out;
  std::string line = "git";
  for (const std::string& argument : arguments) line += " " + argument;
  throw RepositoryError("'" + line + "' failed with status " + std::to_string(result.status));
}

std::string Repository::Resolve(const std::string& revision, const std::string& option) const {
  const CommandResult result = CallGit(
      {"rev-parse", "--verify", "--quiet", "--end-of-options", revision + "^{commit}"}, root_);
  if (result.status != 0) throw RepositoryError(option + " " + revision + ": no such commit");
  return Trimmed(result.out);
}

std::vector<std::string> Repository::Listed(const std::string& revisions,
                                            const std::string& option) const {
  if (revisions.find("..") == std::string::npos) return {Resolve(revisions, option)};
  const CommandResult result = CallGit({"rev-list", "--end-of-options", revisions, "--"}, root_);
  if (result.status != 0) throw RepositoryError(option + " " + revisions + ": no such range");
  return Words(result.out);
}

// The commit where a good end and the bad one part.
std::string Repository::StartOf(const std::string& good, const std::string& bad) const {
  const CommandResult base = CallGit({"merge-base", good, bad}, root_);
  if (base.status != 0) {
    throw RepositoryError("--good and --bad have no common ancestor: nothing lies between them");
  }
  std::string start = Trimmed(base.out);
  if (start != bad) return start;
  throw RepositoryError("--bad is " +
                        std::string(good == bad ? "--good itself" : "an ancestor of --good") +
                        ": nothing lies between them");
}

CommitList Repository::Between(const std::vector<std::string>& goods, const std::string& bad,
                               const Walk& walk) const {
  std::string start;
  long longest = -1;
  std::vector<std::string> command = {"log", "--topo-order", "--reverse", "--parents",
                                      "--format=%H %T %P"};
  if (walk.first_parent) command.emplace_back("--first-parent");
  command.push_back(bad);
  for (const std::string& good : goods) {
    const std::string candidate = StartOf(good, bad);
    const long length = std::stol(Git({"rev-list", "--count", candidate}));
    if (length > longest) start = candidate, longest = length;
    command.push_back("^" + good);
  }
  command.emplace_back("--");
  command.insert(command.end(), walk.paths.begin(), walk.paths.end());
  CommitList commits = {{start, Trimmed(Git({"rev-parse", start + "^{tree}"})), {}}};
  std::map<std::string, int> positions;
  const std::string listed = Git(command);
  std::istringstream lines(listed);
  for (std::string line; std::getline(lines, line);) {
    const std::vector<std::string> words = Words(line);
    if (words.size() < 2) continue;
    Commit commit{words[0], words[1], {}};
    const std::size_t parents =
        walk.first_parent ? std::min<std::size_t>(words.size(), 3) : words.size();
    for (std::size_t i = 2; i < parents; ++i) {
      const auto found = positions.find(words[i]);
      commit.parents.push_back(found == positions.end() ? 0 : found->second);
    }
    if (commit.parents.empty()) commit.parents.push_back(0);
    positions[commit.id] = static_cast<int>(commits.size());
    commits.push_back(std::move(commit));
  }
  if (commits.size() == 1) {
    throw RepositoryError("no commit between --good and --bad changes what is named after '--'");
  }
  return commits;
}

void Repository::CheckOut(const std::string& folder, const std::string& commit) const {
  if (!fs::exists(folder + "/.git")) {
    fs::remove_all(folder);
    Git({"worktree", "prune"});
    // Twice: also where git was killed in the middle of making it, which leaves it locked.
    Git({"worktree", "add", "--quiet", "--force", "--force", "--detach", folder, commit});
    return;
  }
  RemoveLocks(fs::path(folder) / Trimmed(Git({"rev-parse", "--git-dir"}, folder)));
  Git({"checkout", "--quiet", "--force", "--detach", commit}, folder);
  Git({"clean", "-ffdq"}, folder);  // twice: also what was a submodule of another commit
}

bool Repository::UpdateSubmodules(const std::string& folder, const std::string& log) const {
  if (!fs::exists(folder + "/.gitmodules")) return true;
  // The URL may have changed since the commit that was here before.
  return CallGit({"submodule", "--quiet", "sync", "--recursive"}, folder, log).status == 0 &&
         CallGit({"submodule", "--quiet", "update", "--init", "--recursive", "--force"}, folder,
                 log)
                 .status == 0;
}

void Repository::RemoveWorktree(const std::string& folder) const {
  // Twice: also one that git was killed in the middle of making, which it keeps locked.
  CallGit({"worktree", "remove", "--force", "--force", folder}, root_);
  fs::remove_all(folder);
  Git({"worktree", "prune"});
}

std::string Repository::Describe(const std::string& commit) const {
  return Trimmed(Git({"log", "-1", "--no-show-signature", "--format=%h %s", commit}));
}

std::string Repository::Subject(const std::string& commit) const {
  return Trimmed(Git({"log", "-1", "--no-show-signature", "--format=%s", commit}));
}

std::string Repository::DiffSummary(const std::string& commit) const {
  return Trimmed(Git({"diff", "--stat", "--no-ext-diff", "--no-color", commit + "^1", commit}));
}

}  // namespace trainwreck
