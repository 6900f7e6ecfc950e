#include "harness/history/sqlite.h"

#include <cmath>

namespace trainwreck {
namespace {

[[noreturn]] void Fail(const std::string& path, sqlite3* handle, int code) {
  const std::string what = handle != nullptr ? sqlite3_errmsg(handle) : sqlite3_errstr(code);
  const bool is_damaged = (code & 0xff) == SQLITE_CORRUPT || (code & 0xff) == SQLITE_NOTADB;
  throw SqliteError(path + ": " + what +
                        (is_damaged ? " (the file is damaged: move it away, and the next run makes "
                                      "a new one; 'sqlite3 FILE .recover' saves what can be read)"
                                    : ""),
                    code);
}

}  // namespace

Database::Database(const std::string& path, bool read_only, int busy_ms) : path_(path) {
  const int flags = read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  const int code = sqlite3_open_v2(path.c_str(), &handle_, flags, nullptr);
  if (code != SQLITE_OK) {
    sqlite3_close(handle_);
    throw SqliteError(path + ": " + sqlite3_errstr(code), code);
  }
  sqlite3_extended_result_codes(handle_, 1);
  sqlite3_busy_timeout(handle_, busy_ms);
}

Database::~Database() { sqlite3_close(handle_); }

void Database::Execute(const std::string& sql) {
  const int code = sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) Fail(path_, handle_, code);
}

std::int64_t Database::QueryInteger(const std::string& sql) {
  Statement query(*this, sql);
  if (!query.Step()) throw SqliteError(path_ + ": no answer to " + sql, SQLITE_ERROR);
  return query.Integer(0);
}

Statement::Statement(Database& database, const std::string& sql) : database_(database) {
  Check(sqlite3_prepare_v2(database.handle(), sql.c_str(), static_cast<int>(sql.size()),
                           &statement_, nullptr));
}

Statement::~Statement() { sqlite3_finalize(statement_); }

void Statement::Check(int code) {
  if (code != SQLITE_OK) Fail(database_.path(), database_.handle(), code);
}

Statement& Statement::Bind(const std::string& text) {
  Check(sqlite3_bind_text(statement_, ++bound_, text.data(), static_cast<int>(text.size()),
                          SQLITE_TRANSIENT));
  return *this;
}

Statement& Statement::Bind(double number) {
  Check(std::isnan(number) ? sqlite3_bind_null(statement_, ++bound_)
                           : sqlite3_bind_double(statement_, ++bound_, number));
  return *this;
}

Statement& Statement::Bind(std::int64_t number) {
  Check(sqlite3_bind_int64(statement_, ++bound_, number));
  return *this;
}

bool Statement::Step() {
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  Fail(database_.path(), database_.handle(), code);
}

void Statement::Reset() {
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
  bound_ = 0;
}

std::string Statement::Text(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  const int size = sqlite3_column_bytes(statement_, column);
  return text == nullptr ? "" : std::string(text, static_cast<std::size_t>(size));
}

Transaction::~Transaction() {
  if (!is_open_) return;
  sqlite3_exec(database_.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
}

void Transaction::Commit() {
  database_.Execute("COMMIT");
  is_open_ = false;
}

}  // namespace trainwreck
