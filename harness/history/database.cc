#include "harness/history/database.h"

#include <cmath>

namespace trainwreck {

std::int64_t Database::QueryInteger(const std::string& sql) {
  Statement query(*this, sql);
  if (!query.Step()) throw DatabaseError(name() + ": no answer to " + sql);
  return query.Integer(0);
}

std::int64_t Statement::Insert() {
  Step();
  const std::int64_t id = Integer(0);
  Reset();  // SQLite commits nothing before the statement has ended
  return id;
}

Statement& Statement::Bind(const std::string& text) {
  prepared_->BindText(text);
  return *this;
}

Statement& Statement::Bind(double number) {
  if (std::isnan(number)) {
    prepared_->BindNull();
  } else {
    prepared_->BindNumber(number);
  }
  return *this;
}

Statement& Statement::Bind(std::int64_t number) {
  prepared_->BindInteger(number);
  return *this;
}

void RowsToAdd::Finish() {
  if (values_.empty()) return;
  std::string row = "(?";
  for (std::size_t column = 1; column < columns_; ++column) row += ", ?";
  row += ")";
  std::string sql = "INSERT INTO " + table_ + " VALUES" + row;
  for (std::size_t i = columns_; i < values_.size(); i += columns_) sql += ", " + row;
  Statement insert(database_, sql);
  for (const auto& value : values_) {
    std::visit([&](const auto& it) { insert.Bind(it); }, value);
  }
  insert.Step();
  values_.clear();
}

}  // namespace trainwreck
