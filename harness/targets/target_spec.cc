#include "harness/targets/target_spec.h"

#include <algorithm>
#include <filesystem>

namespace trainwreck {
namespace {

namespace fs = std::filesystem;

bool AnyMentions(const std::vector<Arguments>& arguments, const std::string& placeholder) {
  return std::any_of(arguments.begin(), arguments.end(), [&](const Arguments& group) {
    return std::any_of(group.words.begin(), group.words.end(),
                       [&](const TemplateText& word) { return word.Mentions(placeholder); });
  });
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

bool TargetSpec::Mentions(const std::string& placeholder) const {
  return AnyMentions(command, placeholder) || AnyMentions(resume, placeholder) ||
         std::any_of(environment.begin(), environment.end(),
                     [&](const auto& entry) { return entry.second.Mentions(placeholder); });
}

const TargetSpec* TargetFile::Find(const std::string& name) const {
  auto found = std::find_if(targets.begin(), targets.end(),
                            [&](const TargetSpec& spec) { return spec.name == name; });
  return found == targets.end() ? nullptr : &*found;
}

std::string FindTargetFile(const std::string& folder) {
  std::error_code error;
  for (fs::path at = fs::absolute(folder, error).lexically_normal(); !error;
       at = at.parent_path()) {
    if (fs::is_regular_file(at / "trainwreck.yaml", error))
      return (at / "trainwreck.yaml").string();
    if (at == at.parent_path()) break;
  }
  return "";
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
  values["run.until"] = plan.until ? std::to_string(*plan.until) : values["steps"];
  return values;
}

Invocation Invoke(const TargetSpec& spec, const Plan& plan,
                  const std::map<std::string, std::string>& values) {
  Invocation invocation;
  auto add = [&](const std::vector<Arguments>& arguments) {
    for (const Arguments& group : arguments) {
      if (!group.when.empty() && values.at(group.when) != "true") continue;
      for (const TemplateText& word : group.words) {
        invocation.command.push_back(word.Expand(values));
      }
    }
  };
  add(spec.command);
  invocation.resumes = plan.resume && spec.CanResume() &&
                       (spec.resume_when.empty() || fs::exists(spec.resume_when.Expand(values)));
  if (invocation.resumes) add(spec.resume);
  for (const auto& [name, text] : spec.environment) {
    invocation.environment[name] = text.Expand(values);
  }
  return invocation;
}

}  // namespace trainwreck
