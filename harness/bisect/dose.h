// How strong a fault must be before a symptom shows, or a remedy fails. Holds the results of the
// runs at each dose, and the state of the search for the first such dose. dose_search.h makes the
// runs.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/bisect/search.h"
#include "harness/judge/verdict.h"

namespace trainwreck {

// The doses from the weakest to the strongest, each once: even steps of the logarithm where both
// ends are positive, unless `is_linear`. The last one is `to` itself.
std::vector<double> SpreadDoses(double from, double to, int levels, bool is_linear, bool is_int);

// One question: the first dose at which a symptom shows, or at which a remedy fails.
struct DoseQuestion {
  bool is_remedy = false;
  std::string name;
  Search search;
  std::map<int, std::pair<int, int>> seen;  // dose -> runs with it, all runs

  // A symptom shows when its claim about the fault arm holds, min_margin included; a remedy fails
  // when a claim about its arm does not. An arm that is undecided, or was not run, gives no answer.
  void Take(const Verdict& verdict, int dose);
};

// The fewest neighbouring steps between two doses that hold the answer at this confidence, as the
// weakest and the strongest dose. Nothing where "no step at all" cannot be excluded.
using DoseRange = std::optional<std::pair<double, double>>;
DoseRange RangeOfDoses(const Search& search, double confidence, const std::vector<double>& doses);

// The answer in words: the dose, or why there is none: "2.5", "1 to 4", "none: it never shows".
std::string LimitText(const DoseQuestion& question, const Step& step,
                      const std::vector<double>& doses, const DoseRange& range);

std::string DoseText(double dose);  // four digits

}  // namespace trainwreck
