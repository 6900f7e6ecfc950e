// The start of most verbs: finds the target and the scenarios, reads the target's description, and
// loads the scenario files, with all their errors at once.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/launch/launcher.h"
#include "harness/protocol/description.h"
#include "harness/session/options.h"
#include "harness/spec/scenario.h"

namespace trainwreck {

struct TargetSpec;

inline constexpr const char* kVersion = "0.1.0";

// A command line that cannot be followed: exit 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// An invalid scenario, target or configuration: exit 3.
struct ConfigurationError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct FoundTarget {
  std::string name;  // its name in messages
  Target target;
  std::vector<std::string> build;  // a command line; empty: nothing to build
  std::string build_folder;
  std::string file;  // the trainwreck.yaml that declares it; empty: none does
  std::string note;  // how it was found, for people; empty where the command line says it
  std::shared_ptr<const TargetSpec> spec;  // null: a program that was named by its path
};

// Finds the target. --target, else $TRAINWRECK_TARGET: a program, the name of a target in
// trainwreck.yaml (here or in the nearest folder above), or "reference". Else the only or default
// target of trainwreck.yaml, else the reference: trainwreck-trainer beside this program or in
// Bazel's runfiles. Throws ConfigurationError, which lists the places that were tried.
FoundTarget FindTarget(const CommonOptions& options);

// The trainwreck.yaml that FindTarget would take the target from; empty: it is a program.
std::string DeclaringFile(const CommonOptions& options);

// Runs the `build` command of trainwreck.yaml, with its output on stderr. Throws ConfigurationError
// when it fails.
void Build(const FoundTarget& target);

// The scenarios root: --scenarios-root, else `scenarios` in this folder or the nearest one above
// it, else beside this program, else in Bazel's runfiles, else "scenarios".
std::string FindScenariosRoot(const CommonOptions& options);

// The number of cores that this process may use: those that the system lets it use, and in a job of
// Slurm no more than the job was granted, even where nothing confines it to them.
int UsableCores();

// The folder of this program's file.
std::string ProgramFolder();

// The user's cache folder of this program: $TRAINWRECK_CACHE, else $XDG_CACHE_HOME/trainwreck, ...
// A folder that cannot be written, or that other users can write to, is not used. A message on
// standard error says so once, and a private folder takes its place, which is removed at the end.
// Throws ConfigurationError when there cannot be one either.
std::string CacheFolder();

struct Session {
  Target target;  // `command` speaks the protocol, be it the program or an adapter before it
  TargetDescription description;
  std::string scenarios_root;
  bool color = false;                                 // of diagnostics on stderr
  std::string target_name, target_file, target_note;  // as of FoundTarget
  bool names_root = false;                            // --scenarios-root was given
};

// Opens a session. With `builds`, the target is built first where trainwreck.yaml says how.
Session OpenSession(const CommonOptions& options, bool builds = false);

// Says on stderr that nobody named a target and the reference is used. For verbs whose output has
// no header.
void SayUnnamedTarget(const Session& session);

// Whether to print colours to `stream_fd`.
bool WantsColor(UseColor mode, int stream_fd);

// The invariants beside the scenarios. Prints every diagnostic on stderr and throws
// ConfigurationError when there is one.
std::shared_ptr<const std::vector<Invariant>> LoadStandingInvariants(const Session& session);

// Loads the files; prints every diagnostic of every file on stderr and throws ConfigurationError
// when there is one.
std::vector<Scenario> LoadScenarios(const Session& session, const std::vector<std::string>& files);

}  // namespace trainwreck
