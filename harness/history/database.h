// What the history needs of a database, whichever it is: SQLite's file (sqlite.h) or a server of
// PostgreSQL (postgres.h). SQL is written once, as SQLite has it: `?` stands for a value, and
// tables have the types INTEGER, REAL and TEXT and a `rowid`. Every call that fails throws
// DatabaseError.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace trainwreck {

struct DatabaseError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A statement that its database has prepared. Values are bound in order.
class Prepared {
 public:
  virtual ~Prepared() = default;
  virtual void BindText(const std::string& text) = 0;
  virtual void BindNumber(double number) = 0;
  virtual void BindInteger(std::int64_t number) = 0;
  virtual void BindNull() = 0;
  virtual bool Step() = 0;   // whether there is a row
  virtual void Reset() = 0;  // to be bound and stepped again
  // Of the row; NULL is "" and 0.
  virtual std::string Text(int column) const = 0;
  virtual double Number(int column) const = 0;
  virtual std::int64_t Integer(int column) const = 0;
};

class Database {
 public:
  enum class Access {
    kRead,   // everything that is read comes from one moment
    kWrite,  // takes the writer's lock at once: no other writer can come between
  };
  Database() = default;
  virtual ~Database() = default;
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  virtual const std::string& name() const = 0;  // for messages; without a password
  virtual std::unique_ptr<Prepared> Prepare(const std::string& sql) = 0;
  virtual void Execute(const std::string& sql) = 0;
  virtual void Begin(Access access) = 0;
  virtual void Rollback() noexcept = 0;

  // The version of the history's tables; 0: there are none. Throws when the tables are another
  // program's.
  virtual std::int64_t Version() = 0;
  // Makes the tables, marked with `version`, unless another writer has made them meanwhile.
  virtual void CreateTables(const std::string& sql, int version) = 0;
  // Makes more tables, in the caller's transaction.
  virtual void AddTables(const std::string& sql) = 0;
  virtual bool Has(const std::string& table_or_index) = 0;

  std::int64_t QueryInteger(const std::string& sql);  // the first value of the first row
};

// One prepared statement: Bind in order, then Step through the rows.
//
//   Statement find(database, "SELECT id FROM run WHERE commit_hash = ?");
//   find.Bind(hash);
//   while (find.Step()) use(find.Integer(0));
class Statement {
 public:
  Statement(Database& database, const std::string& sql) : prepared_(database.Prepare(sql)) {}

  Statement& Bind(const std::string& text);
  Statement& Bind(const char* text) { return Bind(std::string(text)); }
  Statement& Bind(double number);  // NaN becomes NULL
  Statement& Bind(std::int64_t number);
  Statement& Bind(int number) { return Bind(static_cast<std::int64_t>(number)); }

  bool Step() { return prepared_->Step(); }
  std::int64_t Insert();  // steps an INSERT that ends with RETURNING id: that id
  void Reset() { prepared_->Reset(); }
  std::string Text(int column) const { return prepared_->Text(column); }
  double Number(int column) const { return prepared_->Number(column); }
  std::int64_t Integer(int column) const { return prepared_->Integer(column); }

 private:
  std::unique_ptr<Prepared> prepared_;
};

// Rows of one table, hundreds in one statement: a server's answer takes a round trip, and a writer
// holds the lock meanwhile.
//
//   RowsToAdd rows(database, "bits");
//   for (const Bits& one : all) rows.Add(one.run, one.seed, one.digest);
//   rows.Finish();
class RowsToAdd {
 public:
  RowsToAdd(Database& database, std::string table)
      : database_(database), table_(std::move(table)) {}

  // A value for each column, in the table's order.
  template <typename... Values>
  void Add(const Values&... values) {
    if (values_.size() + sizeof...(values) > kMostValues) Finish();
    columns_ = sizeof...(values);
    (values_.emplace_back(values), ...);
  }
  void Finish();  // the last of them are in the table only after it

 private:
  static constexpr std::size_t kMostValues = 990;  // SQLite before 3.32 binds 999

  Database& database_;
  std::string table_;
  std::size_t columns_ = 0;
  std::vector<std::variant<std::string, double, std::int64_t, int>> values_;
};

// A transaction, which is rolled back unless it was committed.
class Transaction {
 public:
  Transaction(Database& database, Database::Access access) : database_(database) {
    database_.Begin(access);
  }
  ~Transaction() {
    if (is_open_) database_.Rollback();
  }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  void Commit() {
    database_.Execute("COMMIT");
    is_open_ = false;
  }

 private:
  Database& database_;
  bool is_open_ = true;
};

}  // namespace trainwreck
