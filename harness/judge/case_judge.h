// The judge of one case at work, for the files of JudgeArms (arm_judge.h): every claim of every arm
// and what all arms owe, each with its seeds, before it is known which seeds are lost.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/formula/formula.h"
#include "harness/judge/arm_judge.h"
#include "harness/judge/verdict.h"

namespace trainwreck {

// How the seeds of one check fall out.
struct Tally {
  std::vector<int> counted;  // the others are not asked about it
  std::vector<int> agree, disagree, unknown;
  std::vector<int> weak, unclear;  // of those that agree: by less than min_margin, perhaps so
};

// A check with its seeds, before it is known how many of them may be lost.
struct JudgedCheck {
  CheckResult result;
  Tally tally;
  FailureClass broken_class;  // where a seed disagrees
  FailureClass weak_class;    // where it holds by less than min_margin
  bool is_settled = false;    // no seed of it may be lost: `result` says it all
};

// The seeds of a case by whether every claim of every arm holds in them. Arms of a seed belong
// together, so a seed is lost as a whole: a remedy cannot fail where the symptom was shown while
// the symptom is missing in the seeds where the remedy holds.
struct LostSeeds {
  std::set<int> broken;  // some claim does not hold
  std::set<int> open;    // none is broken, but some is not known to hold
  int allowed = 0;

  bool too_many_broken() const { return static_cast<int>(broken.size()) > allowed; }
  bool too_many() const { return static_cast<int>(broken.size() + open.size()) > allowed; }
  std::vector<int> Sorted() const {
    std::set<int> seeds = broken;
    seeds.insert(open.begin(), open.end());
    return {seeds.begin(), seeds.end()};
  }
  bool IsLost(int seed) const { return broken.contains(seed) || open.contains(seed); }
};

class CaseJudge {
 public:
  CaseJudge(const CaseResults& results, const TargetDescription& target);
  ArmsJudged JudgeAll();

 private:
  int allowed() const { return plan_.seed_count - plan_.seed_require; }
  const RunResult* FindRun(const std::string& arm, int seed) const;
  formula::Runs RunsOf(const ArmPlan& arm, int seed) const;
  formula::Reading Read(const Check& check, const ArmPlan& arm, int seed) const;
  // Why a reading of the check would say nothing of the fault: in a run that it reads, a fault was
  // kept from acting. Null: it was in none.
  const std::string* FindSilenced(const Check& check, const ArmPlan& arm, int seed) const;
  const std::string* FindSilenced(const std::string& arm, int seed) const;
  void FindAllSilenced();
  void ReadFaultArm();
  // Whether the fault arm shows what the check is about; an invariant by not holding.
  bool IsShown(const Claim& claim, int seed) const;
  JudgedCheck JudgeClaim(const ArmPlan& arm, const Claim& claim) const;

  // What arms owe besides their claims (arm_duties.cc).
  std::vector<JudgedCheck> JudgeFaults(const ArmPlan& arm) const;
  JudgedCheck JudgeFired(const ArmPlan& arm, const InjectedFault& fault, bool expected) const;
  bool FiredIn(const ArmPlan& arm, const InjectedFault& fault, int seed, std::string* seen) const;
  bool SilencedIn(const ArmPlan& arm, const InjectedFault& fault, int seed,
                  std::string* seen) const;
  bool HasToBeSound(const ArmPlan& arm) const;
  JudgedCheck JudgeSignals(const ArmPlan& arm) const;
  std::vector<JudgedCheck> JudgeInvariants(const ArmPlan& arm, const std::vector<Claim>& claims);
  JudgedCheck ReadInvariant(const ArmPlan& arm, const StandingCheck& standing);
  void FindBroken(const StandingCheck& standing, JudgedCheck& judged) const;
  InvariantCount& CountOf(const std::string& invariant);
  std::vector<JudgedCheck> JudgeEnds(const ArmPlan& arm, const std::vector<Claim>& claims,
                                     const std::vector<JudgedCheck>& judged) const;
  bool EndIsClaimed(const ArmPlan& arm, const std::vector<Claim>& claims,
                    const std::vector<JudgedCheck>& judged, const RunResult& run, int seed) const;
  JudgedCheck Finding(const ArmPlan& arm, const char* check, FailureClass failure_class,
                      const std::vector<int>& seeds) const;
  JudgedCheck UnclaimedEnd(const ArmPlan& arm, FailureClass failure_class,
                           const std::vector<int>& seeds) const;
  JudgedCheck Restarted(const ArmPlan& arm, const std::vector<int>& seeds) const;
  JudgedCheck BeganAnew(const ArmPlan& arm, const std::vector<int>& seeds) const;

  // What is said of a check in the end (settling.cc).
  LostSeeds Lost(const std::vector<JudgedCheck>& all) const;
  void Settle(const LostSeeds& lost, JudgedCheck& judged) const;
  void FindPlace(int seed, CheckResult& result) const;
  void SetRerun(const std::string& arm, int seed, CheckResult& result) const;

  const CaseResults& results_;
  const Case& plan_;
  const TargetDescription& target_;
  std::deque<RunTrace> stopped_;
  std::map<int, std::map<std::string, const RunTrace*>> traces_;  // seed -> arm -> trace
  std::map<std::pair<std::string, int>, std::string> silenced_;   // why, by arm and seed
  std::map<std::pair<std::string, int>, bool> shown_;  // by symptom and seed, in the fault arm
  std::map<std::pair<std::string, int>, formula::Truth> with_fault_;  // of invariants, likewise
  std::vector<InvariantCount> invariants_;
};

// Signed so that positive agrees with the claim; the end of the interval that speaks against it.
std::optional<double> SignedMargin(const formula::Reading& reading, formula::Unit unit,
                                   bool expected);
// What the margins of a check are compared in.
formula::Unit UnitOf(const Check& check, const std::vector<formula::Reading>& readings);
int WorstSeed(const std::vector<int>& seeds, const CheckResult& result);  // -1: of none
std::string SeenAt(const CheckResult& result, int seed);  // "seed 3: false (step 12)"

}  // namespace trainwreck
