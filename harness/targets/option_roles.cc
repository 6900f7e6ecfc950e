#include "harness/targets/option_roles.h"

#include <re2/re2.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "harness/protocol/recipe_view.h"

namespace trainwreck {
namespace {

struct KnownOption {
  const char* role;                // of the protocol, or one of the words below
  std::vector<const char*> names;  // with the section where the name alone says too little
};

// The names that well-known stacks and their users give these options.
const std::vector<KnownOption>& KnownOptions() {
  static const std::vector<KnownOption> all = {
      {kStepsOption,
       {"steps", "max_steps", "num_steps", "n_steps", "train_steps", "training_steps",
        "total_steps", "max_train_steps", "num_train_steps", "iters", "max_iters", "num_iters",
        "train_iters", "iterations", "num_iterations", "max_iterations"}},
      {kSeedOption, {"seed", "random_seed", "manual_seed", "seed_everything"}},
      {kRanksOption, {"nproc_per_node"}},
      {kFolderOption,
       {"outdir", "out", "output", "checkpoints", "save", "default_root_dir", "workdir",
        "hydra.run.dir"}},
      {kLogFolderOption, {"logdir"}},
      {"learning_rate",
       {"lr", "learning_rate", "base_lr", "init_lr", "initial_lr", "lr0", "max_lr", "peak_lr"}},
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
      {"samples",
       {"train_samples", "num_train_samples", "max_train_samples", "n_train", "dataset_size"}},
      {"regularisation",
       {"dropout", "dropout_rate", "dropout_prob", "drop_path", "drop_path_rate", "label_smoothing",
        "label_smoothing_factor"}},
      {"loader_workers", {"workers", "num_workers", "dataloader_num_workers", "loader_workers"}},
      {"evaluate_every",
       {"eval_every", "eval_steps", "eval_interval", "val_check_interval", "validation.freq"}},
      {"save_every",
       {"save_every", "save_steps", "save_interval", "checkpoint_every", "checkpoint.interval"}},
  };
  return all;
}

// Of a folder that a program writes: what it is for, and that it is a folder. One called "folder"
// alone, or "data_dir", may be below another one, or is read.
std::string RoleOfFolder(const std::string& last) {
  static const RE2 kFolder(
      "(output|out|save|checkpoints?|ckpts?|dump|results?|work|runs?|experiments?|exp)"
      "_(dir|directory|folder|path)");
  static const RE2 kLogFolder("(logs?|logging|tensorboard|tb)_(dir|directory|folder|path)");
  if (RE2::FullMatch(last, kFolder)) return kFolderOption;
  return RE2::FullMatch(last, kLogFolder) ? kLogFolderOption : "";
}

}  // namespace

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

std::string RoleOfKey(const std::string& key) {
  const auto ends_with = [dotted = "." + key](const char* name) {
    return dotted.ends_with("." + std::string(name));
  };
  for (const KnownOption& known : KnownOptions()) {
    if (std::any_of(known.names.begin(), known.names.end(), ends_with)) return known.role;
  }
  return RoleOfFolder(key.substr(key.rfind('.') + 1));
}

std::vector<std::string> NamedRoles() {
  const std::vector<std::string> known = KeyRoleNames();
  std::vector<std::string> named;
  for (const KnownOption& option : KnownOptions()) {
    if (std::count(known.begin(), known.end(), option.role) > 0) named.emplace_back(option.role);
  }
  return named;
}

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

}  // namespace trainwreck
