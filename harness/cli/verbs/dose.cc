// trainwreck dose: how strong a fault must be before each symptom shows, and how strong it may be
// before each remedy fails. The doses are a line, as commits are, and the search is that of bisect:
// it looks for the first dose that runs fail at.
#include "harness/bisect/dose.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/bisect/search.h"
#include "harness/campaign/campaign.h"
#include "harness/cli/table.h"
#include "harness/cli/verb.h"
#include "harness/session/preflight.h"
#include "harness/session/selection.h"
#include "harness/session/session.h"
#include "harness/session/storage.h"
#include "harness/text/nearest.h"

namespace trainwreck {
namespace {

struct DoseOptions {
  CommonOptions common;
  std::string scenario;
  std::string parameter;           // inject.ID.with.NAME
  std::optional<double> from, to;  // else the bounds that the fault has for it
  int levels = 33;
  bool linear = false;
  double confidence = 0.95;
  int max_runs = 400;
  int jobs = 0;
  std::string output;
};

namespace fs = std::filesystem;

constexpr const char* kSchema = "trainwreck/dose";
constexpr int kSchemaVersion = 1;

// "inject.hot_lr.with.factor"
struct Parameter {
  std::string fault_id;
  std::string name;
  const ParamInfo* info = nullptr;
  Json now;  // what the scenario has
};

Parameter FindParameter(const std::string& text, const Scenario& scenario,
                        const TargetDescription& target) {
  std::vector<std::string> known;
  for (const InjectedFault& fault : scenario.faults) {
    for (const ParamInfo& info : target.FindFault(fault.fault)->params) {
      if (info.type != ValueType::kNumber && info.type != ValueType::kInt) continue;
      const std::string path = "inject." + fault.id + ".with." + info.name;
      if (path == text) {
        return {fault.id, info.name, &info, fault.with.at(info.name)};
      }
      known.push_back(path);
    }
  }
  std::string list;
  for (const std::string& path : known) list += (list.empty() ? "" : ", ") + path;
  throw UsageError("--param " + text + ": the scenario has no such number" +
                   NearestHint(text, known) + "; there are: " + (list.empty() ? "none" : list));
}

// An end of the doses: what the command line says, else the bound that the fault has.
double EndOf(const std::optional<double>& said, const std::optional<double>& bound,
             const std::string& option, const std::string& which, const Parameter& parameter) {
  if (said) return *said;
  if (bound) return *bound;
  throw UsageError("give " + option + ": '" + parameter.name + "' has no " + which +
                   " value that could stand for it; the scenario has " + parameter.now.dump());
}

// From the weakest to the strongest; even steps of the logarithm where both ends are positive.
std::vector<double> DosesOf(const DoseOptions& options, const Parameter& parameter) {
  const ParamInfo& info = *parameter.info;
  const double from = EndOf(options.from, info.min, "--from", "smallest", parameter);
  const double to = EndOf(options.to, info.max, "--to", "largest", parameter);
  if (from == to) throw UsageError("--from and --to are the same dose");
  std::vector<double> doses =
      SpreadDoses(from, to, options.levels, options.linear, info.type == ValueType::kInt);
  for (double dose : {doses.front(), doses.back()}) {
    const Json value =
        info.type == ValueType::kInt ? Json(static_cast<std::int64_t>(dose)) : Json(dose);
    const std::string wrong = CheckValue(info, value);
    if (!wrong.empty()) throw UsageError("--param: the dose " + DoseText(dose) + " " + wrong);
  }
  return doses;
}

class DoseSession {
 public:
  explicit DoseSession(const DoseOptions& options);
  int Run();

 private:
  Scenario At(int dose) const;
  void Look(int dose);
  int Report() const;
  Json ToJson(const DoseQuestion& question, const Step& step) const;

  const DoseOptions& options_;
  Session session_;
  std::string point_;
  Scenario scenario_;
  Parameter parameter_;
  std::vector<double> doses_;
  std::vector<DoseQuestion> questions_;
  std::string output_;
  int runs_ = 0;
  bool interrupted_ = false;
};

Scenario LoadOne(const Session& session, const std::string& name, std::string& point) {
  const auto files = FindScenarioFiles({name}, session.scenarios_root);
  if (files.size() != 1) throw UsageError("'" + name + "' is several scenarios; name one");
  Scenario scenario = LoadScenarios(session, PathsOf(files)).front();
  std::vector<Point> chosen;
  for (const Point& each : scenario.points) {
    if (files.front().point.empty() || each.name == files.front().point) chosen.push_back(each);
  }
  if (chosen.size() != 1) {
    throw UsageError("'" + name + "' has " + std::to_string(scenario.points.size()) +
                     " points; name one, as 'nan/x[sgd]'");
  }
  point = chosen.front().name;
  scenario.points = chosen;
  return scenario;
}

DoseSession::DoseSession(const DoseOptions& options)
    : options_(options),
      session_(OpenSession(options.common)),
      scenario_(LoadOne(session_, options.scenario, point_)),
      parameter_(FindParameter(options.parameter, scenario_, session_.description)),
      doses_(DosesOf(options, parameter_)),
      output_(MakeOutputFolder(options.output, /*is_latest=*/false)) {
  SearchOptions search;
  search.confidence = options.confidence;
  search.max_runs = options.max_runs;
  const CommitGraph line = CommitGraph::Line(static_cast<int>(doses_.size()) - 1);
  for (const Check& symptom : scenario_.symptoms) {
    if (!AppliesTo(symptom.when, scenario_.points.front())) continue;
    questions_.push_back({false, symptom.name, Search(line, FailureRates(), search), {}});
  }
  const Scenario strongest = At(static_cast<int>(doses_.size()) - 1);
  const Case planned = PlanCases({strongest}, session_.description, {}).front();
  if (!planned.skip_reason.empty()) {
    throw ConfigurationError("this machine or target lacks what the scenario needs: " +
                             planned.skip_reason);
  }
  RequirePreflight(options.common, session_, {planned});
  for (const ArmPlan& arm : planned.arms) {
    if (arm.kind != ArmKind::kRemedy || arm.is_undo) continue;
    questions_.push_back({true, arm.name, Search(line, FailureRates(), search), {}});
  }
}

Scenario DoseSession::At(int dose) const {
  Scenario scenario = scenario_;
  const double number = doses_[dose];
  const Json value = parameter_.info->type == ValueType::kInt
                         ? Json(static_cast<std::int64_t>(number))
                         : Json(number);
  for (InjectedFault& fault : scenario.faults) {
    if (fault.id == parameter_.fault_id) fault.with[parameter_.name] = value;
  }
  for (Point& point : scenario.points) {
    auto changed = point.with.find(parameter_.fault_id);
    if (changed != point.with.end()) changed->second[parameter_.name] = value;
  }
  return scenario;
}

// One seed, never used before, with all arms: it answers every question at once.
void DoseSession::Look(int dose) {
  PlanOptions plan;
  plan.each_seed = {runs_, runs_ + 1};
  const std::vector<Case> cases = PlanCases({At(dose)}, session_.description, plan);
  LauncherOptions launcher;
  launcher.target = session_.target;
  launcher.cores = options_.jobs;
  launcher.output_dir =
      fs::absolute(output_ + "/" + std::to_string(runs_)).lexically_normal().string();
  fs::create_directories(launcher.output_dir);
  Campaign campaign(cases, session_.description, launcher,
                    {.stop_early = true, .keep = KeepRuns::kNone});
  const CampaignResult result = campaign.Execute([](const Verdict&) {}, [](int, int, int) {});
  fs::remove_all(launcher.output_dir);
  ++runs_;
  interrupted_ = result.interrupted;
  if (interrupted_) return;
  for (const Verdict& verdict : result.verdicts) {
    for (DoseQuestion& question : questions_) question.Take(verdict, dose);
  }
}

int DoseSession::Run() {
  std::cout << "# " << doses_.size() << " doses of " << options_.parameter << " from "
            << DoseText(doses_.front()) << " to " << DoseText(doses_.back()) << "\n";
  // A dose whose runs say nothing is not asked for again and again.
  std::map<int, int> looks;
  constexpr int kVainLooks = 3;
  for (bool is_open = true; is_open && !interrupted_;) {
    is_open = false;
    for (DoseQuestion& question : questions_) {
      const Step step = question.search.Next();
      if (step.kind != Step::kRun) continue;
      is_open = true;
      const int before = question.search.runs();
      Look(step.commit);
      if (interrupted_) break;
      if (question.search.runs() == before && ++looks[step.commit] >= kVainLooks) {
        question.search.Skip(step.commit);
      }
    }
  }
  if (interrupted_) return kExitInterrupted;
  return Report();
}

// How often it was so, from the weakest dose to the strongest; a dot where nobody looked.
std::string Sparkline(const DoseQuestion& question, int doses) {
  constexpr const char* kBlocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  std::string line;
  for (int dose = 0; dose < doses; ++dose) {
    const auto seen = question.seen.find(dose);
    if (seen == question.seen.end()) {
      line += "·";
      continue;
    }
    const double share = static_cast<double>(seen->second.first) / seen->second.second;
    line += kBlocks[std::lround(share * 7)];
  }
  return line;
}

Json DoseSession::ToJson(const DoseQuestion& question, const Step& step) const {
  const auto range = RangeOfDoses(question.search, options_.confidence, doses_);
  Json looks = Json::array();
  for (const auto& [dose, count] : question.seen) {
    looks.push_back({{"dose", doses_[dose]}, {"yes", count.first}, {"runs", count.second}});
  }
  Json json = {{"kind", question.is_remedy ? "remedy" : "symptom"},
               {"name", question.name},
               {"limit", nullptr},
               {"text", LimitText(question, step, doses_, range)},
               {"confidence", question.search.confidence()},
               {"looks", looks}};
  if (step.kind == Step::kCulprit) {
    json["limit"] = doses_[question.is_remedy ? step.commit - 1 : step.commit];
    json["between"] = {doses_[step.commit - 1], doses_[step.commit]};
  } else if (step.kind == Step::kUndecided && range) {
    json["between"] = {range->first, range->second};
  }
  return json;
}

int DoseSession::Report() const {
  std::vector<std::vector<std::string>> rows = {
      {"question", "dose", "confidence", "rates", "weak to strong"}};
  Json answers = Json::array();
  bool is_decided = true;
  for (const DoseQuestion& question : questions_) {
    const Step step = question.search.Next();
    is_decided = is_decided && step.kind != Step::kUndecided;
    const bool is_found = step.kind == Step::kCulprit;
    answers.push_back(ToJson(question, step));
    char confidence[16];
    std::snprintf(confidence, sizeof confidence, "%.1f%%", 100 * question.search.confidence());
    rows.push_back({question.is_remedy ? "strongest that " + question.name + " holds"
                                       : "weakest that shows " + question.name,
                    answers.back().at("text").get<std::string>(), is_found ? confidence : "-",
                    is_found ? DoseText(question.search.GoodLevel()) + " -> " +
                                   DoseText(question.search.BadLevel())
                             : "-",
                    Sparkline(question, static_cast<int>(doses_.size()))});
  }
  PrintTable(std::cout, rows);
  std::cout << "# " << runs_ << " seeds with all arms\n";
  const Json json = {{"schema", kSchema},
                     {"version", kSchemaVersion},
                     {"scenario", scenario_.name},
                     {"point", point_},
                     {"parameter", options_.parameter},
                     {"doses", doses_},
                     {"seeds", runs_},
                     {"answers", answers}};
  WriteWholeFile(output_ + "/dose.json", json.dump(1) + "\n");
  std::cout << "# report: " << output_ << "/dose.json\n";
  return is_decided ? kExitPassed : kExitInconclusive;
}

int DoseVerb(const DoseOptions& options) { return DoseSession(options).Run(); }

void Declare(VerbArguments& arguments, DoseOptions& options) {
  arguments
      .Positional("SCENARIO", options.scenario, "File or name, as nan/lr-too-high or 'nan/x[sgd]'")
      .Required();
  arguments
      .Option("--param", options.parameter, "What to vary, as inject.hot_lr.with.factor", "PATH")
      .Required();
  arguments.Option("--from", options.from, "The weakest dose [the least that the fault takes]",
                   "VALUE");
  arguments.Option("--to", options.to, "The strongest dose [the most that the fault takes]",
                   "VALUE");
  arguments.Option("--levels", options.levels, "How many doses, ends included [33]", "N")
      .Between(3, 1025);
  arguments.Flag("--linear", options.linear, "Even steps, not of the logarithm");
  arguments
      .Option("--confidence", options.confidence, "Name a dose only when this sure [0.95]", "P")
      .Between(0.5, 0.9999);
  arguments.Option("--max-runs", options.max_runs, "Seeds per question at most [400]", "N")
      .Between(1, 100000);
  arguments.Option("-j,--jobs", options.jobs, "Cores to use [all that this process may use]", "N")
      .Between(1, 4096);
  arguments.Option("--output", options.output, "Folder for dose.json [.trainwreck/runs/<UTC time>]",
                   "DIR");
  arguments.Preflight(options.common);
  arguments.Common(options.common);
}

const VerbRegistration registration(
    "dose", "Find the weakest fault that shows, and the strongest that each remedy holds",
    kSearching + 1, Declare, DoseVerb);

}  // namespace
}  // namespace trainwreck
