// The seeds that a comparison lacks where a margin is unknown: which, for which side, and the
// records of those that were run one by one.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/history/comparison.h"
#include "harness/history/record.h"
#include "harness/report/report.h"

namespace trainwreck {

// "nan/x", seeds [first, end) of which are to be run.
struct MissingSeeds {
  std::string scenario;
  int first = 0;
  int end = 0;
};

// How many more seeds each scenario needs where a margin is unknown.
std::map<std::string, int> SeedsWanted(const Comparison& comparison);

// What `side`, which is a or b, is to run: the same seeds for both, as many as the one with fewer
// has and those that are wanted; of these `at_most`, where that is above 0.
std::vector<MissingSeeds> MissingOf(const Record& side, const Record& a, const Record& b,
                                    const std::map<std::string, int>& wanted, int at_most);

// What a person would have to do, and the option that does it.
std::string SeedsHint(const Comparison& comparison);

// Verdicts of one seed each, "nan/x@7", as a record of the seeds that they are of.
Record RecordOfSeeds(const StoredReport& stored);

}  // namespace trainwreck
