// The command line, parsed: the only place that knows of CLI11.
#pragma once

#include <optional>

#include "harness/session/options.h"

namespace trainwreck {

// Fills in `options`. A value means that all is said already (help, version, a wrong command line,
// which got its message on stderr): leave with that exit status.
std::optional<int> ParseArguments(int argc, const char* const* argv, Options& options);

}  // namespace trainwreck
