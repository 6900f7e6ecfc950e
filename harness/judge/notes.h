// What is strange about runs and needs no scenario to be so: a loss of exactly 0, a signal that is
// frozen bit for bit, a NaN beside finite signals, a value below its floor, exit code 0 after NaN,
// steps that are missing. Notes change no verdict: arms that are broken on purpose have them too.
#pragma once

#include <string>
#include <vector>

#include "harness/judge/verdict.h"

namespace trainwreck {

// In the order of arms; of each kind one note an arm, with the first seed that shows it.
std::vector<Note> FindNotes(const CaseResults& results, const TargetDescription& target);

// Of one run; `arm`, `kind` and `seed` stay as they are.
std::vector<Note> NotesOf(const RunResult& run, const TargetDescription& target);

}  // namespace trainwreck
