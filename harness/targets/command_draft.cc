#include "harness/targets/command_draft.h"

#include <re2/re2.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "harness/protocol/recipe_view.h"
#include "harness/targets/launcher_words.h"
#include "harness/targets/option_roles.h"
#include "harness/targets/target_spec.h"

namespace trainwreck {
namespace {

// An option and the number or folder that it has.
struct Option {
  std::string name;  // --trainer.max-steps, without a value
  std::string value;
  bool is_next = false;  // the value is the next word
};

std::optional<Option> OptionAt(const std::vector<std::string>& command, std::size_t i) {
  const std::string& word = command[i];
  const bool has_dashes = word.starts_with("-");
  if (const std::size_t equals = word.find('='); equals != std::string::npos) {
    const std::string name = word.substr(0, equals);
    if (KeyName(name).empty() || name.find_first_of(" /\"'(") != std::string::npos) return {};
    return Option{name, word.substr(equals + 1)};
  }
  if (!word.starts_with("--") && !(has_dashes && word.size() > 2)) return {};
  if (i + 1 == command.size() || IsNumber(word)) return {};
  const std::string& next = command[i + 1];
  if (next.starts_with("-") && !IsNumber(next)) return {};
  return Option{word, next, true};
}

// Of an option that is given twice, programs take the last value.
bool IsGivenAgain(const std::vector<std::string>& command, std::size_t i, const Option& option) {
  for (std::size_t later = i + 1; later < command.size(); ++later) {
    const std::optional<Option> other = OptionAt(command, later);
    if (other && KeyName(other->name) == KeyName(option.name)) return true;
  }
  return false;
}

std::string Escaped(const std::string& word) {
  std::string text;
  for (const char c : word) text += c == '{' || c == '}' ? std::string(2, c) : std::string(1, c);
  return text;
}

bool IsConfigFile(const std::string& word) {
  const std::string path = word.substr(word.find('=') + 1);  // npos + 1: the whole word
  for (const char* ending : {".yaml", ".yml", ".json", ".toml"}) {
    if (path.ends_with(ending)) return true;
  }
  return false;
}

// "/model.pt" of a path that seems to be one of a file; below a run's folder it may be one of a
// folder as well.
std::string FileOf(const std::string& path) {
  static const RE2 kFile(R"((?:.*/)?([^/]+\.[A-Za-z]\w*))");
  std::string name;
  return RE2::FullMatch(path, kFile, &name) ? "/" + Escaped(name) : "";
}

class Drafter {
 public:
  explicit Drafter(const std::set<std::string>& made) : made_(made) {}

  // What stands for the option's value; empty: the value stays.
  std::string PlaceholderFor(const Option& option) {
    const std::string key = KeyName(option.name);
    const std::string role = RoleOfKey(key);
    const bool is_made = made_.contains(option.value) && !IsNumber(option.value);
    if (role == kFolderOption || role == kLogFolderOption || is_made) {
      if (option.value.empty() || IsNumber(option.value)) return "";
      draft_.folders.push_back(option.name);
      return (role == kLogFolderOption ? "{run.folder}" : "{run.checkpoints}") +
             FileOf(option.value);
    }
    if (!IsNumber(option.value)) return "";
    if (role == kSeedOption && draft_.seed.empty()) {
      draft_.seed = option.name;
      return "{run.seed}";
    }
    return Add(option, key, role);
  }

  CommandDraft draft_;

 private:
  std::string Add(const Option& option, std::string name, std::string role) {
    if (!IsKeyName(name) || IsHarnessKey(name)) return "";
    if (role == kStepsOption && !draft_.has_steps && IsWhole(option.value)) {
      draft_.has_steps = true;
      name = kStepsKey;
    }
    if (role == kStepsOption || role == kSeedOption || role == kRanksOption) role.clear();
    const auto same = [&](const DraftKey& key) { return key.name == name; };
    if (std::any_of(draft_.keys.begin(), draft_.keys.end(), same)) return "";
    const bool may_repeat = role == ToString(KeyRole::kRegularisation);
    for (const DraftKey& key : draft_.keys) {
      if (key.role == role && !may_repeat) role.clear();  // the first one is meant
    }
    draft_.keys.push_back({name, option.name, option.value, role});
    return "{" + name + "}";
  }

  const std::set<std::string>& made_;
};

// "-n", "-n4" or "--ntasks=4", with the number of ranks as a placeholder.
std::string WithPlaceholder(const std::string& word) {
  return word.substr(0, word.find_first_of("0123456789")) + "{parallel.ranks}";
}

// What starts the ranks is no part of the recipe, but for their number. Ranks that may be on other
// machines have guards there.
void DraftLauncher(const std::vector<std::string>& command, const LauncherWords& launcher,
                   CommandDraft& draft) {
  if (launcher.count == 0) return;
  draft.launcher = launcher.launcher;
  draft.ranks = launcher.ranks;
  for (std::size_t i = 0; i < launcher.count; ++i) {
    const bool is_ranks = i > 0 && i == launcher.ranks_at;
    draft.words.push_back(is_ranks ? WithPlaceholder(command[i]) : Escaped(command[i]));
  }
  const bool is_script = command[launcher.count].ends_with(".py");
  draft.has_guards =
      launcher.ranks && launcher.is_over_nodes && (is_script || !launcher.runs_python);
  if (!draft.has_guards) return;
  if (launcher.runs_python) draft.words.push_back("--no_python");
  for (const char* word : {"trainwreck", "rank", "--"}) draft.words.push_back(word);
  if (launcher.runs_python) draft.words.push_back("python3");
}

}  // namespace

CommandDraft DraftOf(const std::vector<std::string>& command, const std::set<std::string>& made) {
  Drafter drafter(made);
  const LauncherWords launcher = FindLauncher(command);
  DraftLauncher(command, launcher, drafter.draft_);
  for (std::size_t i = launcher.count; i < command.size(); ++i) {
    const std::optional<Option> option = i == 0 ? std::nullopt : OptionAt(command, i);
    std::vector<std::string>& words = drafter.draft_.words;
    if (IsConfigFile(command[i])) drafter.draft_.config_files.push_back(command[i]);
    const bool counts = option && !IsGivenAgain(command, i, *option);
    const std::string stand_in = counts ? drafter.PlaceholderFor(*option) : "";
    if (stand_in.empty()) {
      words.push_back(Escaped(command[i]));
    } else if (option->is_next) {
      words.push_back(Escaped(command[i++]));
      words.push_back(stand_in);
    } else {
      words.push_back(Escaped(option->name) + "=" + stand_in);
    }
  }
  return std::move(drafter.draft_);
}

std::set<std::string> OptionValues(const std::vector<std::string>& command) {
  std::set<std::string> values;
  for (std::size_t i = 1; i < command.size(); ++i) {
    if (const std::optional<Option> option = OptionAt(command, i)) values.insert(option->value);
  }
  return values;
}

std::vector<std::string> OpenRoles(const CommandDraft& draft) {
  std::vector<std::string> open;
  for (const std::string& role : NamedRoles()) {
    if (role == ToString(KeyRole::kRegularisation)) continue;  // no scenario asks for it
    const auto has = [&](const DraftKey& key) { return key.role == role; };
    if (std::none_of(draft.keys.begin(), draft.keys.end(), has)) open.push_back(role);
  }
  return open;
}

}  // namespace trainwreck
