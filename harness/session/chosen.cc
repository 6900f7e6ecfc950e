#include "harness/session/chosen.h"

#include <utility>

#include "harness/protocol/digest.h"
#include "harness/protocol/parse_json.h"
#include "harness/session/selection.h"
#include "harness/text/nearest.h"

namespace trainwreck {
namespace {

std::string SelectionDigest(const std::vector<Case>& cases) {
  std::string text;
  for (const Case& one : cases) text += one.name + " " + one.digest + "\n";
  return DigestText(text);
}

}  // namespace

Changes ParseOverrides(const std::vector<std::string>& texts, const TargetDescription& target) {
  Changes changes;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw UsageError("--set '" + text + "': say KEY=VALUE, as optimizer.lr=0.1");
    }
    const std::string key = text.substr(0, equals), value_text = text.substr(equals + 1);
    const ParamInfo* info = target.FindRecipeKey(key);
    if (info == nullptr) {
      std::vector<std::string> keys;
      for (const ParamInfo& known : target.recipe) keys.push_back(known.name);
      throw UsageError("--set: the target has no recipe key '" + key + "'" +
                       NearestHint(key, keys));
    }
    Json value = info->type == ValueType::kString ? Json(value_text) : TryParseJson(value_text);
    std::string wrong = value.is_discarded() ? std::string("wants a ") + ToString(info->type)
                                             : CheckValue(*info, value);
    if (!wrong.empty()) throw UsageError("--set " + key + "=" + value_text + ": " + wrong);
    changes.set.emplace_back(key, std::move(value));
  }
  return changes;
}

Chosen ChooseCases(const Session& session, const SelectionOptions& selection,
                   const PlanOptions& plan, const std::vector<std::string>& points) {
  Chosen chosen;
  // Wrong expressions are told before any file is read.
  static_cast<void>(WordExpression(selection.keyword, "-k"));
  static_cast<void>(WordExpression(selection.tag, "-t"));
  std::vector<SelectedFile> files = FindScenarioFiles(selection.paths, session.scenarios_root);
  chosen.scenarios = LoadScenarios(session, PathsOf(files));
  std::vector<Case> cases = PlanCases(chosen.scenarios, session.description, plan);
  chosen.planned = static_cast<int>(cases.size());
  std::vector<std::string> names;
  for (const Case& one : cases) names.push_back(one.point->name);
  std::vector<Case> selected = SelectCases(std::move(cases), selection, files, points);
  for (const Case& one : selected) chosen.selected.push_back(one.name);
  chosen.selection_digest = SelectionDigest(selected);
  chosen.cases = KeepShard(std::move(selected), selection);
  if (chosen.cases.empty() && points.size() == 1 && selection.keyword.empty() &&
      selection.tag.empty() && selection.shard_count == 1) {
    std::string known;
    for (const std::string& name : names) {
      if (!name.empty()) known += (known.empty() ? "" : ", ") + name;
    }
    throw UsageError("no point '" + points.front() + "'" +
                     (known.empty() ? ": there is no matrix" : "; there are " + known));
  }
  return chosen;
}

Scenario LoadOnePoint(const Session& session, const std::string& name) {
  const std::vector<SelectedFile> files = FindScenarioFiles({name}, session.scenarios_root);
  if (files.size() != 1) throw UsageError("'" + name + "' is several scenarios; name one");
  Scenario scenario = LoadScenarios(session, PathsOf(files)).front();
  const std::string& wanted = files.front().point;
  const std::size_t declared = scenario.points.size();
  std::erase_if(scenario.points,
                [&](const Point& point) { return !wanted.empty() && point.name != wanted; });
  if (scenario.points.size() != 1) {
    throw UsageError("'" + name + "' has " + std::to_string(declared) +
                     " points; name one, as 'nan/x[sgd]'");
  }
  return scenario;
}

}  // namespace trainwreck
