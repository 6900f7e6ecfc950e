#include "harness/bisect/dose_search.h"

#include <filesystem>

#include "harness/bisect/search.h"
#include "harness/campaign/campaign.h"
#include "harness/session/chosen.h"
#include "harness/text/nearest.h"
#include "harness/text/words.h"

namespace trainwreck {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSchema = "trainwreck/dose";
constexpr int kSchemaVersion = 1;
constexpr const char* kStrengthParameter = "strength";

// A dose as the parameter takes it.
Json ValueOf(const ParamInfo& info, double dose) {
  return info.type == ValueType::kInt ? Json(static_cast<std::int64_t>(dose)) : Json(dose);
}

// An end of the doses: what the command line says, else the bound that the fault has.
double EndOf(const std::optional<double>& said, const std::optional<double>& bound,
             const std::string& option, const std::string& which, const DoseParameter& parameter) {
  if (said) return *said;
  if (bound) return *bound;
  throw UsageError("give " + option + ": '" + parameter.info.name + "' has no " + which +
                   " value that could stand for it; the scenario has " + parameter.now.dump());
}

// From the weakest to the strongest; even steps of the logarithm where both ends are positive.
std::vector<double> DosesOf(const DoseRequest& request, const DoseParameter& parameter) {
  const ParamInfo& info = parameter.info;
  const double from = EndOf(request.from, parameter.weakest, "--from", "smallest", parameter);
  const double to = EndOf(request.to, parameter.strongest, "--to", "largest", parameter);
  if (from == to) throw UsageError("--from and --to are the same dose");
  std::vector<double> doses =
      SpreadDoses(from, to, request.levels, request.linear, info.type == ValueType::kInt);
  for (double dose : {doses.front(), doses.back()}) {
    const std::string wrong = CheckValue(info, ValueOf(info, dose));
    if (!wrong.empty()) throw UsageError("--param: the dose " + DoseText(dose) + " " + wrong);
  }
  return doses;
}

}  // namespace

DoseParameter FindDoseParameter(const std::string& text, const Scenario& scenario,
                                const TargetDescription& target) {
  std::vector<std::string> known;
  if (const auto& strength = scenario.strength) {
    known.push_back(kStrengthParameter);
    if (text == known.back()) {
      return {"", {.name = text}, strength->value, strength->from, strength->to};
    }
  }
  for (const InjectedFault& fault : scenario.faults) {
    for (const ParamInfo& info : target.FindFault(fault.fault)->params) {
      if (info.type != ValueType::kNumber && info.type != ValueType::kInt) continue;
      const std::string path = "inject." + fault.id + ".with." + info.name;
      if (path == text) {
        return {fault.id, info, fault.with.at(info.name), info.min, info.max};
      }
      known.push_back(path);
    }
  }
  throw UsageError("--param " + text + ": the scenario has no such number" +
                   NearestHint(text, known) +
                   "; there are: " + (known.empty() ? "none" : Join(known)));
}

DoseSearch::DoseSearch(const Session& session, const DoseRequest& request)
    : session_(session),
      request_(request),
      scenario_(LoadOnePoint(session_, request_.scenario)),
      parameter_(FindDoseParameter(request_.parameter, scenario_, session_.description)),
      doses_(DosesOf(request_, parameter_)),
      strongest_(
          PlanCases({At(static_cast<int>(doses_.size()) - 1)}, session_.description, {}).front()) {
  if (!strongest_.skip_reason.empty()) {
    throw ConfigurationError("this machine or target lacks what the scenario needs: " +
                             strongest_.skip_reason);
  }
  SearchOptions search;
  search.confidence = request_.confidence;
  search.max_runs = request_.max_runs;
  const CommitGraph line = CommitGraph::Line(static_cast<int>(doses_.size()) - 1);
  for (const Check& symptom : scenario_.symptoms) {
    if (!AppliesTo(symptom.when, scenario_.points.front())) continue;
    questions_.push_back({false, symptom.name, Search(line, FailureRates(), search), {}});
  }
  for (const ArmPlan& arm : strongest_.arms) {
    if (arm.kind != ArmKind::kRemedy || arm.is_undo) continue;
    questions_.push_back({true, arm.name, Search(line, FailureRates(), search), {}});
  }
}

Scenario DoseSearch::At(int dose) const {
  if (parameter_.fault_id.empty()) {
    Session session = session_;
    session.description.calibration.strengths[scenario_.name] = doses_[dose];
    return LoadOnePoint(session, request_.scenario);
  }
  Scenario scenario = scenario_;
  const Json value = ValueOf(parameter_.info, doses_[dose]);
  for (InjectedFault& fault : scenario.faults) {
    if (fault.id == parameter_.fault_id) fault.with[parameter_.info.name] = value;
  }
  for (Point& point : scenario.points) {
    auto changed = point.with.find(parameter_.fault_id);
    if (changed != point.with.end()) changed->second[parameter_.info.name] = value;
  }
  return scenario;
}

// One seed, never used before, with all arms: it answers every question at once. False when
// interrupted.
bool DoseSearch::Look(int dose, const std::string& folder) {
  PlanOptions plan;
  plan.each_seed = {seeds_, seeds_ + 1};
  const std::vector<Case> cases = PlanCases({At(dose)}, session_.description, plan);
  LauncherOptions launcher;
  launcher.target = session_.target;
  launcher.cores = request_.cores;
  launcher.output_dir =
      fs::absolute(folder + "/" + std::to_string(seeds_)).lexically_normal().string();
  fs::create_directories(launcher.output_dir);
  Campaign campaign(cases, session_.description, launcher,
                    {.stop_early = true, .keep = KeepRuns::kNone});
  const CampaignResult result = campaign.Execute([](const Verdict&) {}, [](int, int, int) {});
  fs::remove_all(launcher.output_dir);
  ++seeds_;
  if (result.interrupted) return false;
  for (const Verdict& verdict : result.verdicts) {
    for (DoseQuestion& question : questions_) question.Take(verdict, dose);
  }
  return true;
}

bool DoseSearch::Run(const std::string& folder) {
  // A dose whose runs say nothing is not asked for again and again.
  std::map<int, int> looks;
  constexpr int kVainLooks = 3;
  for (bool is_open = true; is_open;) {
    is_open = false;
    for (DoseQuestion& question : questions_) {
      const Step step = question.search.Next();
      if (step.kind != Step::kRun) continue;
      is_open = true;
      const int before = question.search.runs();
      if (!Look(step.commit, folder)) return false;
      if (question.search.runs() == before && ++looks[step.commit] >= kVainLooks) {
        question.search.Skip(step.commit);
      }
    }
  }
  return true;
}

DoseAnswer DoseSearch::AnswerOf(const DoseQuestion& question) const {
  const Search& search = question.search;
  const Step step = search.Next();
  const DoseRange range = RangeOfDoses(search, request_.confidence, doses_);
  DoseAnswer answer;
  answer.is_remedy = question.is_remedy;
  answer.name = question.name;
  answer.is_decided = step.kind != Step::kUndecided;
  answer.text = LimitText(question, step, doses_, range);
  answer.confidence = search.confidence();
  answer.seen = question.seen;
  if (step.kind == Step::kCulprit) {
    answer.between = {doses_[step.commit - 1], doses_[step.commit]};
    answer.limit = question.is_remedy ? answer.between->first : answer.between->second;
    answer.rates = {search.GoodLevel(), search.BadLevel()};
  } else if (step.kind == Step::kUndecided) {
    answer.between = range;
  }
  return answer;
}

std::vector<DoseAnswer> DoseSearch::Answers() const {
  std::vector<DoseAnswer> answers;
  for (const DoseQuestion& question : questions_) answers.push_back(AnswerOf(question));
  return answers;
}

Json DoseSearch::ToJson() const {
  Json answers = Json::array();
  for (const DoseAnswer& answer : Answers()) {
    Json looks = Json::array();
    for (const auto& [dose, count] : answer.seen) {
      looks.push_back({{"dose", doses_[dose]}, {"yes", count.first}, {"runs", count.second}});
    }
    Json& json = answers.emplace_back(Json({{"kind", answer.is_remedy ? "remedy" : "symptom"},
                                            {"name", answer.name},
                                            {"limit", nullptr},
                                            {"text", answer.text},
                                            {"confidence", answer.confidence},
                                            {"looks", looks}}));
    if (answer.limit) json["limit"] = *answer.limit;
    if (answer.between) json["between"] = {answer.between->first, answer.between->second};
  }
  return {{"schema", kSchema},
          {"version", kSchemaVersion},
          {"scenario", scenario_.name},
          {"point", scenario_.points.front().name},
          {"parameter", request_.parameter},
          {"doses", doses_},
          {"seeds", seeds_},
          {"answers", answers}};
}

}  // namespace trainwreck
