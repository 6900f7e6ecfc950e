// A history in a file of SQLite. It is in WAL mode, so readers never wait.
#pragma once

#include <memory>
#include <string>

#include "harness/history/database.h"

struct sqlite3;

namespace trainwreck {

class SqliteDatabase : public Database {
 public:
  // Creates the file where it is missing. Waits for other writers for `busy_ms` at most.
  SqliteDatabase(const std::string& path, int busy_ms);
  ~SqliteDatabase() override;
  SqliteDatabase(const SqliteDatabase&) = delete;
  SqliteDatabase& operator=(const SqliteDatabase&) = delete;

  const std::string& name() const override { return path_; }
  std::unique_ptr<Prepared> Prepare(const std::string& sql) override;
  void Execute(const std::string& sql) override;
  void Begin(Access access) override;
  void Rollback() noexcept override;
  std::int64_t Version() override;
  void CreateTables(const std::string& sql, int version) override;
  bool Has(const std::string& table_or_index) override;

 private:
  std::string path_;
  int busy_ms_;
  sqlite3* handle_ = nullptr;
};

}  // namespace trainwreck
