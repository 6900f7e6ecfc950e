// The seeds that a comparison lacks where a margin is unknown: which seeds, for which side, and
// records made of seeds that were run one by one.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/history/comparison.h"
#include "harness/history/record.h"
#include "harness/report/report.h"

namespace trainwreck {

// Seeds to run: [first, end) of the scenario "nan/x".
struct MissingSeeds {
  std::string scenario;
  int first = 0;
  int end = 0;
};

// How many more seeds each scenario needs where a margin is unknown.
std::map<std::string, int> SeedsWanted(const Comparison& comparison);

// The seeds that `side`, which is a or b, has to run. Both sides get the same seeds: as many as the
// side with fewer has, and the wanted ones; at most `at_most` of these, where that is above 0.
std::vector<MissingSeeds> MissingOf(const Record& side, const Record& a, const Record& b,
                                    const std::map<std::string, int>& wanted, int at_most);

// What the user would have to do, and the option that does it.
std::string SeedsHint(const Comparison& comparison);

// Turns verdicts of one seed each, "nan/x@7", into a record of these seeds.
Record RecordOfSeeds(const StoredReport& stored);

}  // namespace trainwreck
