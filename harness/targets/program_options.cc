#include "harness/targets/program_options.h"

#include <re2/re2.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <utility>

#include "harness/protocol/recipe_view.h"
#include "harness/targets/option_roles.h"
#include "harness/targets/target_spec.h"
#include "harness/text/words.h"

namespace trainwreck {
namespace {

// A longer default is for the whole training. The user has to say what a run of a test may last.
constexpr int kMostSteps = 1000;

// An option that may be added for a role.
struct Candidate {
  std::string name;  // of its names, the one that has the role
  std::string value;
  bool is_exact = false;  // it is called as its role is
};

std::string FileOfPath(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// Whether the word of a draft stands for this one of a command.
bool StandsFor(const std::string& draft, const std::string& word) {
  std::string text;
  for (std::size_t i = 0; i < draft.size(); ++i) {
    const bool is_brace = draft[i] == '{' || draft[i] == '}';
    const bool is_double = is_brace && i + 1 < draft.size() && draft[i + 1] == draft[i];
    if (is_brace && !is_double) return word.starts_with(text);  // a placeholder, to the end
    text += draft[i];
    if (is_double) ++i;
  }
  return word == text;
}

// Whether what is added to the command reaches the parser that declares the options: it does not
// where a script starts the program.
bool EndsAsTheProcess(const CommandDraft& draft, const std::vector<std::string>& words) {
  if (words.empty() || words.size() > draft.words.size()) return false;
  auto own = draft.words.end() - static_cast<std::ptrdiff_t>(words.size());
  std::string file = FileOfPath(words.front());
  bool is_same = StandsFor(*own, words.front()) || file == *own;
  if (file.ends_with(".py")) file.resize(file.size() - 3);
  is_same = is_same || file == *own;  // `trl sft` runs sft.py with the words that follow
  return is_same &&
         std::equal(words.begin() + 1, words.end(), own + 1,
                    [](const auto& word, const auto& of) { return StandsFor(of, word); });
}

bool TakesFractions(const std::string& role) {
  return role == ToString(KeyRole::kLearningRate) || role == ToString(KeyRole::kClipNorm) ||
         role == ToString(KeyRole::kWeightDecay) || role == ToString(KeyRole::kRegularisation);
}

// Whether the program's own value is one that a key of this role may have.
bool Suits(const std::string& role, const std::string& value) {
  if (TakesFractions(role)) {
    const double number = IsNumber(value) ? std::strtod(value.c_str(), nullptr) : -1;
    return number > 0 || (number == 0 && role != ToString(KeyRole::kLearningRate));
  }
  if (value.empty() || !IsWhole(value)) return false;  // -1 often stands for: none
  const double number = std::strtod(value.c_str(), nullptr);
  if (role == kStepsOption) return number > 1 && number <= kMostSteps;
  const bool is_count =
      role == ToString(KeyRole::kBatchSize) || role == ToString(KeyRole::kAccumulation);
  return number >= (is_count ? 1 : 0);
}

bool IsFolder(const std::string& role) { return role == kFolderOption || role == kLogFolderOption; }

std::string WithRole(const std::string& name, const std::string& role) {
  return name + " (" + role + ")";
}

bool MayRepeat(const std::string& role) { return role == ToString(KeyRole::kRegularisation); }

bool HasRole(const CommandDraft& draft, const std::string& role) {
  if (role == kSeedOption) return !draft.seed.empty();
  if (MayRepeat(role)) return false;
  if (role == kStepsOption) return draft.has_steps;
  if (IsFolder(role)) {
    return std::any_of(draft.folders.begin(), draft.folders.end(), [&](const std::string& option) {
      return RoleOfKey(KeyName(option)) == role;
    });
  }
  return std::any_of(draft.keys.begin(), draft.keys.end(),
                     [&](const DraftKey& key) { return key.role == role; });
}

// A program whose length may be in epochs, by the command or by itself.
bool CountsEpochs(const ProgramOptions& program, const CommandDraft& draft) {
  const auto is_epochs = [](const std::string& name) {
    return KeyName(name).find("epoch") != std::string::npos;
  };
  return std::any_of(draft.words.begin(), draft.words.end(), is_epochs) ||
         std::any_of(program.all.begin(), program.all.end(), [&](const ProgramOption& option) {
           return !option.value.empty() && is_epochs(option.names.front());
         });
}

// Where a share of the run says how long the warmup is, 0 steps of it may mean just that.
bool WarmsUpByShare(const ProgramOptions& program, const CommandDraft& draft) {
  const auto is_share = [](const std::string& name, const std::string& value) {
    static const RE2 kShare("(.*[._])?warmup_(ratio|fraction|frac|proportion|pct|percent)");
    return RE2::FullMatch(KeyName(name), kShare) && std::strtod(value.c_str(), nullptr) != 0;
  };
  return std::any_of(draft.keys.begin(), draft.keys.end(),
                     [&](const DraftKey& key) { return is_share(key.option, key.value); }) ||
         std::any_of(program.all.begin(), program.all.end(), [&](const ProgramOption& option) {
           return is_share(option.names.front(), option.value);
         });
}

// Hydra makes a folder for each run in any case; here it is that of the run.
bool AddFolder(const Candidate& candidate, CommandDraft& draft) {
  if (candidate.name != "hydra.run.dir") return false;
  draft.folders.push_back(candidate.name);
  draft.words.push_back(candidate.name + "={run.checkpoints}");
  return true;
}

bool Resumes(const ProgramOption& option) {
  static const RE2 kNames(
      "(auto_)?resume(_.*)?|load(_(checkpoint|ckpt|from|dir|path))?|ckpt_path|from_checkpoint|"
      "restore(_(checkpoint|ckpt|from|path))?|continue(_(from|training))?");
  return std::any_of(option.names.begin(), option.names.end(),
                     [](const std::string& name) { return RE2::FullMatch(KeyName(name), kNames); });
}

// Those of one role. The one that is called as the role is stands for all.
std::map<std::string, std::vector<Candidate>> ByRole(const ProgramOptions& program,
                                                     const CommandDraft& draft) {
  std::map<std::string, std::vector<Candidate>> candidates;
  for (const ProgramOption& option : program.all) {
    for (const std::string& name : option.names) {
      const std::string key = KeyName(name);
      const std::string role = RoleOfKey(key);
      if (role.empty() || role == kRanksOption || !option.takes_value || HasRole(draft, role)) {
        continue;
      }
      candidates[role].push_back({name, option.value, key == role});
      break;
    }
  }
  for (auto& [role, all] : candidates) {
    const auto exact =
        std::find_if(all.begin(), all.end(), [](const Candidate& one) { return one.is_exact; });
    if (exact != all.end()) all = {Candidate(*exact)};
  }
  return candidates;
}

// False: the file may not have such a key.
bool Add(const Candidate& candidate, const std::string& role, CommandDraft& draft) {
  if (role == kSeedOption) {
    draft.seed = candidate.name;
    draft.words.push_back(candidate.name + "={run.seed}");
    return true;
  }
  const bool is_steps = role == kStepsOption;
  const std::string name = is_steps ? kStepsKey : KeyName(candidate.name);
  const auto has_name = [&](const DraftKey& key) { return key.name == name; };
  if (!IsKeyName(name) || (!is_steps && IsHarnessKey(name)) ||
      std::any_of(draft.keys.begin(), draft.keys.end(), has_name)) {
    return false;
  }
  draft.has_steps = draft.has_steps || is_steps;
  draft.words.push_back(candidate.name + "={" + name + "}");
  draft.keys.push_back({name, candidate.name, candidate.value, is_steps ? "" : role,
                        /*takes_whole=*/IsWhole(candidate.value)});
  return true;
}

}  // namespace

ProgramOptions ProgramOptionsOf(const Json& event) {
  ProgramOptions program;
  program.command = event.value("command", std::vector<std::string>());
  for (const Json& option : event.value("options", Json::array())) {
    program.all.push_back({option.at("names").get<std::vector<std::string>>(),
                           option.value("default", ""), option.value("takes_value", true)});
  }
  program.long_names = event.value("long", program.long_names);
  return program;
}

std::vector<std::string> UseLongNames(const CommandDraft& draft, const ProgramOptions& program,
                                      std::vector<std::string>& command) {
  std::vector<std::string> renamed;
  if (!EndsAsTheProcess(draft, program.command)) return renamed;
  const auto has_role = [](const std::string& name) { return !RoleOfKey(KeyName(name)).empty(); };
  for (std::size_t i = command.size() - program.command.size() + 1; i < command.size(); ++i) {
    const auto found = program.long_names.find(command[i]);
    if (found == program.long_names.end()) continue;
    const std::vector<std::string>& names = found->second;
    const auto best = std::find_if(names.begin(), names.end(), has_role);
    const std::string name = best == names.end() ? names.front() : *best;
    renamed.push_back(name + " for " + command[i]);
    command[i] = name;
  }
  return renamed;
}

OptionFindings AddOptions(const ProgramOptions& program, bool may_add_steps, CommandDraft& draft) {
  OptionFindings findings;
  if (!EndsAsTheProcess(draft, program.command)) return findings;
  std::copy_if(program.all.begin(), program.all.end(), std::back_inserter(findings.resume),
               Resumes);
  const bool counts_epochs = CountsEpochs(program, draft);
  const bool has_share = WarmsUpByShare(program, draft);
  for (const auto& [role, candidates] : ByRole(program, draft)) {
    if (IsFolder(role)) {
      for (const Candidate& one : candidates) {
        if (!AddFolder(one, draft)) findings.folders.push_back(one.name);
      }
      continue;
    }
    if (candidates.size() > 1 && !MayRepeat(role)) {
      std::vector<std::string> names;
      for (const Candidate& one : candidates) names.push_back(one.name);
      findings.rivals.push_back(WithRole(Join(names, " or "), role));
      continue;
    }
    const bool is_held = (role == kStepsOption && (counts_epochs || !may_add_steps)) ||
                         (role == ToString(KeyRole::kWarmupSteps) && has_share);
    for (const Candidate& one : candidates) {
      const bool may_add = draft.config_files.empty() && !is_held && Suits(role, one.value);
      if (may_add && Add(one, role, draft)) {
        findings.added.push_back(WithRole(one.name, role));
      } else {
        if (role == kSeedOption) findings.seed = one.name;
        findings.open.push_back(WithRole(one.name, role));
      }
    }
  }
  return findings;
}

}  // namespace trainwreck
