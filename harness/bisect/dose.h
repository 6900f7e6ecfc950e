// How strong a fault must be before a symptom shows, or a remedy fails: what runs at each dose say,
// and where the search for the first dose stands. It runs nothing; dose_search.h does.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/bisect/search.h"
#include "harness/judge/verdict.h"

namespace trainwreck {

// From the weakest to the strongest, each once; even steps of the logarithm where both ends are
// positive, unless they are to be linear. The last one is `to` itself.
std::vector<double> SpreadDoses(double from, double to, int levels, bool is_linear, bool is_int);

// What is looked for: the first dose at which a symptom shows, or at which a remedy fails.
struct DoseQuestion {
  bool is_remedy = false;
  std::string name;
  Search search;
  std::map<int, std::pair<int, int>> seen;  // dose -> runs with it, all runs

  // A symptom shows when its claim about the fault arm holds, min_margin included; a remedy fails
  // when a claim about its arm does not. What is undecided, or was not run, is no answer.
  void Take(const Verdict& verdict, int dose);
};

// The fewest neighbouring steps between two doses that hold the answer at this confidence, as the
// weakest and the strongest dose. Nothing where "no step at all" cannot be excluded.
using DoseRange = std::optional<std::pair<double, double>>;
DoseRange RangeOfDoses(const Search& search, double confidence, const std::vector<double>& doses);

// The dose that is asked for, or why there is none: "2.5", "1 to 4", "none: it never shows".
std::string LimitText(const DoseQuestion& question, const Step& step,
                      const std::vector<double>& doses, const DoseRange& range);

std::string DoseText(double dose);  // four digits

}  // namespace trainwreck
