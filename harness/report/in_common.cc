#include "harness/report/in_common.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <tuple>
#include <utility>

#include "harness/text/words.h"

namespace trainwreck {
namespace {

constexpr std::size_t kSuspectsShown = 3;

bool WentWrong(const Verdict& verdict) {
  return verdict.verdict == VerdictKind::kFail || verdict.verdict == VerdictKind::kError;
}

std::vector<const Verdict*> Failing(const std::vector<Verdict>& verdicts) {
  std::vector<const Verdict*> failing;
  for (const Verdict& verdict : verdicts) {
    if (WentWrong(verdict)) failing.push_back(&verdict);
  }
  return failing;
}

// The case's suspects, each once; the first suspect of its first check comes before all others.
std::vector<std::string> SuspectsOf(const Verdict& verdict) {
  std::vector<std::string> suspects;
  for (const CheckResult& check : verdict.checks) {
    if (check.failure_class.empty()) continue;
    for (const std::string& suspect : check.suspects) {
      if (std::count(suspects.begin(), suspects.end(), suspect) == 0) suspects.push_back(suspect);
    }
  }
  return suspects;
}

struct Weight {
  int first = 0;
  int any = 0;
};

std::vector<std::pair<std::string, Weight>> Ranked(const std::vector<Verdict>& verdicts) {
  std::map<std::string, Weight> weights;
  for (const Verdict* verdict : Failing(verdicts)) {
    const std::vector<std::string> suspects = SuspectsOf(*verdict);
    for (const std::string& suspect : suspects) ++weights[suspect].any;
    if (!suspects.empty()) ++weights[suspects.front()].first;
  }
  std::vector<std::pair<std::string, Weight>> ranked(weights.begin(), weights.end());
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) {
    return std::tie(a.second.first, a.second.any) > std::tie(b.second.first, b.second.any);
  });
  return ranked;
}

std::string Cases(int count) { return std::to_string(count) + (count == 1 ? " case" : " cases"); }

std::string KindOf(const Verdict& verdict, const std::string& arm) {
  for (const ArmSummary& summary : verdict.arms) {
    if (summary.arm == arm) return ToString(summary.kind);
  }
  return arm;
}

// "'learns' in control (control_unhealthy)", with the number of cases.
std::pair<std::string, int> MostFrequentClaim(const std::vector<const Verdict*>& failing) {
  std::map<std::string, int> counts;
  for (const Verdict* verdict : failing) {
    std::vector<std::string> claims;
    for (const CheckResult& check : verdict->checks) {
      if (check.failure_class.empty()) continue;
      claims.push_back("'" + check.check + "' in " + KindOf(*verdict, check.arm) + " (" +
                       check.failure_class.text() + ")");
    }
    std::sort(claims.begin(), claims.end());
    claims.erase(std::unique(claims.begin(), claims.end()), claims.end());
    for (const std::string& claim : claims) ++counts[claim];
  }
  std::pair<std::string, int> most;
  for (const auto& [claim, count] : counts) {
    if (count > most.second) most = {claim, count};
  }
  return most;
}

// "step 3: ..." comes before "step 12: ...".
int StepOf(const std::string& place) {
  const std::size_t at = place.find("step ");
  return at == std::string::npos ? -1 : std::atoi(place.c_str() + at + 5);
}

}  // namespace

std::vector<std::string> Suspects(const std::vector<Verdict>& verdicts) {
  std::vector<std::string> names;
  for (const auto& [name, weight] : Ranked(verdicts)) names.push_back(name);
  return names;
}

std::vector<std::string> InCommon(const std::vector<Verdict>& verdicts) {
  const std::vector<const Verdict*> failing = Failing(verdicts);
  if (failing.size() < 2) return {};
  std::vector<std::string> lines;
  const int count = static_cast<int>(failing.size());
  const auto [claim, cases] = MostFrequentClaim(failing);
  if (cases > 1) {
    lines.push_back(std::to_string(cases) + " of the " + Cases(count) +
                    " that went wrong have in common: " + claim);
  }
  std::string parts;
  const auto ranked = Ranked(verdicts);
  for (std::size_t i = 0; i < std::min(ranked.size(), kSuspectsShown); ++i) {
    parts += (i == 0 ? "" : ", ") + ranked[i].first + " (" + Cases(ranked[i].second.any) + ")";
  }
  if (!parts.empty()) lines.push_back("look first at: " + parts);
  const CheckResult* earliest = nullptr;
  const Verdict* of_case = nullptr;
  for (const Verdict* verdict : failing) {
    for (const CheckResult& check : verdict->checks) {
      if (check.place.empty()) continue;
      if (earliest != nullptr && StepOf(earliest->place) <= StepOf(check.place)) continue;
      earliest = &check;
      of_case = verdict;
    }
  }
  if (earliest != nullptr) {
    lines.push_back("earliest difference, " + of_case->case_name + ", " + earliest->arm + ": " +
                    earliest->place);
  }
  return lines;
}

}  // namespace trainwreck
