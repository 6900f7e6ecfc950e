// The picture of a case: what report.html draws, as one line of JSON of a bounded size.
// Numbers that reports state come from verdicts.json; a picture has only curves and their like.
//
//   verdict.picture = PictureOf(results, target, {.bytes = 2000 * runs});
//
//   { "case": "nan/x", "steps": 96, "units": {"step_s": "s"}, "log": ["loss", ..],
//     "min_margins": {"blows_up": [5, "steps"]},
//     "arms": [ {"arm": "fault", "kind": "fault", "ranks": 1,
//                "faults": ["bad_sample: data.corrupt_sample (samples [137]), from step 3"],
//                "changes": [["optimizer.lr", "0.1", "1"], ..],  key, in control, here
//                "command": "trainwreck run .. --arm fault --seed ",
//                "sketches": {"blows_up": [[signal, arm, rank, begin, end, from, to, op,
//                                           curve of the threshold | null]]},
//                "runs": [ {"seed": 0, "curves": {"loss": <curve>, "loss@1": .., "x{head}": ..},
//                           "events": [[step, rank, name, text], ..], "events_left_out": 3} ],
//                "calls": {"seed": 0, "end": "..",
//                          "ranks": [[[call, step, op, began_s, ended_s | null, state], ..], ..]}
//              } ],
//     "left_out": ["grad_norm@1", ..] }
//
// A curve is as in curve.h. "calls" are the last collectives of one run of several ranks, in seconds
// since its ranks began.
#pragma once

#include <cstddef>
#include <string>

#include "harness/judge/verdict.h"

namespace trainwreck {

struct PictureOptions {
  std::size_t bytes = 0;  // of the whole case; the loss is there in any case
};

// The results must still have their series, and the folders of runs must still be there.
std::string PictureOf(const CaseResults& results, const TargetDescription& target,
                      const PictureOptions& options);

// For each run of an invocation, so that its page stays within 8 MB: what the tables of its cases
// leave, and at most 5.5 MB. A run has at least 250 bytes: more than 20,000 runs or 450 cases may
// make a larger file.
std::size_t PictureBytesOfRun(int runs, std::size_t cases);

}  // namespace trainwreck
