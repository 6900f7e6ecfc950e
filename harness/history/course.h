// The course of a case over the recorded runs: its margins, step time and memory in each, and which
// commit moved them. Neighbours are compared as `compare` does (comparison.h); clean runs of one
// commit and one program that follow each other are one point.
//
//   const Json courses = CoursesOf(records);
#pragma once

#include <vector>

#include "harness/history/record.h"
#include "harness/protocol/json.h"

namespace trainwreck {

// A course for each case of the records, which are in the order of their runs:
//
//   [ {"case": "nan/x",
//      "points": [ {"run": 3, "runs": [2, 3], "started_utc": "..", "commit": "..", "dirty": false,
//                   "program": "..", "verdict": "pass", "class": "", "step_seconds": 0.001 | null,
//                   "peak_memory_bytes": 1e8 | null,
//                   "margins": [ {"arm": "fault", "check": "blows_up", "unit": "octaves", "seeds": 5,
//                                 "median": 1.5, "least": 1.25, "most": 2} ]} ],
//      "moves": [ {"from": 1, "to": 3, "commit": "..", "cause": "code", "worse": true,
//                  "changes": [ {"kind": "margin", "unit": "octaves", "text": "..",
//                                "worse": true} ]} ]} ]
//
// "kind" is verdict, check, margin, bits, step_time or memory; only margins have a unit. A step time counts as moved when its
// interval lies outside of 0.8 to 1.25, a memory outside of 0.99 to 1.01.
Json CoursesOf(const std::vector<Record>& oldest_first);

}  // namespace trainwreck
