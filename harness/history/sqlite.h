// A history in a file of SQLite. It is in WAL mode, so readers never wait.
#pragma once

#include <memory>
#include <string>

#include "harness/history/database.h"

namespace trainwreck {

// Creates the file where it is missing. Its calls wait for other writers for `busy_ms` at most.
std::unique_ptr<Database> OpenSqlite(const std::string& path, int busy_ms);

}  // namespace trainwreck
