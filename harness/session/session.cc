#include "harness/session/session.h"

#include <sched.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <set>

#include "harness/protocol/recipe_view.h"
#include "harness/session/selection.h"
#include "harness/spec/fault_file.h"
#include "harness/targets/calibration_file.h"
#include "harness/targets/target_spec.h"
#include "harness/targets/user_files.h"
#include "harness/text/nearest.h"
#include "harness/text/words.h"
#include "harness/yaml/diagnostic.h"

namespace trainwreck {
namespace {

namespace fs = std::filesystem;

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool IsProgram(const std::string& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && access(path.c_str(), X_OK) == 0;
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
    candidates.push_back(folder + "/trainer/trainwreck-trainer");
  }
  // In Bazel's output tree.
  candidates.push_back(ProgramFolder() + "/../../trainer/trainwreck-trainer");
  return candidates;
}

// A file from elsewhere may have any name; under the root its path is its name.
bool LiesBelow(const std::string& file, const std::string& root) {
  std::error_code error;
  fs::path relative =
      fs::weakly_canonical(file, error).lexically_relative(fs::weakly_canonical(root, error));
  return !relative.empty() && *relative.begin() != "..";
}

constexpr char kInstalledScenarios[] = "/../share/trainwreck/scenarios";
constexpr char kReference[] = "reference";

// Of a target that speaks the protocol, so that its recipe may name a launcher.
void AddLaunchers(Target& target) {
  std::error_code error;
  target.launch_ranks = {fs::read_symlink("/proc/self/exe", error).string(), "launch-ranks"};
  target.rank_variables = LauncherVariables();
}

FoundTarget ProgramTarget(const std::string& path) {
  FoundTarget found;
  found.name = path;
  found.target.command = {path};
  AddLaunchers(found.target);
  return found;
}

FoundTarget FindReference() {
  std::string tried;
  for (const std::string& candidate : TargetCandidates()) {
    if (IsProgram(candidate)) {
      return ProgramTarget(fs::absolute(candidate).lexically_normal().string());
    }
    tried += "\n  tried " + candidate;
  }
  throw ConfigurationError(
      "no target found: build it with 'bazel build //trainer:trainwreck-trainer', or name "
      "one with --target or TRAINWRECK_TARGET" +
      tried);
}

// Nobody asked for it, so it has to be said.
FoundTarget FallBackOnReference() {
  const std::string here = fs::current_path().string();
  if (fs::exists("trainwreck.yml")) {
    throw ConfigurationError(here + "/trainwreck.yml is not read: rename it to trainwreck.yaml");
  }
  const std::string why = "no trainwreck.yaml in " + here + " or above";
  try {
    FoundTarget found = FindReference();
    found.note = why + ": the built-in reference trainer";
    return found;
  } catch (const ConfigurationError& error) {
    throw ConfigurationError("there is " + why +
                             ", so the built-in reference trainer is meant: " + error.what());
  }
}

// A program of level 2 is the target itself; any other gets an adapter before it.
FoundTarget FromSpec(const TargetSpec& spec) {
  FoundTarget found;
  found.spec = std::make_shared<const TargetSpec>(spec);
  found.target.sets_ranks = spec.SetsRanks();
  if (spec.launcher != LauncherKind::kOwn) found.target.rank_variable = RankVariable(spec.launcher);
  found.target.limits = {.start_seconds = spec.extras.start_seconds,
                         .seconds = spec.extras.seconds,
                         .stall_seconds = spec.extras.stall_seconds};
  found.target.disk_bytes = spec.extras.disk_bytes;
  if (spec.level < 2) found.target.limits.usual_start_seconds = kForeignStartSeconds;
  found.name = spec.name;
  found.file = spec.file;
  found.target.home = fs::path(spec.file).parent_path().string();
  found.build = spec.build;
  found.build_folder = spec.folder;
  if (spec.level < 2) {
    std::error_code error;
    const std::string program = fs::read_symlink("/proc/self/exe", error).string();
    found.target.command = {program, "adapt", spec.file, spec.name};
    // So that the cached description ends with the file that it was made of.
    if (!spec.hooks.empty()) found.target.command.push_back(spec.hooks);
    return found;
  }
  for (const Arguments& arguments : spec.command) {
    for (const TemplateText& word : arguments.words) {
      found.target.command.push_back(word.Expand({}));
    }
  }
  found.target.environment = EnvironmentOf(spec, {});
  found.target.folder = spec.folder;
  AddLaunchers(found.target);
  return found;
}

bool Declares(const std::string& file, const std::string& name) {
  return !file.empty() && LoadTargetFile(file).Find(name) != nullptr;
}

// `named` may be empty: the default one, or the only one.
FoundTarget DeclaredTarget(const std::string& file, const std::string& named,
                           const std::string& by) {
  const TargetFile targets = LoadTargetFile(file);
  for (const Diagnostic& diagnostic : targets.errors) std::cerr << Format(diagnostic);
  if (!targets.errors.empty()) {
    throw ConfigurationError(std::to_string(targets.errors.size()) +
                             (targets.errors.size() == 1 ? " error in " : " errors in ") + file);
  }
  std::vector<std::string> names;
  for (const TargetSpec& spec : targets.targets) names.push_back(spec.name);
  std::string wanted = named.empty() ? targets.default_target : named;
  if (wanted.empty() && names.size() == 1) wanted = names.front();
  const std::string known = Join(names);
  if (wanted.empty()) {
    throw ConfigurationError(file + " declares several targets: say --target NAME, one of " +
                             known + ", or add 'default: NAME'");
  }
  const TargetSpec* spec = targets.Find(wanted);
  if (spec == nullptr) {
    throw ConfigurationError(by + " names '" + wanted +
                             "', which is neither a program nor a target of " + file +
                             NearestHint(wanted, names) + "; there are " + known);
  }
  FoundTarget found = FromSpec(*spec);
  if (named.empty())
    found.note = "of " + fs::path(file).lexically_proximate(fs::current_path()).string();
  return found;
}

// Was this scenario written for this target? One below the folder of its trainwreck.yaml was, but
// not one of a catalogue that the command line names as the root.
bool IsOwn(const Session& session, const std::string& file) {
  if (session.target_file.empty() || session.description.level >= 2) return false;
  const fs::path home = fs::path(session.target_file).parent_path();
  if (!LiesBelow(file, home.string())) return false;
  std::error_code error;
  return !session.names_root || !LiesBelow(file, session.scenarios_root) ||
         fs::equivalent(session.scenarios_root, home / "scenarios", error);
}

// What the other targets of the same file have. One of level 2 says so only when it is started, so
// that it may have anything.
std::set<std::string> NamesElsewhere(const Session& session, const std::string& file) {
  std::set<std::string> names;
  if (file.empty()) return names;
  for (const TargetSpec& spec : LoadTargetFile(file).targets) {
    if (spec.name == session.target_name) continue;
    if (spec.level >= 2) names.insert("*");
    TargetDescription other = DescribeTarget(spec);
    FaultCatalogue catalogue(other);
    catalogue.AddSuite();
    for (const std::string& faults : FindFaultFiles(session.scenarios_root)) {
      catalogue.AddFile(faults);  // what is wrong with it is told where its target is run
    }
    for (const FaultInfo& fault : other.faults) names.insert("fault:" + fault.name);
    for (const SignalInfo& signal : other.signals) names.insert("signal:" + signal.name);
    for (const ParamInfo& key : other.recipe) names.insert("recipe:" + key.name);
    for (const std::string& role : KeyRoleNames()) {
      if (ResolveKey(other, kRolePrefix + role) != nullptr) names.insert("role:" + role);
    }
    for (const std::string& feature : other.features) names.insert("feature:" + feature);
  }
  return names;
}

// The faults of files: those that come with trainwreck, and the user's below the scenarios root.
void AddFaultFiles(Session& session) {
  FaultCatalogue catalogue(session.description);
  catalogue.AddSuite();
  const std::vector<std::string> files = FindFaultFiles(session.scenarios_root);
  if (files.empty()) return;
  // A target that the command line names by its path may stand in for one of the file's.
  const std::set<std::string> elsewhere = NamesElsewhere(
      session, session.target_file.empty() ? FindTargetFile(".") : session.target_file);
  std::size_t errors = 0;
  for (const std::string& file : files) {
    const bool is_own = session.description.level >= 2 || IsOwn(session, file);
    const std::vector<Diagnostic> found = catalogue.AddFile(
        file, {.scenarios_root = session.scenarios_root, .is_own = is_own, .elsewhere = elsewhere});
    for (const Diagnostic& diagnostic : found) std::cerr << Format(diagnostic, session.color);
    errors += found.size();
  }
  if (errors == 0) return;
  SayUnnamedTarget(session);
  throw ConfigurationError(std::to_string(errors) + (errors == 1 ? " error" : " errors") +
                           " in the faults below " + session.scenarios_root + "; nothing was run");
}

Calibration LoadCalibration(const TargetSpec& spec) {
  const std::string path = CalibrationPath(spec);
  const CalibrationFile file = LoadCalibrationFile(path);
  for (const Diagnostic& diagnostic : file.errors) std::cerr << Format(diagnostic);
  if (!file.errors.empty()) throw ConfigurationError(path + " cannot be used");
  Calibration calibration = CalibrationOf(file, spec);
  if (!calibration.strengths.empty() && !calibration.remark.empty()) {
    std::cerr << "trainwreck: " << path << " is " << calibration.remark << "\n";
  }
  return calibration;
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
  const int cores = sched_getaffinity(0, sizeof mask, &mask) == 0 ? CPU_COUNT(&mask) : 1;
  const int granted = std::atoi(Environment("SLURM_CPUS_ON_NODE").c_str());
  return granted > 0 ? std::min(cores, granted) : cores;
}

std::string ProgramFolder() {
  std::error_code error;
  fs::path program = fs::read_symlink("/proc/self/exe", error);
  return error ? "." : program.parent_path().string();
}

std::string DeclaringFile(const CommonOptions& options) {
  const std::string named =
      options.target.empty() ? Environment("TRAINWRECK_TARGET") : options.target;
  if (named.find('/') != std::string::npos) return "";
  const std::string file = FindTargetFile(".");
  return named.empty() || Declares(file, named) ? file : "";
}

FoundTarget FindTarget(const CommonOptions& options) {
  std::string named = options.target;
  std::string by = "--target";
  if (named.empty()) {
    named = Environment("TRAINWRECK_TARGET");
    by = "TRAINWRECK_TARGET";
  }
  const bool is_path = named.find('/') != std::string::npos;
  const std::string file = is_path ? "" : FindTargetFile(".");
  if (!named.empty() && IsProgram(named) && !Declares(file, named)) {
    return ProgramTarget(fs::absolute(named).lexically_normal().string());
  }
  if (named == kReference) return FindReference();
  if (is_path) {
    throw ConfigurationError(by + " names '" + named +
                             "', which is no program that can be executed; a training command is "
                             "declared in trainwreck.yaml, and --target then says its name");
  }
  if (file.empty()) {
    if (named.empty()) return FallBackOnReference();
    throw ConfigurationError(
        by + " names '" + named +
        "', which is no program, and there is no trainwreck.yaml here or above "
        "that could declare it");
  }
  return DeclaredTarget(file, named, by);
}

void Build(const FoundTarget& target) {
  if (target.build.empty()) return;
  std::string command = "cd " + ShellWord(target.build_folder) + " &&";
  for (const std::string& word : target.build) command += " " + ShellWord(word);
  const int status = std::system(("{ " + command + "; } 1>&2").c_str());
  if (status != 0) {
    throw ConfigurationError("target '" + target.name + "' could not be built: " + command);
  }
}

std::string FindScenariosRoot(const CommonOptions& options) {
  if (!options.scenarios_root.empty()) {
    if (fs::is_directory(options.scenarios_root)) return options.scenarios_root;
    throw UsageError("--scenarios-root names '" + options.scenarios_root + "', which is no folder");
  }
  if (!options.uses_suite) {
    if (fs::is_directory("scenarios")) return "scenarios";
    fs::path here = fs::current_path();
    for (fs::path folder = here.parent_path(); folder != folder.parent_path();
         folder = folder.parent_path()) {
      if (fs::is_directory(folder / "scenarios")) return (folder / "scenarios").string();
    }
  }
  if (fs::is_directory(ProgramFolder() + "/scenarios")) return ProgramFolder() + "/scenarios";
  if (fs::is_directory(ProgramFolder() + kInstalledScenarios)) {
    return fs::path(ProgramFolder() + kInstalledScenarios).lexically_normal().string();
  }
  for (const std::string& folder : RunfilesFolders()) {
    if (fs::is_directory(folder + "/scenarios")) return folder + "/scenarios";
  }
  if (options.uses_suite) throw UsageError("--suite: no scenarios came with this trainwreck");
  return "scenarios";
}

bool WantsColor(UseColor mode, int stream_fd) {
  if (mode == UseColor::kAlways) return true;
  if (mode == UseColor::kNever || !Environment("NO_COLOR").empty()) return false;
  return isatty(stream_fd) == 1 && Environment("TERM") != "dumb";
}

Session OpenSession(const CommonOptions& options, bool builds) {
  Session session;
  const FoundTarget found = FindTarget(options);
  if (builds) Build(found);
  session.target = found.target;
  session.target_name = found.name;
  session.target_file = found.file;
  session.target_note = found.note;
  session.names_root = options.uses_suite || !options.scenarios_root.empty();
  if (builds && found.spec) {
    session.target.files = FilesOfTarget(*found.spec);
    session.target.files.push_back(found.file);
    session.target.fingerprint = TakeFingerprint(*found.spec);
  }
  try {
    session.description = Describe(session.target, CacheFolder() + "/descriptions");
  } catch (const std::runtime_error& error) {
    throw ConfigurationError("target '" + found.name + "' gives no description: " + error.what());
  }
  if (found.spec) session.description.calibration = LoadCalibration(*found.spec);
  session.target.has_fork_server = SaysForkServer(session.description);
  session.target.devices = session.description.devices;
  session.scenarios_root = FindScenariosRoot(options);
  session.color = WantsColor(options.color, STDERR_FILENO);
  AddFaultFiles(session);
  return session;
}

void SayUnnamedTarget(const Session& session) {
  if (!session.target_file.empty() || session.target_note.empty()) return;
  std::cerr << "trainwreck: target '" << session.description.name << "': " << session.target_note
            << "\n";
}

std::shared_ptr<const std::vector<Invariant>> LoadStandingInvariants(const Session& session) {
  const InvariantsFile file = LoadInvariants(session.scenarios_root, session.description);
  for (const Diagnostic& diagnostic : file.errors) std::cerr << Format(diagnostic, session.color);
  if (file.errors.empty()) return file.invariants;
  const std::size_t count = file.errors.size();
  throw ConfigurationError(std::to_string(count) + (count == 1 ? " error" : " errors") +
                           " in the invariants; nothing was run");
}

std::vector<Scenario> LoadScenarios(const Session& session, const std::vector<std::string>& files) {
  std::vector<Scenario> scenarios;
  std::size_t errors = 0, bad_files = 0;
  const std::set<std::string> elsewhere = NamesElsewhere(session, session.target_file);
  const auto invariants = LoadStandingInvariants(session);
  for (const std::string& file : files) {
    ScenarioFile loaded = LoadScenario(file, session.description,
                                       {.scenarios_root = session.scenarios_root,
                                        .check_name = LiesBelow(file, session.scenarios_root),
                                        .is_own = IsOwn(session, file),
                                        .elsewhere = elsewhere,
                                        .invariants = invariants});
    for (const Diagnostic& diagnostic : loaded.errors) {
      std::cerr << Format(diagnostic, session.color);
    }
    errors += loaded.errors.size();
    bad_files += loaded.errors.empty() ? 0 : 1;
    if (loaded.scenario) scenarios.push_back(std::move(*loaded.scenario));
  }
  if (errors > 0) {
    SayUnnamedTarget(session);
    throw ConfigurationError(std::to_string(errors) + (errors == 1 ? " error in " : " errors in ") +
                             std::to_string(bad_files) + (bad_files == 1 ? " file" : " files") +
                             " of " + std::to_string(files.size()) + "; nothing was run");
  }
  return scenarios;
}

}  // namespace trainwreck
