// The few things of SQLite that the history needs, as objects that clean up after themselves. Every
// call that fails throws SqliteError with SQLite's message.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <stdexcept>
#include <string>

namespace trainwreck {

struct SqliteError : std::runtime_error {
  SqliteError(const std::string& what, int error_code)
      : std::runtime_error(what), code(error_code) {}
  int code;
};

class Database {
 public:
  // Creates the file unless `read_only`. Waits for other writers for `busy_ms` at most.
  Database(const std::string& path, bool read_only, int busy_ms);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  void Execute(const std::string& sql);
  std::int64_t QueryInteger(const std::string& sql);  // the first value of the first row
  std::int64_t last_insert_id() const { return sqlite3_last_insert_rowid(handle_); }
  sqlite3* handle() const { return handle_; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  sqlite3* handle_ = nullptr;
};

// One prepared statement: Bind in order, then Step through the rows.
//
//   Statement find(database, "SELECT id FROM run WHERE commit_hash = ?");
//   find.Bind(hash);
//   while (find.Step()) use(find.Integer(0));
class Statement {
 public:
  Statement(Database& database, const std::string& sql);
  ~Statement();
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& Bind(const std::string& text);
  Statement& Bind(const char* text) { return Bind(std::string(text)); }
  Statement& Bind(double number);  // NaN becomes NULL
  Statement& Bind(std::int64_t number);
  Statement& Bind(int number) { return Bind(static_cast<std::int64_t>(number)); }

  bool Step();   // whether there is a row
  void Reset();  // to be bound and stepped again

  std::string Text(int column) const;
  double Number(int column) const { return sqlite3_column_double(statement_, column); }
  std::int64_t Integer(int column) const { return sqlite3_column_int64(statement_, column); }

 private:
  void Check(int code);
  Database& database_;
  sqlite3_stmt* statement_ = nullptr;
  int bound_ = 0;
};

// A transaction, which is rolled back unless it was committed.
class Transaction {
 public:
  enum class Kind {
    kRead,   // everything read comes from one moment
    kWrite,  // takes the writer's lock at once: no other writer can come between
  };
  Transaction(Database& database, Kind kind) : database_(database) {
    database_.Execute(kind == Kind::kRead ? "BEGIN DEFERRED" : "BEGIN IMMEDIATE");
  }
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  void Commit();

 private:
  Database& database_;
  bool is_open_ = true;
};

}  // namespace trainwreck
