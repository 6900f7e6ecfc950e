#include "harness/cli/verbs/init_comments.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "harness/protocol/recipe_view.h"
#include "harness/targets/option_roles.h"
#include "harness/targets/template_text.h"
#include "harness/text/clean_text.h"
#include "harness/text/words.h"

namespace trainwreck {
namespace {

constexpr double kExampleRate = 0.001;
constexpr std::size_t kShownBytes = 90;  // of a line that the program printed

std::string Quoted(const std::string& text) { return Json(text).dump(); }

std::string TextOf(const Json& value) {
  return value.is_array() ? Join(value.get<std::vector<std::string>>()) : ArgumentText(value);
}

// The first one that the program saved; null: none in its first steps.
const Event* FirstCheckpoint(const RunTrace& trace) {
  const auto saved = std::find_if(trace.events.begin(), trace.events.end(),
                                  [](const Event& one) { return one.name == "checkpoint_saved"; });
  return saved == trace.events.end() ? nullptr : &*saved;
}

std::string FileOf(const Event& saved) { return saved.fields.value("file", "FILE"); }

// What the hooks saw of the program, a line for each part.
std::vector<std::string> PartsSeen(const RunTrace& trace) {
  const Event* event = ProgramEvent(trace);
  if (event == nullptr) return {};
  std::vector<std::string> lines;
  const auto add = [&](const char* what, const char* field, const std::string& more = "") {
    const auto found = event->fields.find(field);
    if (found == event->fields.end()) return;
    const std::string text = TextOf(*found);
    if (!text.empty()) lines.push_back(std::string("  ") + what + text + more);
  };
  const auto number = [&](const char* field) { return event->fields.value(field, 0); };
  add("model: ", "model");
  add("optimizer: ", "optimizer",
      ", " + std::to_string(number("tensors")) + " tensors in " + std::to_string(number("groups")) +
          (number("groups") == 1 ? " group" : " groups"));
  add("schedulers: ", "schedulers");
  add("data loaders: ", "loaders");
  add("precision: ", "precision");
  if (event->fields.value("scaler", false)) lines.push_back("  loss scaling: a GradScaler");
  if (number("ranks") > 1) add("ranks: ", "ranks");
  if (const Event* saved = FirstCheckpoint(trace)) {
    lines.push_back("  checkpoints: the first one is " + FileOf(*saved) + ", after " +
                    std::to_string(saved->fields.value("steps_done", 0)) + " steps");
  }
  return lines;
}

std::string RolesOf(const CommandDraft& draft) {
  std::vector<std::string> roles;
  for (const DraftKey& key : draft.keys) {
    if (!key.role.empty()) roles.push_back(key.option + " (" + key.role + ")");
  }
  return Join(roles);
}

void AddCounted(const CountedSteps& counted, std::vector<std::string>& lines) {
  if (counted.made != counted.asked && !counted.is_one_more()) return;
  lines.push_back(fmt::format("  steps: asked for {}, it made {}{}", counted.asked, *counted.made,
                              counted.is_one_more() ? ", so it gets {steps-1}" : ""));
}

// Where the option for the steps seems to be none.
void AddMiscounted(const Seen& seen, std::vector<std::string>& lines) {
  const CountedSteps counted = seen.counted.value_or(CountedSteps());
  if (counted.made == counted.asked || counted.is_one_more() || !seen.counted) return;
  const auto key = std::find_if(seen.draft.keys.begin(), seen.draft.keys.end(),
                                [](const DraftKey& one) { return one.name == kStepsKey; });
  lines.push_back(fmt::format(
      "  what {} counts: with {}, {}", key->option, counted.asked,
      counted.made ? fmt::format("it made {} updates", *counted.made) : "a run did not end well"));
  lines.push_back("    Scenarios need a command that makes `steps` updates");
}

// What the command does not say of the program.
void AddUnsaid(const CommandDraft& draft, std::vector<std::string>& lines) {
  if (!draft.has_steps) {
    lines.push_back(
        "  how many steps it trains: no option says it. So the hooks end each run after");
    lines.push_back(
        "    `steps`, before what the program does at its own end. It has to get so far");
  }
  if (!draft.config_files.empty()) {
    lines.push_back("  what is in " + Join(draft.config_files) +
                    ". Scenarios change options alone: give");
    lines.push_back("    those that matter on the command line, with their values");
  }
}

// What of the program's own options the command does not say.
void AddUnsaidOptions(const CommandDraft& draft, const OptionFindings& options,
                      std::vector<std::string>& lines) {
  if (!options.open.empty()) {
    lines.push_back(
        "  options of the program that your command did not give: " + Join(options.open) + ".");
    lines.push_back("    They were not added, so give those that matter, with their values");
  }
  if (!options.rivals.empty()) {
    lines.push_back("  which one has the role, so none was added: " + Join(options.rivals));
  }
  if (!draft.seed.empty()) return;
  lines.push_back(
      "  the seed: " +
      (options.seed.empty() ? "no option has it" : "your command did not give " + options.seed) +
      ", so all seeds may train alike");
}

// Of what the hooks tell.
std::vector<std::string> NamesTold(const RunTrace& trace, const char* field) {
  const Event* event = ProgramEvent(trace);
  if (event == nullptr) return {};
  return event->fields.value(field, std::vector<std::string>());
}

void AddResume(const Seen& seen, std::vector<std::string>& lines) {
  const OptionFindings& options = seen.options;
  const Event* saved = FirstCheckpoint(seen.run.trace);
  const std::string file = "{run.checkpoints}/" + (saved ? FileOf(*saved) : "FILE");
  std::string arguments = "--resume";
  if (options.resume.empty()) {
    lines.push_back("  how it resumes. If it has an option for that, add under the target:");
  } else {
    std::vector<std::string> names;
    for (const ProgramOption& option : options.resume) names.push_back(option.names.front());
    lines.push_back("  how it resumes. The program has " + Join(names, " and ") +
                    ". If it goes on by that, add under the target:");
    arguments = names.front();
    if (options.resume.front().takes_value) arguments = Quoted(arguments + "=" + file);
  }
  lines.push_back("    resume: {arguments: [" + arguments + "], when_exists: \"" + file + "\"}");
  if (saved == nullptr) {
    lines.push_back(
        "    Where the program chooses the names, {newest:checkpoint-*} in place of "
        "{run.checkpoints}/FILE is the last one");
  }
  if (seen.draft.has_steps) {
    const std::string_view less = seen.counted && seen.counted->is_one_more() ? "-1" : "";
    lines.push_back(
        fmt::format("    Where no schedule depends on the number of steps, write {{run.until{0}}} "
                    "for {{steps{0}}}, too:",
                    less));
    lines.push_back("    then scenarios can end a run early and go on");
  }
}

// Where faults of batches cannot act.
void AddLoaders(const RunTrace& trace, std::vector<std::string>& lines) {
  if (ProgramEvent(trace) == nullptr || !NamesTold(trace, "loaders").empty()) return;
  lines.push_back(
      "  data loaders: no DataLoader of torch is there, so faults of batches (data.*) cannot act,");
  lines.push_back("    and their scenarios are skipped");
}

void AddPrinted(const Reading& reading, std::vector<std::string>& lines) {
  if (!reading.has_hooks) {
    lines.push_back("  no step of training with PyTorch, so no hooks: what it prints is read");
  }
  if (!reading.printed) return;
  std::vector<std::string> roles;
  for (const PrintedMetric& metric : reading.printed->metrics) {
    if (metric.role != "step") roles.push_back(metric.name + " (" + metric.role + ")");
  }
  lines.push_back("  printed, with the role that the name makes plain: " + Join(roles) + ", as in");
  lines.push_back("    " + CleanText(reading.printed->line.substr(0, kShownBytes)));
}

void AddLimits(const Seen& seen, std::vector<std::string>& lines) {
  if (seen.limits.stall_seconds) {
    lines.push_back(fmt::format(
        "  a pause of {:.0f} s between two steps, so a run may pause for {:.0f} times that",
        seen.longest_pause, kPauses));
  }
  if (seen.limits.disk_gibibytes) {
    lines.push_back(fmt::format(
        "  {} MiB written in its first steps, so a run may write more than {} times that",
        seen.run.disk_bytes >> 20, kWrites));
  }
}

bool IsOptimizerFile(const Event& event) {
  return event.name == "checkpoint_saved" && FileOf(event).find("optimizer") != std::string::npos;
}

void AddPromises(const std::vector<Promise>& promises, std::vector<std::string>& lines) {
  if (promises.empty()) return;
  lines.push_back("Promised as `features`, which some scenarios ask for, by what was seen:");
  for (const Promise& promise : promises) {
    lines.push_back("  " + promise.name + ": " + promise.evidence);
  }
}

// Where runs meet: each could find another one's checkpoints.
void AddSharedFolders(const Seen& seen, std::vector<std::string>& lines) {
  const std::vector<std::string> written = NamesTold(seen.run.trace, "writes");
  const std::vector<std::string>& options = seen.options.folders;
  if (written.empty() && options.empty()) return;
  lines.push_back("Warning: all runs share what follows, so one may go on from another one's");
  lines.push_back("  checkpoint, or change its files. Give the option for it on the command line:");
  if (!written.empty()) lines.push_back("  made or written in the first step: " + Join(written));
  if (!options.empty()) {
    lines.push_back("  the folder of an option that your command did not give: " + Join(options));
  }
}

// A program whose numbers stand in its own text.
void AddOwnNumbers(const Seen& seen, std::vector<std::string>& lines) {
  if (!seen.draft.keys.empty() || !seen.options.open.empty() || !seen.options.rivals.empty())
    return;
  lines.push_back("  any number that scenarios could change: no option has one. Where the program");
  lines.push_back("    has it, let it read the environment, then call init again:");
  lines.push_back(fmt::format("    lr = float(os.environ.get(\"LR\", \"{}\"))",
                              Json(seen.rate.value_or(kExampleRate)).dump()));
}

// Those with a role that the command does not set.
void AddVariables(const Seen& seen, std::vector<std::string>& lines) {
  std::vector<std::string> named;
  std::string first;
  for (const std::string& name : NamesTold(seen.run.trace, "variables")) {
    const std::string role = RoleOfKey(KeyName(name));
    const bool is_set =
        std::any_of(seen.draft.words.begin(), seen.draft.words.end(),
                    [&](const std::string& word) { return word.starts_with(name + "="); });
    if (role.empty() || is_set) continue;
    if (first.empty()) first = name;
    named.push_back(name + " (" + role + ")");
  }
  if (named.empty()) return AddOwnNumbers(seen, lines);
  lines.push_back("  environment variables that the program reads: " + Join(named) + ".");
  lines.push_back("    Begin your command with `env " + first +
                  "=VALUE`, and they are options, too");
}

}  // namespace

const Event* ProgramEvent(const RunTrace& trace) {
  const auto event = std::find_if(trace.events.begin(), trace.events.end(),
                                  [](const Event& one) { return one.name == "program"; });
  return event == trace.events.end() ? nullptr : &*event;
}

std::vector<Promise> PromisesOf(const RunTrace& trace) {
  std::vector<Promise> promises;
  if (const Event* event = ProgramEvent(trace)) {
    const Json told = event->fields.value("promises", Json::object());
    for (const auto& [name, evidence] : told.items()) {
      promises.push_back({name, evidence.get<std::string>()});
    }
  }
  const auto has_file = std::find_if(trace.events.begin(), trace.events.end(), IsOptimizerFile);
  if (has_file != trace.events.end()) {
    promises.push_back({"checkpoint:optimizer-file", FileOf(*has_file) + " was saved"});
  }
  return promises;
}

std::vector<std::string> Comments(const Seen& seen) {
  const CommandDraft& draft = seen.draft;
  std::vector<std::string> lines = {"Seen in its first steps:"};
  for (std::string& line : PartsSeen(seen.run.trace)) lines.push_back(std::move(line));
  lines.push_back("  signals: " + seen.run.signals);
  AddPrinted(seen.reading, lines);
  if (seen.rate) lines.push_back("  first learning rate: " + Json(*seen.rate).dump());
  if (seen.counted) AddCounted(*seen.counted, lines);
  AddLimits(seen, lines);
  AddPromises(PromisesOf(seen.run.trace), lines);
  const std::string roles = RolesOf(draft);
  lines.push_back("Options with a role: " + (roles.empty() ? "none" : roles));
  if (!seen.options.added.empty()) {
    lines.push_back("Added to your command, which did not give these options of the program: " +
                    Join(seen.options.added));
  }
  if (!seen.options.renamed.empty()) {
    lines.push_back("Called by their long names: " + Join(seen.options.renamed));
  }
  if (!draft.folders.empty()) {
    lines.push_back("Each run has its own folder for " + Join(draft.folders));
  }
  AddSharedFolders(seen, lines);
  if (draft.has_guards) {
    lines.push_back(
        "Each rank has a guard on its machine, trainwreck rank, which has to be in PATH there");
  }
  lines.push_back("Not seen:");
  AddUnsaid(draft, lines);
  AddMiscounted(seen, lines);
  AddLoaders(seen.run.trace, lines);
  AddUnsaidOptions(draft, seen.options, lines);
  AddVariables(seen, lines);
  if (const std::vector<std::string> open = OpenRoles(draft); !open.empty()) {
    lines.push_back("  options for " + Join(open) + ": with them, more scenarios apply");
  }
  AddResume(seen, lines);
  return lines;
}

}  // namespace trainwreck
