// The options of `bisect`.
#pragma once

#include <string>
#include <vector>

#include "harness/session/options.h"

namespace CLI {
class App;
}

namespace trainwreck {

// Without those that all verbs have.
CLI::App* AddBisect(CLI::App& app, Options& options);

// Cuts a command line of `bisect` off at its `--`; what stood after it.
std::vector<std::string> TakePaths(const std::string& verb, int& argc, const char* const* argv);

}  // namespace trainwreck
