// A training command read as a draft of a target: which of its options are recipe keys, and which
// folders are a run's own. Only the words are read; `trainwreck init` then runs the command.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

namespace trainwreck {

// An option with a number: a recipe key.
struct DraftKey {
  std::string name;          // as trainwreck.yaml has it: weight_decay
  std::string option;        // as the command has it: --weight-decay
  std::string value;         // as the command has it: 0.01
  std::string role;          // as in the protocol; empty: none is known by this name
  bool takes_whole = false;  // the program refuses fractions
};

struct CommandDraft {
  std::vector<std::string> words;         // with placeholders; other braces are doubled
  std::vector<DraftKey> keys;             // the number of steps is called "steps"
  bool has_steps = false;                 // an option says how long it trains
  std::vector<std::string> config_files;  // that it names: their settings are no options
  std::string seed;                       // the option that is the seed; empty: none
  std::vector<std::string> folders;       // options whose folder is now one of each run
  std::optional<int> ranks;               // as torchrun, srun or mpirun is told
  std::string launcher;                   // which of them; empty: none
  bool has_guards = false;                // each rank was given one, as it may be elsewhere
};

// Knows options as `--name value`, `--name=value` and `name=value`. The same number under two names
// gives two keys. `command` is the program and its arguments. An option whose value is in `made` is
// for a folder or file of each run, as one that is called so.
CommandDraft DraftOf(const std::vector<std::string>& command,
                     const std::set<std::string>& made = {});

std::set<std::string> OptionValues(const std::vector<std::string>& command);

// The roles that an option may have and that no key of the draft has.
std::vector<std::string> OpenRoles(const CommandDraft& draft);

}  // namespace trainwreck
