#include "harness/history/sqlite.h"

#include <sqlite3.h>

namespace trainwreck {
namespace {

constexpr int kApplicationId = 0x54524b31;  // "TRK1", for file(1) and for us
constexpr int kBetweenTriesMs = 10;

[[noreturn]] void Fail(const std::string& path, sqlite3* handle, int code) {
  const int kind = code & 0xff;
  if (kind == SQLITE_NOTADB) {
    throw DatabaseError(path +
                        " is no history of trainwreck: name another file with --history FILE, or "
                        "--history none");
  }
  const std::string what = handle != nullptr ? sqlite3_errmsg(handle) : sqlite3_errstr(code);
  throw DatabaseError(path + ": " + what +
                      (kind == SQLITE_CORRUPT
                           ? " (the file is damaged: move it away, and the next run makes a new "
                             "one; 'sqlite3 FILE .recover' saves what can be read)"
                           : "; --history FILE names another file"));
}

class SqliteStatement : public Prepared {
 public:
  SqliteStatement(sqlite3* handle, const std::string& path, const std::string& sql)
      : handle_(handle), path_(path) {
    Check(sqlite3_prepare_v2(handle, sql.c_str(), static_cast<int>(sql.size()), &statement_,
                             nullptr));
  }
  ~SqliteStatement() override { sqlite3_finalize(statement_); }
  SqliteStatement(const SqliteStatement&) = delete;
  SqliteStatement& operator=(const SqliteStatement&) = delete;

  void BindText(const std::string& text) override {
    Check(sqlite3_bind_text(statement_, ++bound_, text.data(), static_cast<int>(text.size()),
                            SQLITE_TRANSIENT));
  }
  void BindNumber(double number) override {
    Check(sqlite3_bind_double(statement_, ++bound_, number));
  }
  void BindInteger(std::int64_t number) override {
    Check(sqlite3_bind_int64(statement_, ++bound_, number));
  }
  void BindNull() override { Check(sqlite3_bind_null(statement_, ++bound_)); }

  bool Step() override {
    const int code = sqlite3_step(statement_);
    if (code != SQLITE_ROW && code != SQLITE_DONE) Fail(path_, handle_, code);
    return code == SQLITE_ROW;
  }
  void Reset() override {
    sqlite3_reset(statement_);
    sqlite3_clear_bindings(statement_);
    bound_ = 0;
  }

  std::string Text(int column) const override {
    const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
    const int size = sqlite3_column_bytes(statement_, column);
    return text == nullptr ? "" : std::string(text, static_cast<std::size_t>(size));
  }
  double Number(int column) const override { return sqlite3_column_double(statement_, column); }
  std::int64_t Integer(int column) const override {
    return sqlite3_column_int64(statement_, column);
  }

 private:
  void Check(int code) {
    if (code != SQLITE_OK) Fail(path_, handle_, code);
  }
  sqlite3* handle_;
  const std::string& path_;
  sqlite3_stmt* statement_ = nullptr;
  int bound_ = 0;
};

class SqliteDatabase : public Database {
 public:
  SqliteDatabase(const std::string& path, int busy_ms);
  ~SqliteDatabase() override;

  const std::string& name() const override { return path_; }
  std::unique_ptr<Prepared> Prepare(const std::string& sql) override;
  void Execute(const std::string& sql) override;
  void Begin(Access access) override;
  void Rollback() noexcept override;
  std::int64_t Version() override;
  void CreateTables(const std::string& sql, int version) override;
  void AddTables(const std::string& sql) override { Execute(sql); }
  bool Has(const std::string& table_or_index) override;

 private:
  std::string path_;
  int busy_ms_;
  sqlite3* handle_ = nullptr;
};

SqliteDatabase::SqliteDatabase(const std::string& path, int busy_ms)
    : path_(path), busy_ms_(busy_ms) {
  const int code =
      sqlite3_open_v2(path.c_str(), &handle_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
  if (code != SQLITE_OK) {
    sqlite3_close(handle_);
    Fail(path, nullptr, code);
  }
  sqlite3_extended_result_codes(handle_, 1);
  sqlite3_busy_timeout(handle_, busy_ms);
}

SqliteDatabase::~SqliteDatabase() { sqlite3_close(handle_); }

std::unique_ptr<Prepared> SqliteDatabase::Prepare(const std::string& sql) {
  return std::make_unique<SqliteStatement>(handle_, path_, sql);
}

void SqliteDatabase::Execute(const std::string& sql) {
  const int code = sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) Fail(path_, handle_, code);
}

void SqliteDatabase::Begin(Access access) {
  Execute(access == Access::kRead ? "BEGIN DEFERRED" : "BEGIN IMMEDIATE");
}

void SqliteDatabase::Rollback() noexcept {
  sqlite3_exec(handle_, "ROLLBACK", nullptr, nullptr, nullptr);
}

// In one transaction: another writer may be making the tables at this moment.
std::int64_t SqliteDatabase::Version() {
  Transaction transaction(*this, Access::kRead);
  const bool has_tables = QueryInteger("SELECT count(*) FROM sqlite_master") > 0;
  if (has_tables && QueryInteger("PRAGMA application_id") != kApplicationId) {
    throw DatabaseError(path_ +
                        " is another program's database: name another file with --history FILE");
  }
  return QueryInteger("PRAGMA user_version");
}

// Several may come here at once: the first one makes the tables, the others find them.
void SqliteDatabase::CreateTables(const std::string& sql, int version) {
  // Only possible outside of a transaction, and SQLite does not wait here by itself.
  const char* wal = "PRAGMA journal_mode = WAL";
  for (int tries = 0;; ++tries) {
    const int code = sqlite3_exec(handle_, wal, nullptr, nullptr, nullptr);
    if (code == SQLITE_OK) break;
    if ((code & 0xff) != SQLITE_BUSY || tries * kBetweenTriesMs > busy_ms_) {
      Fail(path_, handle_, code);
    }
    sqlite3_sleep(kBetweenTriesMs);
  }
  Transaction transaction(*this, Access::kWrite);
  if (QueryInteger("PRAGMA user_version") == 0) {
    Execute(sql);
    Execute("PRAGMA application_id = " + std::to_string(kApplicationId));
    Execute("PRAGMA user_version = " + std::to_string(version));
  }
  transaction.Commit();
}

bool SqliteDatabase::Has(const std::string& table_or_index) {
  return QueryInteger("SELECT count(*) FROM sqlite_master WHERE name = '" + table_or_index + "'") >
         0;
}

}  // namespace

std::unique_ptr<Database> OpenSqlite(const std::string& path, int busy_ms) {
  return std::make_unique<SqliteDatabase>(path, busy_ms);
}

}  // namespace trainwreck
