#include "harness/history/missing_seeds.h"

#include <algorithm>
#include <utility>

namespace trainwreck {
namespace {

int SeedsOf(const Record& side, const std::string& scenario) {
  int seeds = 0;
  for (const CaseRecord& one : side.cases) {
    if (one.scenario == scenario) seeds = std::max(seeds, one.seeds());
  }
  return seeds;
}

}  // namespace

std::map<std::string, int> SeedsWanted(const Comparison& comparison) {
  std::map<std::string, int> missing;
  for (const MarginChange& change : comparison.margins) {
    if (!change.counts() || change.result.answer != Answer::kUnknown) continue;
    for (const CaseRecord& one : comparison.a.cases) {
      if (one.name != change.case_name) continue;
      int& seeds = missing[one.scenario];
      seeds = std::max(seeds, change.result.more_seeds);
    }
  }
  return missing;
}

std::vector<MissingSeeds> MissingOf(const Record& side, const Record& a, const Record& b,
                                    const std::map<std::string, int>& wanted, int at_most) {
  std::vector<MissingSeeds> list;
  for (const auto& [scenario, more] : wanted) {
    const int has_a = SeedsOf(a, scenario), has_b = SeedsOf(b, scenario);
    const int end = std::min(has_a, has_b) + (at_most > 0 ? std::min(more, at_most) : more);
    const int first = SeedsOf(side, scenario);
    if (first < end) list.push_back({scenario, first, end});
  }
  return list;
}

std::string SeedsHint(const Comparison& comparison) {
  int seeds = 0;
  std::string names;
  for (const auto& [scenario, more] : SeedsWanted(comparison)) {
    const int has = std::min(SeedsOf(comparison.a, scenario), SeedsOf(comparison.b, scenario));
    seeds = std::max(seeds, has + more);
    names += " " + scenario;
  }
  return "seeds are missing: 'trainwreck compare --more-seeds' with the same words runs them; by "
         "hand, with the program of A and with that of B: trainwreck run" +
         names + " --seeds " + std::to_string(seeds);
}

Record RecordOfSeeds(const StoredReport& stored) {
  Record record = MakeRecord(stored.verdicts, stored.info);
  for (CaseRecord& one : record.cases) {
    const std::size_t at = one.name.rfind('@');
    if (at == std::string::npos) continue;
    const int seed = std::stoi(one.name.substr(at + 1));
    one.name.resize(at);
    for (MarginRecord& margin : one.margins) {
      std::map<int, double> by_seed;
      for (const auto& [zero, value] : margin.by_seed) by_seed[zero + seed] = value;
      margin.by_seed = std::move(by_seed);
    }
    for (TrainingRecord& training : one.trainings) training.seed += seed;
  }
  return record;
}

}  // namespace trainwreck
