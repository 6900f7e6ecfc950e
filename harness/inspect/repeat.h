// A stored run made again, to learn what its trace does not say.
#pragma once

#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "harness/launch/launcher.h"
#include "harness/plan/run.h"
#include "harness/protocol/run_trace.h"
#include "harness/session/session.h"
#include "harness/session/stored_trace.h"

namespace trainwreck {

// Makes one run in a folder that is gone after `finished`. False when it was interrupted; throws
// ConfigurationError when the run could not be made.
bool RepeatAside(const Run& run, const Session& session,
                 const std::function<void(RunResult&)>& finished);

// The run to make again with --again, which the user called `name`. Throws UsageError when its plan
// is not known.
Run RunToRepeat(const StoredTrace& stored, const std::string& name);

// The trace of a stored run that is made again with more of its signals and events recorded; `name`
// is what the user called it. Tells `said` whether what was stored has the same bits. Empty when
// interrupted; throws as RunToRepeat.
std::optional<RunTrace> RecordAgain(const StoredTrace& stored, const std::string& name,
                                    const std::vector<std::string>& more, const Session& session,
                                    std::ostream& said);

// The first difference between a stored trace and that of a run which recorded more: only the
// signals that the stored one has count. Empty: the same bits.
std::string DifferenceFrom(const RunTrace& stored, RunTrace again);

}  // namespace trainwreck
