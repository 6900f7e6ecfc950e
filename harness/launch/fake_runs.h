// Runs of the fake target, for tests and benchmarks of the launcher.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <string>
#include <vector>

#include "harness/launch/launcher.h"

namespace trainwreck {

std::string FakeTargetPath();
Target FakeTarget();  // with a fork server

// A folder that is new, under TEST_TMPDIR or /tmp.
std::string FreshFolder(const std::string& name);

// A run of fake.mode = `mode` with one phase, over the fake target's defaults.
Run FakeRun(const std::string& id, const std::string& mode, const Recipe& changes = {});

// Runs them and gives the results by run id.
std::map<std::string, RunResult> RunFakes(
    const std::list<Run>& runs, Isolation isolation,
    const std::function<void(LauncherOptions&)>& adjust = {},
    const std::function<bool(const Run&, const RunTrace&)>& is_decided = {},
    const std::function<void(int running, int done, int total)>& progress = {});

// Names of the processes whose environment holds `marker`.
std::vector<int> ProcessesWith(const std::string& marker);
// Waits until there is none, at most `seconds`; returns those that remain.
std::vector<int> AwaitNoProcessWith(const std::string& marker, double seconds);

std::vector<Event> EventsNamed(const RunTrace& trace, const std::string& name);

}  // namespace trainwreck
