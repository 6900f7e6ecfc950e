// A stored run made again, to learn what its trace does not say.
#pragma once

#include <functional>
#include <string>

#include "harness/launch/launcher.h"
#include "harness/plan/run.h"
#include "harness/protocol/run_trace.h"
#include "harness/session/session.h"

namespace trainwreck {

// Makes one run in a folder that is gone after `finished`. False when it was interrupted; throws
// ConfigurationError when the run could not be made.
bool RepeatAside(const Run& run, const Session& session,
                 const std::function<void(RunResult&)>& finished);

// The first difference between a stored trace and that of a run which recorded more: only the
// signals that the stored one has count. Empty: the same bits.
std::string DifferenceFrom(const RunTrace& stored, RunTrace again);

}  // namespace trainwreck
