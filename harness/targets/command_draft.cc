#include "harness/targets/command_draft.h"

#include <re2/re2.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <utility>

#include "harness/protocol/recipe_view.h"
#include "harness/targets/target_spec.h"

namespace trainwreck {
namespace {

struct KnownOption {
  const char* role;  // of the protocol, or one of the words below
  std::vector<const char*> names;
};

constexpr const char* kSteps = "steps";
constexpr const char* kSeed = "seed";
constexpr const char* kRanks = "ranks";
constexpr const char* kCheckpoints = "checkpoints";
constexpr const char* kLogs = "logs";

// The names that well-known stacks and their users give these options.
const std::vector<KnownOption>& KnownOptions() {
  static const std::vector<KnownOption> all = {
      {kSteps,
       {"steps", "max_steps", "num_steps", "n_steps", "train_steps", "training_steps",
        "total_steps", "max_train_steps", "num_train_steps", "iters", "max_iters", "num_iters",
        "train_iters", "iterations", "num_iterations", "max_iterations"}},
      {kSeed, {"seed", "random_seed", "manual_seed", "seed_everything"}},
      {kRanks, {"nproc_per_node"}},
      {kCheckpoints, {"outdir", "out", "output", "checkpoints", "save", "default_root_dir"}},
      {kLogs, {"logdir"}},
      {"learning_rate", {"lr", "learning_rate", "base_lr", "max_lr", "peak_lr"}},
      {"clip_norm",
       {"clip", "clip_norm", "grad_clip", "clip_grad", "max_norm", "max_grad_norm",
        "clip_grad_norm", "grad_clip_norm", "grad_norm_clip", "gradient_clip_val",
        "gradient_clipping"}},
      {"warmup_steps",
       {"warmup", "warmup_steps", "warmup_iters", "num_warmup_steps", "lr_warmup_steps",
        "lr_warmup_iters"}},
      {"weight_decay", {"wd", "weight_decay"}},
      {"batch_size",
       {"bs", "batch", "batch_size", "train_batch_size", "micro_batch_size",
        "per_device_train_batch_size", "local_batch_size"}},
      {"accumulation",
       {"accumulation", "accumulation_steps", "accum_steps", "grad_accum", "grad_accum_steps",
        "gradient_accumulation", "gradient_accumulation_steps", "accumulate_grad_batches"}},
      {"loader_workers", {"workers", "num_workers", "dataloader_num_workers", "loader_workers"}},
      {"evaluate_every", {"eval_every", "eval_steps", "eval_interval", "val_check_interval"}},
      {"save_every", {"save_every", "save_steps", "save_interval", "checkpoint_every"}},
  };
  return all;
}

// An option and the number or folder that it has.
struct Option {
  std::string name;  // --trainer.max-steps, without a value
  std::string value;
  bool is_next = false;  // the value is the next word
};

bool IsNumber(const std::string& text) {
  if (text.empty() || std::isalpha(static_cast<unsigned char>(text[0]))) return false;  // nan, inf
  char* end = nullptr;
  std::strtod(text.c_str(), &end);
  return *end == '\0';
}

bool IsWhole(const std::string& text) {
  return std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return std::isdigit(c) != 0; });
}

// "--trainer.max-steps" is trainer.max_steps.
std::string KeyName(const std::string& option) {
  std::string name;
  for (const char c : option) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '.' || std::isalnum(byte)) {
      name += static_cast<char>(std::tolower(byte));
    } else if (!name.empty()) {
      name += '_';
    }
  }
  return name;
}

// Of a folder that a program writes: what it is for, and that it is a folder. One called "folder"
// alone, or "data_dir", may be below another one, or is read.
std::string RoleOfFolder(const std::string& last) {
  static const RE2 kFolder(
      "(output|out|save|checkpoints?|ckpts?|dump|results?|work|runs?|experiments?|exp)"
      "_(dir|directory|folder|path)");
  static const RE2 kLogFolder("(logs?|logging|tensorboard|tb)_(dir|directory|folder|path)");
  if (RE2::FullMatch(last, kFolder)) return kCheckpoints;
  return RE2::FullMatch(last, kLogFolder) ? kLogs : "";
}

std::string RoleOf(const std::string& key) {
  const std::string last = key.substr(key.rfind('.') + 1);
  for (const KnownOption& known : KnownOptions()) {
    if (std::count(known.names.begin(), known.names.end(), last) > 0) return known.role;
  }
  return RoleOfFolder(last);
}

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

class Drafter {
 public:
  // What stands for the option's value; empty: the value stays.
  std::string PlaceholderFor(const Option& option) {
    const std::string key = KeyName(option.name);
    const std::string role = RoleOf(key);
    if (role == kCheckpoints || role == kLogs) {
      if (option.value.empty() || IsNumber(option.value)) return "";
      draft_.folders.push_back(option.name);
      return role == kLogs ? "{run.folder}" : "{run.checkpoints}";
    }
    if (!IsNumber(option.value)) return "";
    if (role == kRanks && IsWhole(option.value)) {
      draft_.ranks = std::atoi(option.value.c_str());
      return "{parallel.ranks}";
    }
    if (role == kSeed && draft_.seed.empty()) {
      draft_.seed = option.name;
      return "{run.seed}";
    }
    return Add(option, key, role);
  }

  CommandDraft draft_;

 private:
  std::string Add(const Option& option, std::string name, std::string role) {
    if (!IsKeyName(name) || IsHarnessKey(name)) return "";
    if (role == kSteps && !draft_.has_steps && IsWhole(option.value)) {
      draft_.has_steps = true;
      name = kStepsKey;
    }
    if (role == kSteps || role == kSeed || role == kRanks) role.clear();
    const auto same = [&](const DraftKey& key) { return key.name == name; };
    if (std::any_of(draft_.keys.begin(), draft_.keys.end(), same)) return "";
    for (const DraftKey& key : draft_.keys) {
      if (key.role == role) role.clear();  // the first one is meant
    }
    draft_.keys.push_back({name, option.name, option.value, role});
    return "{" + name + "}";
  }
};

}  // namespace

CommandDraft DraftOf(const std::vector<std::string>& command) {
  Drafter drafter;
  for (std::size_t i = 0; i < command.size(); ++i) {
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

std::vector<std::string> OpenRoles(const CommandDraft& draft) {
  const std::vector<std::string> known = KeyRoleNames();
  std::vector<std::string> open;
  for (const KnownOption& option : KnownOptions()) {
    const std::string role = option.role;
    const auto has = [&](const DraftKey& key) { return key.role == role; };
    const bool is_role = std::count(known.begin(), known.end(), role) > 0;
    if (is_role && std::none_of(draft.keys.begin(), draft.keys.end(), has)) open.push_back(role);
  }
  return open;
}

}  // namespace trainwreck
