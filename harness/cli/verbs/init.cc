// trainwreck init: runs a training command for a few steps under the hooks, or by what it prints,
// and declares it in trainwreck.yaml.
#include <fmt/format.h>
#include <re2/re2.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/cli/verb.h"
#include "harness/cli/verbs/init_comments.h"
#include "harness/launch/launcher.h"
#include "harness/plan/run.h"
#include "harness/process/interruption.h"
#include "harness/protocol/recipe_view.h"
#include "harness/session/chosen.h"
#include "harness/session/preflight.h"
#include "harness/session/session.h"
#include "harness/session/storage.h"
#include "harness/targets/command_draft.h"
#include "harness/targets/printed_metrics.h"
#include "harness/targets/program_options.h"
#include "harness/targets/python_hooks.h"
#include "harness/targets/template_text.h"
#include "harness/text/clean_text.h"
#include "harness/text/words.h"

namespace trainwreck {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFile = "trainwreck.yaml";

struct InitOptions {
  CommonOptions common;
  std::string name = "mine";
  std::optional<int> steps;  // of a run, where no option of the command says it
  std::vector<std::string> command;
};

constexpr int kUsualSteps = 30;
constexpr int kCountedSteps = 6;

std::string Quoted(const std::string& text) { return Json(text).dump(); }

bool Is(const DraftKey& key, KeyRole role) { return key.role == ToString(role); }

// A rate of 1 may become 0.5.
bool IsFraction(const DraftKey& key) {
  return Is(key, KeyRole::kLearningRate) || Is(key, KeyRole::kClipNorm) ||
         Is(key, KeyRole::kWeightDecay) || Is(key, KeyRole::kRegularisation);
}

std::string RecipeLine(const DraftKey& key) {
  std::string line = "      " + key.name + ": ";
  const std::string type = IsFraction(key) && !key.takes_whole ? "type: number, " : "";
  if (key.role.empty()) return line + key.value;
  return line + "{" + type + "default: " + key.value + ", role: " + key.role + "}";
}

// For the first run, of which nobody knows it.
constexpr Limits kLimitsOfFirstRun = {300, 64};

// The longest pause between two steps of a rank, in seconds, such as for an evaluation; 0: none.
double LongestPause(const RunTrace& trace) {
  double longest = 0;
  for (const auto& [rank, times] : trace.time_s) {
    std::optional<double> before;
    for (int step = 0; step < static_cast<int>(times.values.size()); ++step) {
      if (!times.Has(step)) continue;
      if (before) longest = std::max(longest, times.values[step] - *before);
      before = times.values[step];
    }
  }
  return longest;
}

Limits LimitsFor(double longest_pause, std::int64_t written_bytes) {
  constexpr int kGibibyteShift = 30;
  Limits limits;
  if (const double seconds = kPauses * longest_pause; seconds > Policy().stall_seconds) {
    limits.stall_seconds = static_cast<int>(std::ceil(seconds));
  }
  if (const std::int64_t bytes = kWrites * written_bytes; bytes > LauncherOptions().disk_bytes) {
    limits.disk_gibibytes = (bytes >> kGibibyteShift) + 1;
  }
  return limits;
}

std::string BudgetLine(const Limits& limits) {
  std::vector<std::string> parts;
  if (limits.stall_seconds) {
    parts.push_back("stall_seconds: " + std::to_string(*limits.stall_seconds));
  }
  if (limits.disk_gibibytes) {
    parts.push_back("disk: " + std::to_string(*limits.disk_gibibytes) + "GiB");
  }
  return parts.empty() ? "" : "    budget: {" + Join(parts) + "}\n";
}

std::string SignalText(const PrintedMetric& metric, bool has_hooks) {
  std::vector<std::string> parts;
  if (metric.role != "lr") parts.emplace_back("scale: log");
  if (metric.Signal() != metric.role) parts.push_back("role: " + metric.role);
  if (has_hooks || metric.role == "eval_loss") parts.emplace_back("sparse: true, optional: true");
  return metric.Signal() + ": {" + Join(parts) + "}";
}

std::string SourcesText(const Reading& reading) {
  if (!reading.printed) return "";
  const PrintedMetrics& printed = *reading.printed;
  std::string text = "    signals:\n";
  for (const PrintedMetric& metric : printed.metrics) {
    if (metric.role == "step") continue;
    text += "      " + SignalText(metric, reading.has_hooks) + "\n";
  }
  const std::string pattern = printed.Pattern();
  const bool has_quote = pattern.find('\'') != std::string::npos;
  text += "    sources:\n      - stdout: ";
  text += (has_quote ? Quoted(pattern) : "'" + pattern + "'") + "\n";
  if (printed.first_step > 0) text += "        first_step: 1\n";
  return text;
}

// `seen`: comments, as lines; empty: the draft that the first run uses.
std::string TargetText(const InitOptions& options, const CommandDraft& draft,
                       const std::vector<std::string>& seen, const Limits& limits,
                       const Reading& reading, const std::vector<Promise>& promises = {}) {
  std::string text = "# Written by `trainwreck init`. docs/guide/targets.md describes every key.\n";
  for (const std::string& line : seen) text += "# " + line + "\n";
  text += "apiVersion: trainwreck/v1\nkind: Targets\ntargets:\n  " + options.name + ":\n";
  text += "    command:\n";
  for (const std::string& word : draft.words) text += "      - " + Quoted(word) + "\n";
  if (reading.has_hooks) text += "    adapter: python\n";
  if (seen.empty()) text += "    environment: {TRAINWRECK_ADAPTER_TELL: \"1\"}\n";
  text += BudgetLine(limits);
  text += "    recipe:\n";
  if (!draft.has_steps) {
    text += "      steps: " + std::to_string(options.steps.value_or(kUsualSteps)) + "\n";
  }
  for (const DraftKey& key : draft.keys) text += RecipeLine(key) + "\n";
  if (draft.ranks) {
    text += "    ranks: {default: " + std::to_string(*draft.ranks) +
            ", launcher: " + draft.launcher + "}\n";
  }
  std::vector<std::string> features;
  for (const Promise& promise : promises) features.push_back(promise.name);
  if (!features.empty()) text += "    features: [" + Join(features) + "]\n";
  return text + SourcesText(reading);
}

// The first value of the signal on the lowest rank that has one.
std::optional<double> FirstOf(const RunTrace& trace, const std::string& signal) {
  for (const auto& [key, series] : trace.series) {
    if (key.first != signal) continue;
    for (int step = 0; step < static_cast<int>(series.values.size()); ++step) {
      if (series.Has(step)) return series.values[step];
    }
  }
  return std::nullopt;
}

// The number of an option that no role is known for may be the rate that was seen.
void FindRate(CommandDraft& draft, std::optional<double> rate) {
  const auto is_rate = [](const DraftKey& key) { return Is(key, KeyRole::kLearningRate); };
  if (!rate || std::any_of(draft.keys.begin(), draft.keys.end(), is_rate)) return;
  for (DraftKey& key : draft.keys) {
    if (!key.role.empty() || key.name == kStepsKey || std::stod(key.value) != *rate) continue;
    key.role = ToString(KeyRole::kLearningRate);
    return;
  }
}

void CheckCommand(const InitOptions& options) {
  if (options.command.empty()) {
    throw UsageError("no command: say trainwreck init -- python3 train.py --steps 200 --lr 0.001");
  }
  if (fs::exists(kFile)) throw UsageError(std::string(kFile) + " is there already");
  if (FindPythonHooks().empty()) {
    throw ConfigurationError("the Python hooks are not installed beside this program");
  }
}

CommandDraft ReadCommand(const std::vector<std::string>& command,
                         const std::set<std::string>& made = {}) {
  CommandDraft draft = DraftOf(command, made);
  for (const DraftKey& key : draft.keys) {
    if (key.name == kStepsKey && !draft.has_steps) {
      throw UsageError(key.option + " " + key.value +
                       ": the number of steps must be a whole number");
    }
  }
  return draft;
}

// Removes the file unless the work was done.
class Draft {
 public:
  ~Draft() {
    std::error_code ignored;
    if (!is_kept_) fs::remove(kFile, ignored);
  }
  void Write(const std::string& text) { WriteWholeFile(kFile, text); }
  void Keep() { is_kept_ = true; }

 private:
  bool is_kept_ = false;
};

// Names the scenarios of the suite that this target has the parts for.
void SayWhatApplies(CommonOptions common) {
  common.uses_suite = true;
  std::vector<std::string> names;
  std::map<std::string, int> misfits;  // by the key whose value they do not fit
  try {
    const Chosen chosen = ChooseCases(OpenSession(common), {}, {}, {});
    for (const Case& one : chosen.cases) {
      const bool is_new = names.empty() || names.back() != one.scenario->name;
      if (one.skip_reason.empty() && is_new) names.push_back(one.scenario->name);
    }
    for (const Scenario& scenario : chosen.scenarios) {
      if (!scenario.misfit.empty()) ++misfits[scenario.unserved.substr(kValuePrefix.size())];
    }
  } catch (const UsageError& error) {  // a program without its scenarios
    std::cout << error.what() << "\n";
    return;
  }
  std::cout << names.size()
            << (names.size() == 1 ? " scenario applies to it:\n" : " scenarios apply to it:\n");
  for (const std::string& name : names) std::cout << "  " << name << "\n";
  for (const auto& [key, count] : misfits) {
    std::cout << count << (count == 1 ? " more does" : " more do") << " not fit the value of '"
              << key << "': trainwreck validate --suite says why\n";
  }
  if (names.empty()) return;
  std::cout << "next: trainwreck run --suite " << names.front()
            << "; trainwreck run --suite runs all\n"
            << "      trainwreck calibrate --suite measures how strong their faults must be\n";
}

// What the program prints beside the signals of the hooks, at numbered steps, or in place of them.
Reading ReadingOf(const PreflightResult& seen, const CommandDraft& draft) {
  Reading reading{.has_hooks = !seen.has_errors()};
  if (reading.has_hooks) {
    reading.printed = FindPrintedMetrics(seen.printed, {"loss", "grad_norm", "lr"});
    if (reading.printed && !reading.printed->has_step) reading.printed.reset();
    return reading;
  }
  const std::optional<PrintedMetrics> printed = FindPrintedMetrics(seen.printed);
  const bool has_loss = printed && std::ranges::any_of(printed->metrics, [](const auto& metric) {
                          return metric.role == "loss";
                        });
  if (has_loss && seen.trace.series.empty() && draft.has_steps) reading.printed = printed;
  return reading;
}

// Makes a short run to its end, as the file declares it. A program that counts from 0 up to its
// number of steps gets one less, and the command that was given stays what it was, doubled braces
// too.
CountedSteps CountSteps(const Session& session, CommandDraft& draft) {
  const auto key = std::find_if(draft.keys.begin(), draft.keys.end(),
                                [](const DraftKey& one) { return one.name == kStepsKey; });
  const std::int64_t steps = std::stoll(key->value);
  CountedSteps counted;
  counted.asked = static_cast<int>(std::min<std::int64_t>(steps, kCountedSteps));
  counted.made = StepsMade(session, counted.asked);
  if (!counted.is_one_more()) return counted;
  key->value = std::to_string(steps + 1);
  for (std::string& word : draft.words) {
    RE2::GlobalReplace(&word, R"(((?:^|[^{])(?:\{\{)*)\{steps\})", R"(\1{steps-1})");
  }
  return counted;
}

ProgramOptions OptionsSeen(const PreflightResult& seen) {
  const Event* told = ProgramEvent(seen.trace);
  return told == nullptr ? ProgramOptions() : ProgramOptionsOf(told->fields);
}

// Those that are no files.
std::set<std::string> Absent(std::set<std::string> paths) {
  std::erase_if(paths, [](const std::string& path) {
    std::error_code ignored;
    return path.empty() || fs::exists(path, ignored);
  });
  return paths;
}

int InitVerb(const InitOptions& options) {
  CheckCommand(options);
  std::vector<std::string> command = options.command;
  CommandDraft draft = ReadCommand(command);
  CommonOptions common = options.common;
  common.target = options.name;
  Draft file;
  file.Write(TargetText(options, draft, {}, kLimitsOfFirstRun, {}));
  std::set<std::string> made = Absent(OptionValues(command));
  std::cout << "running the command for a few steps\n" << std::flush;
  PreflightResult seen = Preflight(OpenSession(common), {});
  if (WasInterrupted()) return kExitInterrupted;
  const std::vector<std::string> renamed = UseLongNames(draft, OptionsSeen(seen), command);
  for (const std::string& absent : Absent(made)) made.erase(absent);
  if (!renamed.empty() || !made.empty()) {  // once more, by what was learned of them
    draft = ReadCommand(command, made);
    file.Write(TargetText(options, draft, {}, kLimitsOfFirstRun, {}));
    seen = Preflight(OpenSession(common), {});
    if (WasInterrupted()) return kExitInterrupted;
  }
  const Reading reading = ReadingOf(seen, draft);
  if (!reading.has_hooks && reading.printed) {  // once more, as it is to be read
    file.Write(TargetText(options, draft, {""}, kLimitsOfFirstRun, reading));
    seen = Preflight(OpenSession(common), {});
    if (WasInterrupted()) return kExitInterrupted;
  }
  for (const PreflightFinding& finding : seen.findings) {
    if (finding.is_error) std::cerr << Format(finding, WantsColor(common.color, STDERR_FILENO));
  }
  if (seen.has_errors()) {
    throw ConfigurationError("the command could not be followed, so nothing was written");
  }
  const std::optional<double> rate = FirstOf(seen.trace, "lr");
  FindRate(draft, rate);
  OptionFindings added = AddOptions(OptionsSeen(seen), !options.steps.has_value(), draft);
  added.renamed = renamed;
  std::optional<CountedSteps> counted;
  if (reading.has_hooks && draft.has_steps) {
    file.Write(TargetText(options, draft, {""}, kLimitsOfFirstRun, reading));
    counted = CountSteps(OpenSession(common), draft);
    if (WasInterrupted()) return kExitInterrupted;
  }
  const double pause = LongestPause(seen.trace);
  const Limits limits = LimitsFor(pause, seen.disk_bytes);
  const std::vector<std::string> comments = Comments({.draft = draft,
                                                      .options = added,
                                                      .run = seen,
                                                      .rate = rate,
                                                      .longest_pause = pause,
                                                      .limits = limits,
                                                      .reading = reading,
                                                      .counted = counted});
  file.Write(TargetText(options, draft, comments, limits, reading, PromisesOf(seen.trace)));
  file.Keep();
  for (const std::string& line : comments) std::cout << line << "\n";
  std::cout << "wrote " << kFile << "\n";
  SayWhatApplies(common);
  return kExitPassed;
}

void Declare(VerbArguments& arguments, InitOptions& options) {
  arguments.Option("--name", options.name, "The target's name in trainwreck.yaml", "NAME");
  arguments
      .Option("--steps", options.steps, "Steps of a run, if no option of the command says it [30]",
              "N")
      .Between(2, 1000000);
  arguments.Rest(options.command);
  arguments.Footer(
      "The command follows --, as in: trainwreck init -- python3 train.py --steps 200");
  arguments.Common(options.common);
}

const VerbRegistration registration("init", "Run a training command and write its trainwreck.yaml",
                                    kFirst + 1, Declare, InitVerb);

}  // namespace
}  // namespace trainwreck
