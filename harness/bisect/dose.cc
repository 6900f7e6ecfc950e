#include "harness/bisect/dose.h"

#include <cmath>
#include <cstdio>
#include <numeric>

namespace trainwreck {

std::string DoseText(double dose) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", dose);
  return text;
}

std::vector<double> SpreadDoses(double from, double to, int levels, bool is_linear, bool is_int) {
  const bool is_log = from > 0 && to > 0 && !is_linear;
  std::vector<double> doses;
  for (int i = 0; i < levels; ++i) {
    const double share = static_cast<double>(i) / (levels - 1);
    double dose = is_log ? from * std::pow(to / from, share) : from + (to - from) * share;
    if (i + 1 == levels) dose = to;
    if (is_int) dose = std::round(dose);
    if (doses.empty() || doses.back() != dose) doses.push_back(dose);
  }
  return doses;
}

void DoseQuestion::Take(const Verdict& verdict, int dose) {
  bool is_asked = false, is_broken = false, is_unknown = false;
  for (const CheckResult& check : verdict.checks) {
    const bool is_its_own =
        is_remedy ? check.arm == name : check.arm == "fault" && check.check == name;
    if (!is_its_own || check.check == kFiredCheck || check.check == kSeedsCheck) continue;
    is_asked = true;
    const bool is_undecided = check.failure_class == FailureClass::kUndecided;
    is_broken |= !check.failure_class.empty() && !is_undecided;
    is_unknown |= is_undecided || check.failure_class == FailureClass::kInfrastructure;
  }
  if (!is_asked || (is_unknown && !(is_remedy && is_broken))) return;
  const bool yes = is_remedy ? is_broken : !is_broken;
  search.Observe(dose, yes);
  seen[dose].first += yes;
  ++seen[dose].second;
}

DoseRange RangeOfDoses(const Search& search, double confidence, const std::vector<double>& doses) {
  const std::vector<double>& posterior = search.posterior();
  const int steps = static_cast<int>(doses.size()) - 1;
  for (int width = 1; width < steps; ++width) {
    for (int first = 1; first + width - 1 <= steps; ++first) {
      const double held =
          std::accumulate(posterior.begin() + first, posterior.begin() + first + width, 0.0);
      if (held >= confidence) return std::pair(doses[first - 1], doses[first + width - 1]);
    }
  }
  return {};
}

std::string LimitText(const DoseQuestion& question, const Step& step,
                      const std::vector<double>& doses, const DoseRange& range) {
  if (step.kind == Step::kCulprit) {
    return DoseText(doses[question.is_remedy ? step.commit - 1 : step.commit]);
  }
  if (step.kind == Step::kUndecided) {
    return range ? DoseText(range->first) + " to " + DoseText(range->second) : "undecided";
  }
  int yes = 0, all = 0;
  for (const auto& [dose, count] : question.seen) yes += count.first, all += count.second;
  if (yes == 0) {
    return question.is_remedy ? "> " + DoseText(doses.back()) : "none: it never shows";
  }
  if (yes == all) {
    return question.is_remedy ? "none: it never holds" : "< " + DoseText(doses.front());
  }
  return "none: no dose makes a difference";
}

}  // namespace trainwreck
