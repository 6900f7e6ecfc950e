// The option --html of verbs, and the page of their report.
#pragma once

#include <string>

#include "harness/cli/verb.h"
#include "harness/protocol/json.h"

namespace trainwreck {

void DeclarePage(VerbArguments& arguments, std::string& path);

// Before anything is run. An empty path: no page is wanted.
void CheckPage(const std::string& path);

// Writes the page and says so, unless the path is empty.
void WritePage(const std::string& path, const Json& report);

}  // namespace trainwreck
