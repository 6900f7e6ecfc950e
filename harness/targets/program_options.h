// The options that a program declares itself (by argparse and others, read by the hooks of Python)
// and that its command does not give: those with a role become recipe keys of the draft.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/protocol/json.h"
#include "harness/targets/command_draft.h"

namespace trainwreck {

struct ProgramOption {
  std::vector<std::string> names;  // "--clip-norm", and others for the same
  std::string value;               // with which the program trains alike; empty: not known
  bool takes_value = true;
};

struct ProgramOptions {
  std::vector<std::string> command;  // the last words of the process that trained
  std::vector<ProgramOption> all;
  std::map<std::string, std::vector<std::string>> long_names;  // by short ones of the command
};

// What became of the options that have a role, as words for a person.
struct OptionFindings {
  std::vector<std::string> added;     // "--seed (seed)"
  std::vector<std::string> open;      // with no value to add them with: "--clip-norm (clip_norm)"
  std::vector<std::string> folders;   // in which all runs may write: "--job.dump_folder"
  std::vector<std::string> rivals;    // for one role: "--lr or --max-lr (learning_rate)"
  std::vector<ProgramOption> resume;  // that may let the program go on from a checkpoint
  std::string seed;                   // not added; empty: there is none, or the draft has it
  std::vector<std::string> renamed;   // "--batch-size for -b"
};

// Of the event `program` of the hooks.
ProgramOptions ProgramOptionsOf(const Json& event);

// Puts the long names of options in place of short ones, which tell no role, into the command that
// the draft was made of. Returns what was put for what. Nothing is where the process had other last
// words.
std::vector<std::string> UseLongNames(const CommandDraft& draft, const ProgramOptions& program,
                                      std::vector<std::string>& command);

// Adds to the command what does not change what it means: each option with the value that the
// program has without it, and the seed. Nothing is added where the process had other last words
// than the command, or where a file of settings may hold what the option would change.
// `may_add_steps`: the number of steps is taken from an option, too.
OptionFindings AddOptions(const ProgramOptions& program, bool may_add_steps, CommandDraft& draft);

}  // namespace trainwreck
