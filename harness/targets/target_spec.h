// A target of trainwreck.yaml: somebody's training command, what may be changed about it, and where
// its signals come from. docs/guide/targets.md describes every key.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/protocol/description.h"
#include "harness/protocol/plan.h"
#include "harness/targets/target_extras.h"
#include "harness/targets/template_text.h"
#include "harness/yaml/diagnostic.h"

namespace trainwreck {

// Some words of a command line, which depend on the recipe.
struct Arguments {
  std::string when;  // a recipe key of type bool; empty: always
  std::vector<TemplateText> words;
};

// kOutput: both streams, as one.
enum class SourceKind { kStdout, kStderr, kOutput, kCsv, kJsonLines, kTensorBoard };

// A source of signals, for a program that does not write our trace.
struct SourceSpec {
  SourceKind kind = SourceKind::kStdout;
  std::string pattern;  // of the output: RE2 with named groups
  TemplateText path;    // a file; of TensorBoard a folder
  std::string step;     // column or field with the step; empty: steps are counted
  int first_step = 0;   // the program's number for its first step
  std::map<std::string, std::string> names;  // signal -> group, column, field or tag
  Position position;                         // of the pattern or path in the target's file

  bool HasWildcards() const;  // `path` stands for all files that match
};

inline constexpr const char* kLoss = "loss";
inline constexpr const char* kEntropyFloor = "entropy_floor";  // what formulas call its floor

enum class LauncherKind { kOwn, kTorchrun, kMpirun, kSrun };

// The variable in which a launcher gives a process its rank.
const char* RankVariable(LauncherKind kind);
// Of the launchers besides our own, by name.
std::map<std::string, std::string> LauncherVariables();

struct TargetSpec {
  std::string file;  // the trainwreck.yaml, absolute
  std::string name;
  std::string doc;
  int level = 0;       // as in TargetDescription
  std::string folder;  // to run in, absolute
  std::vector<Arguments> command;
  std::map<std::string, TemplateText> environment;
  std::vector<std::string> build;  // a command line; empty: nothing to build
  std::vector<Arguments> resume;   // added to the command of a resumed run
  TemplateText resume_when;        // a file that resuming needs; empty: none
  std::string data;  // a file or folder that the program reads; absolute, may be empty
  LauncherKind launcher = LauncherKind::kOwn;
  // Of `adapter: python`: the file that describes its hooks (python_hooks.h); empty: no adapter.
  std::string hooks;
  std::vector<std::string> features;
  std::vector<ParamInfo> recipe;
  std::vector<SignalInfo> signals;
  std::vector<EventInfo> events;  // that the program itself writes into its trace
  std::vector<SourceSpec> sources;
  Position command_position;  // in `file`
  std::map<std::string, Position> signal_positions;

  bool declares_ranks = false;
  TargetExtras extras;

  // Whether its processes get their rank in the usual variables. False for a single-process program
  // that does not speak the protocol: some programs form a group when they see RANK.
  bool SetsRanks() const { return launcher == LauncherKind::kOwn && (level > 0 || declares_ranks); }
  bool CanResume() const { return !resume.empty() || !resume_when.empty(); }
  bool Mentions(const std::string& placeholder) const;
  // The `floor` of the loss, where a source gives the loss: then each of its steps has it as the
  // signal entropy_floor, as the reference trainer's have.
  std::optional<double> EntropyFloor() const;
  // Nothing tells the program how long it is to train: its hooks end it after `steps`.
  bool HooksEndRuns() const;
};

struct TargetFile {
  std::vector<TargetSpec> targets;
  std::string default_target;      // its name; empty: none was named
  std::vector<Diagnostic> errors;  // all of the file

  const TargetSpec* Find(const std::string& name) const;
};

// Reads and checks the file; starts nothing.
TargetFile LoadTargetFile(const std::string& path);

// The path of trainwreck.yaml in `folder` or the nearest folder above it; empty when there is none.
std::string FindTargetFile(const std::string& folder);

// The description of a target of level 0 or 1, which cannot describe itself.
TargetDescription DescribeTarget(const TargetSpec& spec);

// Whether a recipe key may be called so: words of a-z, 0-9 and '_', with dots between.
bool IsKeyName(const std::string& name);

// Whether the harness has a key or placeholder of this name itself: run.seed, parallel.ranks.
bool IsHarnessKey(const std::string& name);

// The events that the adapter may report, besides `fired`: its own and those of the launcher.
const std::vector<EventInfo>& AdapterEvents();

// Adds events. One that is described already gets the fields that it lacks.
void AddEvents(const std::vector<EventInfo>& events, TargetDescription& target);

// The placeholders, besides recipe keys.
inline constexpr const char* kRunPlaceholders[] = {
    "run.folder",       // of this run alone, for logs and the like; empty at its beginning
    "run.checkpoints",  // the same for checkpoints
    "run.data",         // the target's data, or a damaged copy of them
    "run.seed",        "run.rank", "run.ranks",
    "run.until",  // steps done when this phase ends
};

// The command line and environment of one process.
struct Invocation {
  std::vector<std::string> command;
  std::map<std::string, std::string> environment;
  bool resumes = false;
};
std::map<std::string, std::string> PlaceholderValues(const TargetSpec& spec, const Plan& plan,
                                                     const std::string& folder,
                                                     const std::string& data, int rank, int ranks);
// The variables that the target declares. Its own PYTHONPATH stands behind the folders of
// TRAINWRECK_PYTHONPATH, by which `bisect` puts another release of a package first.
std::map<std::string, std::string> EnvironmentOf(const TargetSpec& spec,
                                                 const std::map<std::string, std::string>& values);
Invocation Invoke(const TargetSpec& spec, const Plan& plan,
                  const std::map<std::string, std::string>& values);

}  // namespace trainwreck
