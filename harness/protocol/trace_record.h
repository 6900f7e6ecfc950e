// A line of a trace (trace.h) as a record: the many flat ones without a tree of JSON, any other as
// one. For trace_reader.cc alone.
#pragma once

#include <simdjson.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/protocol/json.h"

namespace trainwreck {

inline constexpr std::string_view kSpaces = " \t\r\n";

// A number of steps or ranks; the fallback where it is less than -1 or garbage.
int IntOf(double value, int fallback);
int IntField(const Json& record, const char* key, int fallback);
std::string TextField(const Json& record, const char* key);

// The line with its bare numbers, outside of strings, written as strings; empty: there are none.
std::string WithoutBareNumbers(std::string_view line);

// A record, or no object where the line holds none.
Json ParseRecord(const std::string& line);

// What the line is instead, for those who copied or packed a trace.
std::string WhatIsIt(const std::string& line);

// A member of a record that holds no lists and objects.
struct Member {
  enum class Kind { kNumber, kBoolean, kText };
  std::string_view key;
  Kind kind = Kind::kNumber;
  double number = 0;  // of a boolean, too
  std::string_view text;

  // As DecodeNumber of json.h.
  std::optional<double> Number() const;
  int Int(int fallback) const { return kind == Kind::kNumber ? IntOf(number, fallback) : fallback; }
  std::string Text() const { return kind == Kind::kText ? std::string(text) : ""; }
};

// A record without lists and objects; its members point into the line.
struct FlatRecord {
  simdjson::ondemand::parser parser;
  std::vector<Member> members;
  const Member* step = nullptr;

  // False where the line is to be read by the other reader: it is damaged, has bare numbers, lists,
  // escapes, or a key twice that must be there once. `line` is followed by some bytes that are
  // there to be read.
  bool Read(std::string_view line, std::string_view& type);
};

}  // namespace trainwreck
