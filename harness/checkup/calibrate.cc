#include "harness/checkup/calibrate.h"

#include <cmath>
#include <map>

#include "harness/campaign/campaign.h"
#include "harness/session/workspace.h"

namespace trainwreck {
namespace {

constexpr int kInARow = 3;
constexpr int kMostLooks = 6;  // with all seeds

StrengthAnswer AnswerOf(const Verdict& verdict) {
  if (verdict.seen_verdict == VerdictKind::kPass) return StrengthAnswer::kPasses;
  static const std::map<FailureClass::Id, StrengthAnswer> kAnswers = {
      {FailureClass::kSymptomAbsent, StrengthAnswer::kTooWeak},
      {FailureClass::kSymptomWeak, StrengthAnswer::kTooWeak},
      {FailureClass::kBugUnnoticed, StrengthAnswer::kTooWeak},
      {FailureClass::kControlUnhealthy, StrengthAnswer::kNoControl},
      {FailureClass::kSymptomInControl, StrengthAnswer::kNoControl}};
  const auto found = kAnswers.find(verdict.failure_class.id());
  return found == kAnswers.end() ? StrengthAnswer::kFails : found->second;
}

// Leaves what shows the symptom: remedies and decoys come later.
void KeepFault(Case& one) {
  std::erase_if(one.arms, [](const ArmPlan& arm) {
    return arm.kind == ArmKind::kRemedy || arm.kind == ArmKind::kDecoy;
  });
}

bool Ends(StrengthAnswer answer) {
  return answer == StrengthAnswer::kNoControl || answer == StrengthAnswer::kInterrupted;
}

}  // namespace

std::vector<double> OctavesOf(const Strength& strength) {
  const double span = std::fabs(std::log2(strength.to / strength.from));
  std::vector<double> octaves;
  for (int i = 0; i <= static_cast<int>(span + 1e-9); ++i) {
    octaves.push_back(std::ldexp(strength.from, strength.to > strength.from ? i : -i));
  }
  return octaves;
}

StrengthSearch FindStrength(const std::vector<double>& octaves,
                            const std::function<StrengthTrial(double, StrengthLook)>& look) {
  StrengthSearch search;
  const auto answer_at = [&](std::size_t octave, StrengthLook how) {
    search.trials.push_back(look(octaves[octave], how));
    return search.last().answer;
  };
  std::size_t low = 0, high = octaves.size();
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    const StrengthAnswer answer = answer_at(middle, StrengthLook::kFault);
    if (Ends(answer)) return search;
    (answer == StrengthAnswer::kTooWeak ? low : high) =
        answer == StrengthAnswer::kTooWeak ? middle + 1 : middle;
  }
  int in_a_row = 0;
  for (std::size_t octave = low; octave < octaves.size() && octave < low + kMostLooks; ++octave) {
    const StrengthAnswer answer = answer_at(octave, StrengthLook::kAll);
    if (Ends(answer)) return search;
    in_a_row = answer == StrengthAnswer::kPasses ? in_a_row + 1 : 0;
    if (in_a_row < kInARow) continue;
    search.found = octaves[octave - 1];
    search.passed = {octaves[octave - 2], octaves[octave]};
    return search;
  }
  return search;
}

StrengthTrial TryStrength(const Session& session, const std::string& file, double strength,
                          StrengthLook how, int seeds, int cores) {
  if (how == StrengthLook::kFault) seeds = 1;
  StrengthTrial trial{strength, how, StrengthAnswer::kPasses, ""};
  Session here = session;
  const std::string name = LoadScenarios(session, {file}).front().name;
  here.description.calibration.strengths[name] = strength;
  PlanOptions plan;
  plan.each_seed = {kFirstCalibrationSeed, kFirstCalibrationSeed + seeds};
  std::vector<Case> cases = PlanCases(LoadScenarios(here, {file}), here.description, plan);
  if (how == StrengthLook::kFault) {
    for (Case& one : cases) KeepFault(one);
  }
  const Workspace workspace;
  LauncherOptions launcher;
  launcher.target = here.target;
  launcher.cores = cores;
  launcher.output_dir = workspace.path();
  Campaign campaign(cases, here.description, launcher,
                    {.stop_early = true, .fail_fast = true, .keep = KeepRuns::kNone});
  std::string trouble;
  const auto judged = [&](const Verdict& verdict) {
    StrengthAnswer answer = AnswerOf(verdict);
    // Without its remedies no scenario passes.
    const bool shows = how == StrengthLook::kFault && answer == StrengthAnswer::kFails;
    if (shows) answer = StrengthAnswer::kPasses;
    if (verdict.seen_verdict == VerdictKind::kSkip || answer == StrengthAnswer::kPasses) return;
    if (verdict.failure_class == FailureClass::kInfrastructure) trouble = verdict.reason;
    // What is too weak in one seed is too weak, whatever else is wrong in others.
    const bool is_first = trial.answer == StrengthAnswer::kPasses;
    if (!is_first && answer != StrengthAnswer::kTooWeak && answer != StrengthAnswer::kNoControl) {
      return;
    }
    trial.answer = answer;
    // What, and in which arm; not the numbers.
    trial.why =
        verdict.failure_class.text() + " " + verdict.reason.substr(0, verdict.reason.find(':'));
  };
  const CampaignResult result = campaign.Execute(judged, [](int, int, int) {});
  if (!trouble.empty()) throw ConfigurationError("cannot run: " + trouble);
  if (result.interrupted) trial.answer = StrengthAnswer::kInterrupted;
  return trial;
}

}  // namespace trainwreck
