// A history that a team shares, on a server of PostgreSQL (10 or later). Its tables are in the
// schema `trainwreck` of the database, so they collide with nothing else there.
//
// libpq is opened when the first history of this kind is, and no sooner: nobody else needs it.
#pragma once

#include <memory>
#include <string>

#include "harness/history/database.h"

namespace trainwreck {

struct Libpq;

// Whether a history's name is a server's: postgresql://[USER@]HOST[:PORT]/DATABASE, or postgres://.
bool IsServer(const std::string& history);

class PostgresDatabase : public Database {
 public:
  // Waits for other writers for `busy_ms` at most. Refuses a password in `url`, which would be seen
  // in the list of processes, in records and in reports: libpq finds it in ~/.pgpass or PGPASSWORD.
  PostgresDatabase(const std::string& url, int busy_ms);
  ~PostgresDatabase() override;
  PostgresDatabase(const PostgresDatabase&) = delete;
  PostgresDatabase& operator=(const PostgresDatabase&) = delete;

  const std::string& name() const override { return url_; }
  std::unique_ptr<Prepared> Prepare(const std::string& sql) override;
  void Execute(const std::string& sql) override;
  void Begin(Access access) override;
  void Rollback() noexcept override;
  std::int64_t Version() override;
  void CreateTables(const std::string& sql, int version) override;
  bool Has(const std::string& table_or_index) override;

 private:
  std::string url_;
  const Libpq& libpq_;
  void* connection_ = nullptr;
};

}  // namespace trainwreck
