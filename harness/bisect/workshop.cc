#include "harness/bisect/workshop.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>

#include "harness/process/command.h"
#include "harness/protocol/digest.h"
#include "harness/protocol/json.h"
#include "harness/protocol/parse_json.h"
#include "harness/text/files.h"

namespace trainwreck {
namespace {

namespace fs = std::filesystem;

bool IsBinary(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  char magic[4] = {};
  return file.read(magic, 4) && std::string(magic, 4) ==
                                    "\x7f"
                                    "ELF";
}

// The paths of all files of `path`, in order.
std::vector<fs::path> FilesOf(const fs::path& path) {
  if (!fs::is_directory(path)) return {path};
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(path)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string DigestOf(const std::string& root, const std::vector<std::string>& artifacts) {
  std::uint64_t digest = Digest("");
  for (const std::string& artifact : artifacts) {
    for (const fs::path& file : FilesOf(fs::path(root) / artifact)) {
      digest = Digest(file.lexically_relative(root).string(), digest);
      digest = Digest(ReadFile(file).value_or(""), digest);
    }
  }
  return "program:" + DigestText(std::to_string(digest));
}

void CopyAll(const fs::path& from, const fs::path& to, const std::vector<std::string>& artifacts) {
  for (const std::string& artifact : artifacts) {
    fs::remove_all(to / artifact);
    fs::create_directories((to / artifact).parent_path());
    fs::copy(from / artifact, to / artifact, fs::copy_options::recursive);
  }
}

}  // namespace

Workshop::Workshop(const Repository& repository, WorkshopOptions options)
    : repository_(repository), options_(std::move(options)) {
  fs::create_directories(options_.folder + "/builds");
}

std::string Workshop::CacheFolder(const Commit& commit) const {
  return options_.folder + "/builds/" + commit.tree;
}

bool Workshop::IsReady(const Commit& commit) const {
  return options_.build.empty() || current_ == commit.id ||
         fs::exists(CacheFolder(commit) + "/build.json");
}

std::vector<std::string> Workshop::FindArtifacts() const {
  if (!options_.artifacts.empty()) return options_.artifacts;
  if (options_.build.empty() || options_.target.empty()) return {};
  const fs::path target = fs::path(worktree()) / options_.target;
  if (!IsBinary(target)) return {};
  std::vector<std::string> artifacts = {options_.target};
  const CommandResult loaded =
      RunCommand({"ldd", target.string()}, {.folder = worktree(), .log = "", .environment = {}});
  if (loaded.status != 0)
    return loaded.out.find("statically") != std::string::npos ? artifacts
                                                              : std::vector<std::string>();
  const std::string root = fs::canonical(worktree()).string() + "/";
  std::istringstream words(loaded.out);
  for (std::string word; words >> word;) {
    if (word.front() != '/' || !fs::exists(word)) continue;
    const std::string library = fs::absolute(word).lexically_normal().string();
    if (library.rfind(root, 0) == 0) artifacts.push_back(library.substr(root.size()));
  }
  return artifacts;
}

// A build that was made before, failed or not.
bool Workshop::Restore(const Commit& commit, Built& built) const {
  const std::string cache = CacheFolder(commit);
  const Json json = TryParseJson(ReadFile(cache + "/build.json").value_or(""));
  if (json.is_discarded()) return false;
  built.ok = json.value("ok", false);
  built.program = json.value("program", "");
  built.log = cache + "/log";
  built.from_cache = true;
  const auto artifacts = json.value("artifacts", std::vector<std::string>());
  if (built.ok) CopyAll(cache + "/files", worktree(), artifacts);
  return true;
}

void Workshop::Keep(const Commit& commit, const std::vector<std::string>& artifacts,
                    const Built& built) const {
  const std::string cache = CacheFolder(commit);
  if (built.ok) CopyAll(worktree(), cache + "/files", artifacts);
  const Json json = {{"ok", built.ok}, {"program", built.program}, {"artifacts", artifacts}};
  // The name appears last: a build that was cut off is none.
  std::ofstream(cache + "/build.json.new") << json.dump(1) << "\n";
  fs::rename(cache + "/build.json.new", cache + "/build.json");
}

Built Workshop::Prepare(const Commit& commit) {
  Built built;
  built.ok = true;
  built.program = "tree:" + commit.tree;
  if (current_ == commit.id) {
    built.from_cache = true;
    Restore(commit, built);
    return built;
  }
  current_.clear();
  repository_.CheckOut(worktree(), commit.id);
  fs::create_directories(CacheFolder(commit));
  built.log = CacheFolder(commit) + "/log";
  if (!IsReady(commit)) fs::remove(built.log);
  auto fail = [&](const std::string& why) {
    built.ok = false;
    built.why = why;
    return built;
  };
  if (!repository_.UpdateSubmodules(worktree(), built.log))
    return fail("its submodules cannot be had");
  auto is_declared = [&] {
    return options_.declaration.empty() || fs::exists(worktree() + "/" + options_.declaration);
  };
  if (options_.build.empty()) {
    if (!is_declared())
      return fail("has no " + options_.declaration + " (a --build may write one)");
    built.from_cache = true;  // nothing was built
    current_ = commit.id;
    return built;
  }
  const bool was_declared = is_declared();
  if (!Restore(commit, built)) {
    const CommandResult result = RunCommand({"/bin/sh", "-c", options_.build},
                                            {.folder = worktree(),
                                             .log = built.log,
                                             .environment = {{"TRAINWRECK_COMMIT", commit.id}},
                                             .limit_seconds = options_.build_limit_seconds});
    built.seconds = result.seconds;
    // Not kept: it may have been the machine.
    if (result.timed_out) return fail("its build takes longer than --build-limit");
    built.ok = result.status == 0;
    if (built.ok && !options_.target.empty())
      built.ok = fs::exists(fs::path(worktree()) / options_.target);
    if (built.ok && !is_declared()) {
      return fail("has no " + options_.declaration + ", and its build wrote none");
    }
    std::vector<std::string> artifacts = built.ok ? FindArtifacts() : std::vector<std::string>();
    if (!artifacts.empty() && !was_declared) artifacts.push_back(options_.declaration);
    for (const std::string& artifact : artifacts) {
      if (!fs::exists(fs::path(worktree()) / artifact)) built.ok = false;
    }
    if (built.ok && !artifacts.empty()) built.program = DigestOf(worktree(), artifacts);
    if (!built.ok || !artifacts.empty()) Keep(commit, artifacts, built);
  }
  if (!built.ok) return fail("cannot be built");
  current_ = commit.id;
  return built;
}

void Workshop::RemoveWorktree() {
  current_.clear();
  repository_.RemoveWorktree(worktree());
}

}  // namespace trainwreck
