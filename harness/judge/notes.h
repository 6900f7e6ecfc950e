// Notes: strange facts about runs that need no scenario to be strange, such as a loss of exactly 0,
// a signal that is frozen bit for bit, a NaN beside finite signals, a value below its floor, exit
// code 0 after NaN, steps that are missing. Notes change no verdict: arms that are broken on
// purpose have them too.
#pragma once

#include <string>
#include <vector>

#include "harness/judge/verdict.h"

namespace trainwreck {

// The notes of a case in the order of its arms. Each arm has at most one note of each kind, with
// the first seed that shows it.
std::vector<Note> FindNotes(const CaseResults& results, const TargetDescription& target);

// The notes of one run. `arm`, `kind` and `seed` are not filled in.
std::vector<Note> NotesOf(const RunResult& run, const TargetDescription& target);

}  // namespace trainwreck
