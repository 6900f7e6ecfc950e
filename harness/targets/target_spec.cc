#include "harness/targets/target_spec.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "harness/protocol/recipe_view.h"
#include "harness/targets/globs.h"

namespace trainwreck {
namespace {

namespace fs = std::filesystem;

bool AnyMentions(const std::vector<Arguments>& arguments, const std::string& placeholder) {
  return std::any_of(arguments.begin(), arguments.end(), [&](const Arguments& group) {
    return std::any_of(group.words.begin(), group.words.end(),
                       [&](const TemplateText& word) { return word.Mentions(placeholder); });
  });
}

// Adds what `{newest:...}` in the text stands for; false when there is no match.
bool FindNewestOf(const TemplateText& text, std::map<std::string, std::string>& values) {
  for (const TemplateText::Part& part : text.parts()) {
    if (!part.is_placeholder || part.text.rfind(kNewest, 0) != 0) continue;
    const auto found = FindNewest({values.at("run.folder"), values.at("run.checkpoints")},
                                  part.text.substr(std::string(kNewest).size()));
    if (!found) return false;
    values[part.text] = *found;
  }
  return true;
}

// The words of a command line; empty when one of them asks for a newest file that is not there and
// `needs_all`. Otherwise such an entry is left out.
std::optional<std::vector<std::string>> Words(const std::vector<Arguments>& arguments,
                                              std::map<std::string, std::string>& values,
                                              bool needs_all) {
  std::vector<std::string> words;
  for (const Arguments& group : arguments) {
    if (!group.when.empty() && values.at(group.when) != "true") continue;
    const bool has_all =
        std::all_of(group.words.begin(), group.words.end(),
                    [&](const TemplateText& word) { return FindNewestOf(word, values); });
    if (!has_all && needs_all) return std::nullopt;
    for (const TemplateText& word : group.words) {
      if (has_all) words.push_back(word.Expand(values));
    }
  }
  return words;
}

bool CanGoOn(const TemplateText& when_exists, std::map<std::string, std::string>& values) {
  return when_exists.empty() ||
         (FindNewestOf(when_exists, values) && fs::exists(when_exists.Expand(values)));
}

}  // namespace

const char* RankVariable(LauncherKind kind) {
  switch (kind) {
    case LauncherKind::kOwn:
    case LauncherKind::kTorchrun:
      return "RANK";
    case LauncherKind::kMpirun:
      return "OMPI_COMM_WORLD_RANK";
    case LauncherKind::kSrun:
      return "SLURM_PROCID";
  }
  return "";
}

std::map<std::string, std::string> LauncherVariables() {
  return {{"torchrun", RankVariable(LauncherKind::kTorchrun)},
          {"mpirun", RankVariable(LauncherKind::kMpirun)},
          {"srun", RankVariable(LauncherKind::kSrun)}};
}

bool SourceSpec::HasWildcards() const {
  return std::any_of(path.parts().begin(), path.parts().end(), [](const auto& part) {
    return !part.is_placeholder && trainwreck::HasWildcards(part.text);
  });
}

bool TargetSpec::Mentions(const std::string& placeholder) const {
  return AnyMentions(command, placeholder) || AnyMentions(resume, placeholder) ||
         std::any_of(environment.begin(), environment.end(),
                     [&](const auto& entry) { return entry.second.Mentions(placeholder); });
}

std::optional<double> TargetSpec::EntropyFloor() const {
  const auto floor = extras.floors.find(kLoss);
  const bool is_read = std::any_of(sources.begin(), sources.end(), [](const SourceSpec& source) {
    return source.names.contains(kLoss);
  });
  const bool is_declared = std::any_of(signals.begin(), signals.end(), [](const SignalInfo& info) {
    return info.name == kEntropyFloor;
  });
  if (floor == extras.floors.end() || !is_read || is_declared) return std::nullopt;
  return floor->second;
}

bool TargetSpec::HooksEndRuns() const {
  return !hooks.empty() && !Mentions(kStepsKey) && !Mentions("run.until");
}

const TargetSpec* TargetFile::Find(const std::string& name) const {
  auto found = std::find_if(targets.begin(), targets.end(),
                            [&](const TargetSpec& spec) { return spec.name == name; });
  return found == targets.end() ? nullptr : &*found;
}

std::string FindTargetFile(const std::string& folder) {
  std::error_code error;
  fs::path at = fs::absolute(folder, error).lexically_normal();
  if (error) return "";
  for (;; at = at.parent_path()) {
    const fs::path file = at / "trainwreck.yaml";
    std::error_code ignored;  // where there is none that is an error, too
    if (fs::is_regular_file(file, ignored)) return file.string();
    if (at == at.parent_path()) return "";
  }
}

std::map<std::string, std::string> PlaceholderValues(const TargetSpec& spec, const Plan& plan,
                                                     const std::string& folder,
                                                     const std::string& data, int rank, int ranks) {
  std::map<std::string, std::string> values;
  for (const ParamInfo& info : spec.recipe) {
    const auto found = plan.recipe.find(info.name);
    values[info.name] =
        ArgumentText(found == plan.recipe.end() ? info.default_value : found->second);
  }
  values["run.folder"] = folder;
  values["run.checkpoints"] = plan.checkpoint_dir;
  values["run.data"] = data;
  values["run.seed"] = std::to_string(plan.seed);
  values["run.rank"] = std::to_string(rank);
  values["run.ranks"] = std::to_string(ranks);
  values["run.until"] = plan.until ? std::to_string(*plan.until) : values[kStepsKey];
  return values;
}

Invocation Invoke(const TargetSpec& spec, const Plan& plan,
                  const std::map<std::string, std::string>& values) {
  Invocation invocation;
  std::map<std::string, std::string> known = values;
  invocation.command = *Words(spec.command, known, /*needs_all=*/false);
  if (plan.resume && spec.CanResume() && CanGoOn(spec.resume_when, known)) {
    const auto words = Words(spec.resume, known, /*needs_all=*/true);
    invocation.resumes = words.has_value();
    if (words) invocation.command.insert(invocation.command.end(), words->begin(), words->end());
  }
  invocation.environment = EnvironmentOf(spec, values);
  return invocation;
}

std::map<std::string, std::string> EnvironmentOf(const TargetSpec& spec,
                                                 const std::map<std::string, std::string>& values) {
  std::map<std::string, std::string> environment;
  for (const auto& [name, text] : spec.environment) environment[name] = text.Expand(values);
  const char* first = std::getenv("TRAINWRECK_PYTHONPATH");
  const auto own = environment.find("PYTHONPATH");
  if (first != nullptr && own != environment.end()) {
    own->second = std::string(first) + ":" + own->second;
  }
  return environment;
}

}  // namespace trainwreck
