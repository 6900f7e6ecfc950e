#include "harness/matrix/matrix.h"

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <cmath>
#include <utility>

#include "harness/formula/formula.h"

namespace trainwreck {
namespace {

using formula::Truth;

// What formulas may mention in the runs of a case.
formula::Vocabulary VocabularyOf(const Case& one, const TargetDescription& target) {
  formula::Vocabulary vocabulary;
  vocabulary.target = &target;
  for (const ArmPlan& arm : one.arms) {
    if (arm.kind != ArmKind::kControl && arm.kind != ArmKind::kReference) continue;
    vocabulary.arms.insert(arm.name);
    if (arm.kind != ArmKind::kControl || arm.runs.empty()) continue;
    vocabulary.planned_steps = arm.runs.front().steps;
    vocabulary.world_size = arm.runs.front().ranks;
  }
  for (const InjectedFault& fault : one.scenario->faults) vocabulary.fault_ids.insert(fault.id);
  return vocabulary;
}

void Add(Truth truth, Count& count) {
  (truth == Truth::kTrue ? count.holds : truth == Truth::kFalse ? count.fails : count.unknown) += 1;
}

const std::map<int, const RunTrace*>& RunsOf(const ArmTraces& traces, const std::string& arm) {
  static const std::map<int, const RunTrace*> none;
  auto found = traces.find(arm);
  return found != traces.end() ? found->second : none;
}

// The other arms that formulas over the run of this seed may refer to.
formula::Runs RunsFor(const RunTrace& self, int seed, const ArmTraces& traces) {
  formula::Runs runs{.self = &self, .arms = {}};
  for (const char* arm : {"control", "reference"}) {
    const auto& by_seed = RunsOf(traces, arm);
    if (auto found = by_seed.find(seed); found != by_seed.end()) runs.arms[arm] = found->second;
  }
  return runs;
}

// Whether `of` runs make it, when the scenario wants this share of them to agree.
bool Agrees(int of, const Count& count, double share) {
  return count.runs() > 0 && of >= std::ceil(share * count.runs() - 1e-9);
}

bool Separates(const MatrixColumn& a, const MatrixColumn& b, std::size_t symptom) {
  const Count &in_a = a.fault[symptom], &in_b = b.fault[symptom];
  return Agrees(in_a.holds, in_a, a.require_share) && Agrees(in_b.fails, in_b, b.require_share);
}

bool IsUnreadableIn(const MatrixColumn& a, const MatrixColumn& b, std::size_t symptom) {
  const Count &in_a = a.fault[symptom], &in_b = b.fault[symptom];
  return Agrees(in_a.holds, in_a, a.require_share) && in_b.known() == 0;
}

}  // namespace

std::vector<SuiteSymptom> SymptomsOf(const std::vector<Case>& cases) {
  std::vector<SuiteSymptom> symptoms;
  std::set<std::string> seen;
  for (const Case& one : cases) {
    if (!one.skip_reason.empty() || !seen.insert(one.scenario->name).second) continue;
    for (const Check& check : one.scenario->symptoms) {
      symptoms.push_back({one.scenario->name, one.scenario->file, check});
    }
  }
  return symptoms;
}

std::vector<std::string> AskedBy(const std::vector<SuiteSymptom>& symptoms,
                                 const TargetDescription& target) {
  std::set<std::string> names;
  for (const SuiteSymptom& symptom : symptoms) {
    for (std::string& name : symptom.check.formula.asked(target)) names.insert(std::move(name));
  }
  return {names.begin(), names.end()};
}

MatrixColumn ReadColumn(const Case& one, const ArmTraces& traces,
                        const std::vector<SuiteSymptom>& symptoms,
                        const TargetDescription& target) {
  MatrixColumn column;
  column.name = one.name;
  column.scenario = one.scenario->name;
  column.require_share = static_cast<double>(std::max(1, one.scenario->seed_require)) /
                         std::max(1, one.scenario->seed_count);
  const formula::Vocabulary vocabulary = VocabularyOf(one, target);
  const auto& controls = RunsOf(traces, "control");
  std::set<int> alarmed;
  for (const SuiteSymptom& symptom : symptoms) {
    const formula::Formula& formula = symptom.check.formula;
    const bool fits = formula.Check(vocabulary).empty();
    const bool same_seed = formula.needs_same_seed("control", target);
    Count in_fault, in_control;
    for (const auto& [seed, trace] : RunsOf(traces, "fault")) {
      Add(fits ? formula.Evaluate(RunsFor(*trace, seed, traces), target).truth : Truth::kUnknown,
          in_fault);
    }
    for (auto at = controls.begin(); at != controls.end(); ++at) {
      formula::Runs runs = RunsFor(*at->second, at->first, traces);
      runs.arms.erase("control");
      auto next = std::next(at) == controls.end() ? controls.begin() : std::next(at);
      if (next != at && !same_seed) runs.arms["control"] = next->second;
      const Truth truth = fits ? formula.Evaluate(runs, target).truth : Truth::kUnknown;
      Add(truth, in_control);
      if (truth == Truth::kTrue) alarmed.insert(at->first);
    }
    column.fault.push_back(in_fault);
    column.control.push_back(in_control);
    column.is_own.push_back(symptom.scenario == column.scenario &&
                            AppliesTo(symptom.check.when, *one.point));
  }
  column.control_runs = static_cast<int>(controls.size());
  column.alarmed_control_runs = static_cast<int>(alarmed.size());
  return column;
}

double UpperBound(int hits, int trials, double confidence) {
  if (trials <= 0 || hits >= trials) return 1;
  return boost::math::binomial_distribution<>::find_upper_bound_on_p(trials, hits, 1 - confidence);
}

FalsePositives FalsePositivesOf(const Matrix& matrix) {
  FalsePositives all;
  for (std::size_t s = 0; s < matrix.symptoms.size(); ++s) {
    for (std::size_t c = 0; c < matrix.columns.size(); ++c) {
      const Count& count = matrix.columns[c].control[s];
      all.readings += count.holds;
      all.known_readings += count.known();
      if (count.holds > 0) {
        all.cells.push_back({static_cast<int>(s), static_cast<int>(c), count});
      }
    }
  }
  for (const MatrixColumn& column : matrix.columns) {
    all.control_runs += column.control_runs;
    all.alarmed_runs += column.alarmed_control_runs;
  }
  all.upper_bound = UpperBound(all.alarmed_runs, all.control_runs, 0.95);
  return all;
}

std::vector<FaultPair> PairsNotSeparated(const Matrix& matrix) {
  std::vector<FaultPair> pairs;
  for (std::size_t a = 0; a < matrix.columns.size(); ++a) {
    for (std::size_t b = a + 1; b < matrix.columns.size(); ++b) {
      const MatrixColumn &first = matrix.columns[a], &second = matrix.columns[b];
      if (first.scenario == second.scenario) continue;  // one fault, at two points
      bool apart = false, only_unreadable = false;
      for (std::size_t s = 0; s < matrix.symptoms.size() && !apart; ++s) {
        apart = Separates(first, second, s) || Separates(second, first, s);
        only_unreadable |= IsUnreadableIn(first, second, s) || IsUnreadableIn(second, first, s);
      }
      if (!apart) {
        pairs.push_back({static_cast<int>(a), static_cast<int>(b), only_unreadable});
      }
    }
  }
  return pairs;
}

}  // namespace trainwreck
