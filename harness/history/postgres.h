// A history that a team shares, on a server of PostgreSQL (10 or later). Its tables are in the
// schema `trainwreck` of the database, so they collide with nothing else there.
//
// libpq is opened when the first history of this kind is, and no sooner: nobody else needs it.
#pragma once

#include <memory>
#include <string>

#include "harness/history/database.h"

namespace trainwreck {

// Whether a history's name is a server's: postgresql://[USER@]HOST[:PORT]/DATABASE, or postgres://.
bool IsServer(const std::string& history);

// Its calls wait for other writers for `busy_ms` at most. Refuses a password in `url`, which would
// be seen in the list of processes, in records and in reports: libpq finds it in ~/.pgpass or
// PGPASSWORD.
std::unique_ptr<Database> OpenPostgres(const std::string& url, int busy_ms);

}  // namespace trainwreck
