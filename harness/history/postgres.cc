#include "harness/history/postgres.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <new>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "harness/text/clean_text.h"
#include "harness/text/words.h"

namespace trainwreck {
namespace {

// The functions that are used here; libpq.so.5 has had them since 2005. Connections, results and
// parsed options are pointers to what only libpq knows.
struct Libpq {
  void* (*PQconnectdbParams)(const char* const* keywords, const char* const* values,
                             int expand_dbname);
  int (*PQstatus)(const void* connection);
  char* (*PQerrorMessage)(const void* connection);
  void (*PQfinish)(void* connection);
  void* (*PQexec)(void* connection, const char* sql);
  void* (*PQexecParams)(void* connection, const char* sql, int count, const unsigned* types,
                        const char* const* values, const int* lengths, const int* formats,
                        int result_format);
  int (*PQresultStatus)(const void* result);
  int (*PQntuples)(const void* result);
  char* (*PQgetvalue)(const void* result, int row, int column);
  void (*PQclear)(void* result);

  static const Libpq& Get();
};

// Their numbers are part of libpq's binary interface.
constexpr int kConnectionOk = 0, kCommandOk = 1, kTuplesOk = 2;
constexpr const char* kSchema = "trainwreck";
// to_regclass() may answer from what this connection has cached, without another's new tables.
constexpr const char* kOurs =
    " FROM pg_class JOIN pg_namespace ON relnamespace = pg_namespace.oid WHERE nspname = "
    "'trainwreck'";
constexpr const char* kWritersLock = "SELECT pg_advisory_xact_lock(1414678321)";  // "TRK1"

Libpq Open() {
  void* library = dlopen("libpq.so.5", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    throw DatabaseError(
        "a history on a server needs PostgreSQL's libpq.so.5 (Debian: apt-get install libpq5)");
  }
  Libpq found;
  const auto find = [&](auto& function, const char* name) {
    void* address = dlsym(library, name);
    if (address == nullptr) throw DatabaseError(std::string("libpq.so.5 has no ") + name);
    function = reinterpret_cast<std::decay_t<decltype(function)>>(address);
  };
  find(found.PQconnectdbParams, "PQconnectdbParams");
  find(found.PQstatus, "PQstatus");
  find(found.PQerrorMessage, "PQerrorMessage");
  find(found.PQfinish, "PQfinish");
  find(found.PQexec, "PQexec");
  find(found.PQexecParams, "PQexecParams");
  find(found.PQresultStatus, "PQresultStatus");
  find(found.PQntuples, "PQntuples");
  find(found.PQgetvalue, "PQgetvalue");
  find(found.PQclear, "PQclear");
  return found;
}

// Where in `url` a password is given; between `user` and `@`, or as an option.
bool HasPassword(const std::string& url) {
  const std::size_t begin = url.find("://") + 3;
  const std::string place = url.substr(begin, url.find_first_of("/?", begin) - begin);
  const std::size_t at = place.rfind('@');
  return (at != place.npos && place.find(':') < at) || url.find("password=", begin) != url.npos;
}

// One result, and who clears it.
class Rows {
 public:
  Rows(const Libpq& libpq, void* result) : libpq_(libpq), result_(result) {}
  ~Rows() { libpq_.PQclear(result_); }
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;

  bool is_ok() const {
    const int status = libpq_.PQresultStatus(result_);
    return status == kCommandOk || status == kTuplesOk;
  }
  int count() const { return libpq_.PQntuples(result_); }
  const char* Value(int row, int column) const { return libpq_.PQgetvalue(result_, row, column); }

 private:
  const Libpq& libpq_;
  void* result_;
};

[[noreturn]] void Fail(const Libpq& libpq, const void* connection, const std::string& url) {
  throw DatabaseError(url + ": " + InOneLine(libpq.PQerrorMessage(connection)));
}

// `?` is `$1`, `$2`, ...; none of the history's statements has one in a text.
std::string Numbered(const std::string& sql) {
  std::string numbered;
  int count = 0;
  for (const char letter : sql) {
    if (letter == '?') {
      numbered += "$" + std::to_string(++count);
    } else {
      numbered += letter;
    }
  }
  return numbered;
}

void ReplaceAll(std::string& text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != text.npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

// The tables with this server's types. Texts are ordered by their bytes, as in SQLite.
std::string TablesHere(std::string sql) {
  ReplaceAll(sql, " INTEGER PRIMARY KEY AUTOINCREMENT", " BIGSERIAL PRIMARY KEY");
  ReplaceAll(sql, " INTEGER PRIMARY KEY", " BIGSERIAL PRIMARY KEY");
  ReplaceAll(sql, " INTEGER", " BIGINT");
  ReplaceAll(sql, " REAL", " DOUBLE PRECISION");
  ReplaceAll(sql, " TEXT", " TEXT COLLATE \"C\"");
  for (std::size_t at = sql.find("CREATE TABLE"); at != sql.npos;
       at = sql.find("CREATE TABLE", at + 1)) {
    const std::size_t end = sql.find(");", at);
    sql.insert(end, ",\n  rowid BIGSERIAL");
  }
  return sql;
}

class PostgresStatement : public Prepared {
 public:
  PostgresStatement(const Libpq& libpq, void* connection, const std::string& url,
                    const std::string& sql)
      : libpq_(libpq), connection_(connection), url_(url), sql_(Numbered(sql)) {}

  // The server takes valid UTF-8 without zeros alone.
  void BindText(const std::string& text) override { values_.emplace_back(CleanText(text)); }
  void BindNumber(double number) override {
    char digits[32];
    std::snprintf(digits, sizeof digits, "%.17g", number);
    values_.emplace_back(digits);
  }
  void BindInteger(std::int64_t number) override { values_.emplace_back(std::to_string(number)); }
  void BindNull() override { values_.emplace_back(std::nullopt); }

  bool Step() override {
    if (!rows_) {
      std::vector<const char*> values;
      for (const auto& value : values_) values.push_back(value ? value->c_str() : nullptr);
      rows_.emplace(libpq_,
                    libpq_.PQexecParams(connection_, sql_.c_str(), static_cast<int>(values.size()),
                                        nullptr, values.data(), nullptr, nullptr, 0));
      if (!rows_->is_ok()) Fail(libpq_, connection_, url_);
    }
    return ++row_ < rows_->count();
  }
  void Reset() override {
    rows_.reset();
    values_.clear();
    row_ = -1;
  }

  std::string Text(int column) const override { return rows_->Value(row_, column); }
  double Number(int column) const override {
    return std::strtod(rows_->Value(row_, column), nullptr);
  }
  std::int64_t Integer(int column) const override {
    return std::strtoll(rows_->Value(row_, column), nullptr, 10);
  }

 private:
  const Libpq& libpq_;
  void* connection_;
  const std::string& url_;
  std::string sql_;
  std::vector<std::optional<std::string>> values_;
  std::optional<Rows> rows_;
  int row_ = -1;
};

const Libpq& Libpq::Get() {
  static const Libpq libpq = Open();
  return libpq;
}

class PostgresDatabase : public Database {
 public:
  PostgresDatabase(const std::string& url, int busy_ms);
  ~PostgresDatabase() override;

  const std::string& name() const override { return url_; }
  std::unique_ptr<Prepared> Prepare(const std::string& sql) override;
  void Execute(const std::string& sql) override;
  void Begin(Access access) override;
  void Rollback() noexcept override;
  std::int64_t Version() override;
  void CreateTables(const std::string& sql, int version) override;
  void AddTables(const std::string& sql) override { Execute(TablesHere(sql)); }
  bool Has(const std::string& table_or_index) override;

 private:
  std::string url_;
  const Libpq& libpq_;
  void* connection_ = nullptr;
};

PostgresDatabase::PostgresDatabase(const std::string& url, int busy_ms)
    : url_(url), libpq_(Libpq::Get()) {
  if (HasPassword(url)) {
    throw DatabaseError(
        "the history's address has a password, which others would see: leave it out, and write it "
        "to ~/.pgpass or PGPASSWORD");
  }
  // What the address itself says takes precedence.
  const char* keywords[] = {"connect_timeout", "application_name", "dbname", nullptr};
  const char* values[] = {"10", "trainwreck", url.c_str(), nullptr};
  connection_ = libpq_.PQconnectdbParams(keywords, values, /*expand_dbname=*/1);
  try {
    if (connection_ == nullptr) throw std::bad_alloc();
    if (libpq_.PQstatus(connection_) != kConnectionOk) Fail(libpq_, connection_, url_);
    // A notice, as of a table that is there already, goes to the terminal by default.
    Execute(std::string("SET client_min_messages = warning; SET client_encoding = 'UTF8'; ") +
            "SET lock_timeout = " + std::to_string(busy_ms) + "; SET search_path = " + kSchema);
  } catch (...) {
    libpq_.PQfinish(connection_);
    throw;
  }
}

PostgresDatabase::~PostgresDatabase() { libpq_.PQfinish(connection_); }

std::unique_ptr<Prepared> PostgresDatabase::Prepare(const std::string& sql) {
  return std::make_unique<PostgresStatement>(libpq_, connection_, url_, sql);
}

void PostgresDatabase::Execute(const std::string& sql) {
  const Rows rows(libpq_, libpq_.PQexec(connection_, sql.c_str()));
  if (!rows.is_ok()) Fail(libpq_, connection_, url_);
}

void PostgresDatabase::Begin(Access access) {
  if (access == Access::kRead) return Execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
  Execute("BEGIN");
  Execute(kWritersLock);
}

void PostgresDatabase::Rollback() noexcept {
  libpq_.PQclear(libpq_.PQexec(connection_, "ROLLBACK"));
}

// In one transaction: another writer may be making the tables at this moment.
std::int64_t PostgresDatabase::Version() {
  const Transaction one_moment(*this, Access::kRead);
  if (Has("history_version")) return QueryInteger("SELECT version FROM history_version");
  const bool is_taken = QueryInteger(std::string("SELECT count(*)") + kOurs) > 0;
  if (is_taken) {
    throw DatabaseError(url_ + ": the schema '" + kSchema +
                        "' has another program's tables: name another database with --history");
  }
  return 0;
}

void PostgresDatabase::CreateTables(const std::string& sql, int version) {
  Transaction transaction(*this, Access::kWrite);
  if (!Has("history_version")) {
    Execute(std::string("CREATE SCHEMA IF NOT EXISTS ") + kSchema);
    AddTables(sql);
    Execute("CREATE TABLE history_version(version INTEGER NOT NULL)");
    Execute("INSERT INTO history_version VALUES(" + std::to_string(version) + ")");
  }
  transaction.Commit();
}

bool PostgresDatabase::Has(const std::string& table_or_index) {
  return QueryInteger(std::string("SELECT count(*)") + kOurs + " AND relname = '" + table_or_index +
                      "'") > 0;
}

}  // namespace

bool IsServer(const std::string& history) {
  return history.rfind("postgresql://", 0) == 0 || history.rfind("postgres://", 0) == 0;
}

std::unique_ptr<Database> OpenPostgres(const std::string& url, int busy_ms) {
  return std::make_unique<PostgresDatabase>(url, busy_ms);
}

}  // namespace trainwreck
