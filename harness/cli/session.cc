#include "harness/cli/session.h"

#include <sched.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "harness/spec/diagnostic.h"

namespace trainwreck {
namespace {

namespace fs = std::filesystem;

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool IsProgram(const std::string& path) {
  return fs::is_regular_file(path) && access(path.c_str(), X_OK) == 0;
}

// Where Bazel puts what a test or `bazel run` needs, if this is one.
std::vector<std::string> RunfilesFolders() {
  std::vector<std::string> folders;
  for (const char* name : {"TEST_SRCDIR", "RUNFILES_DIR"}) {
    if (std::string folder = Environment(name); !folder.empty()) folders.push_back(folder);
  }
  folders.push_back(ProgramFolder() + "/trainwreck.runfiles");
  for (std::string& folder : folders) folder += "/trainwreck";
  return folders;
}

std::vector<std::string> TargetCandidates() {
  std::vector<std::string> candidates = {ProgramFolder() + "/trainwreck-trainer"};
  for (const std::string& folder : RunfilesFolders()) {
    candidates.push_back(folder + "/harness/trainer/trainwreck-trainer");
  }
  candidates.push_back(ProgramFolder() +
                       "/../trainer/trainwreck-trainer");  // in Bazel's output tree
  return candidates;
}

// A file from elsewhere may have any name; under the root its path is its name.
bool LiesBelow(const std::string& file, const std::string& root) {
  std::error_code error;
  fs::path relative =
      fs::weakly_canonical(file, error).lexically_relative(fs::weakly_canonical(root, error));
  return !relative.empty() && *relative.begin() != "..";
}

bool SaysForkServer(const TargetDescription& description) {
  for (const std::string& feature : description.features) {
    if (feature == "fork-server") return true;
  }
  return false;
}

}  // namespace

int UsableCores() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  return sched_getaffinity(0, sizeof mask, &mask) == 0 ? CPU_COUNT(&mask) : 1;
}

std::string ProgramFolder() {
  std::error_code error;
  fs::path program = fs::read_symlink("/proc/self/exe", error);
  return error ? "." : program.parent_path().string();
}

std::string CacheFolder() {
  if (std::string cache = Environment("TRAINWRECK_CACHE"); !cache.empty()) return cache;
  if (std::string cache = Environment("XDG_CACHE_HOME"); !cache.empty())
    return cache + "/trainwreck";
  if (std::string home = Environment("HOME"); !home.empty()) return home + "/.cache/trainwreck";
  if (std::string test = Environment("TEST_TMPDIR"); !test.empty())
    return test + "/trainwreck-cache";
  return "/tmp/trainwreck-cache-" + std::to_string(getuid());
}

std::string FindTarget(const CommonOptions& options) {
  std::string named = options.target;
  std::string by = "--target";
  if (named.empty()) {
    named = Environment("TRAINWRECK_TARGET");
    by = "TRAINWRECK_TARGET";
  }
  if (!named.empty()) {
    if (IsProgram(named)) return fs::absolute(named).lexically_normal().string();
    throw ConfigurationError(by + " names '" + named + "', which is no program");
  }
  std::string tried;
  for (const std::string& candidate : TargetCandidates()) {
    if (IsProgram(candidate)) return fs::absolute(candidate).lexically_normal().string();
    tried += "\n  tried " + candidate;
  }
  throw ConfigurationError(
      "no target found: build it with 'bazel build //harness/trainer:trainwreck-trainer', or name "
      "one with "
      "--target PATH or TRAINWRECK_TARGET" +
      tried);
}

std::string FindScenariosRoot(const CommonOptions& options) {
  if (!options.scenarios_root.empty()) {
    if (fs::is_directory(options.scenarios_root)) return options.scenarios_root;
    throw UsageError("--scenarios-root names '" + options.scenarios_root + "', which is no folder");
  }
  if (fs::is_directory("scenarios")) return "scenarios";
  fs::path here = fs::current_path();
  for (fs::path folder = here.parent_path(); folder != folder.parent_path();
       folder = folder.parent_path()) {
    if (fs::is_directory(folder / "scenarios")) return (folder / "scenarios").string();
  }
  if (fs::is_directory(ProgramFolder() + "/scenarios")) return ProgramFolder() + "/scenarios";
  for (const std::string& folder : RunfilesFolders()) {
    if (fs::is_directory(folder + "/scenarios")) return folder + "/scenarios";
  }
  return "scenarios";
}

bool WantsColor(UseColor mode, int stream_fd) {
  if (mode == UseColor::kAlways) return true;
  if (mode == UseColor::kNever || !Environment("NO_COLOR").empty()) return false;
  return isatty(stream_fd) == 1 && Environment("TERM") != "dumb";
}

Session OpenSession(const CommonOptions& options) {
  Session session;
  session.target.command = {FindTarget(options)};
  try {
    session.description = Describe(session.target, CacheFolder() + "/descriptions");
  } catch (const std::runtime_error& error) {
    throw ConfigurationError("target '" + session.target.command.front() +
                             "' gives no description: " + error.what());
  }
  session.target.has_fork_server = SaysForkServer(session.description);
  session.scenarios_root = FindScenariosRoot(options);
  session.color = WantsColor(options.color, STDERR_FILENO);
  return session;
}

std::vector<Scenario> LoadScenarios(const Session& session, const std::vector<std::string>& files) {
  std::vector<Scenario> scenarios;
  std::size_t errors = 0, bad_files = 0;
  for (const std::string& file : files) {
    ScenarioFile loaded = LoadScenario(file, session.description,
                                       {.scenarios_root = session.scenarios_root,
                                        .check_name = LiesBelow(file, session.scenarios_root)});
    for (const Diagnostic& diagnostic : loaded.errors) {
      std::cerr << Format(diagnostic, session.color);
    }
    errors += loaded.errors.size();
    bad_files += loaded.errors.empty() ? 0 : 1;
    if (loaded.scenario) scenarios.push_back(std::move(*loaded.scenario));
  }
  if (errors > 0) {
    throw ConfigurationError(std::to_string(errors) + (errors == 1 ? " error in " : " errors in ") +
                             std::to_string(bad_files) + (bad_files == 1 ? " file" : " files") +
                             " of " + std::to_string(files.size()) + "; nothing was run");
  }
  return scenarios;
}

std::string DidYouMean(const std::string& name, const std::vector<std::string>& known) {
  std::string nearest = NearestName(name, known);
  return nearest.empty() ? "" : " (did you mean '" + nearest + "'?)";
}

}  // namespace trainwreck
