#include "harness/protocol/trace_record.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "harness/protocol/parse_json.h"

namespace trainwreck {
namespace {

namespace ondemand = simdjson::ondemand;

constexpr int kMaxStep = 100'000'000;  // a record beyond it is garbage, not a reason to allocate

// The names that Python's json writes for numbers which JSON does not have, and those of json.h.
struct BareNumber {
  std::string_view name;
  std::string_view text;
};

constexpr BareNumber kBareNumbers[] = {
    {"NaN", "\"nan\""}, {"Infinity", "\"inf\""}, {"-Infinity", "\"-inf\""}};

// A value stands after one of ":[," and before one of ",]}": a key or a part of a longer word is
// none.
bool IsValuePlace(std::string_view line, std::size_t begin, std::size_t end) {
  const std::size_t before = begin == 0 ? begin : line.find_last_not_of(kSpaces, begin - 1);
  const std::size_t after = line.find_first_not_of(kSpaces, end);
  return begin > 0 && before != line.npos &&
         std::string_view(":[,").find(line[before]) != line.npos && after != line.npos &&
         std::string_view(",]}").find(line[after]) != line.npos;
}

// The text of a string in which nothing is escaped.
bool PlainText(ondemand::raw_json_string raw, const char* end, std::string_view& text) {
  const char* begin = raw.raw();
  const void* quote = std::memchr(begin, '"', static_cast<std::size_t>(end - begin));
  if (quote == nullptr) return false;
  text = {begin, static_cast<std::size_t>(static_cast<const char*>(quote) - begin)};
  return text.find('\\') == text.npos;
}

bool ReadMember(ondemand::field field, const char* end, Member& member) {
  if (!PlainText(field.key(), end, member.key)) return false;
  ondemand::json_type type;
  if (field.value().type().get(type) != simdjson::SUCCESS) return false;
  if (type == ondemand::json_type::number) {
    member.kind = Member::Kind::kNumber;
    // The other reader takes -0 for an integer, which has no sign.
    return field.value().get_double().get(member.number) == simdjson::SUCCESS &&
           !(member.number == 0 && std::signbit(member.number));
  }
  if (type == ondemand::json_type::string) {
    member.kind = Member::Kind::kText;
    ondemand::raw_json_string raw;
    return field.value().get_raw_json_string().get(raw) == simdjson::SUCCESS &&
           PlainText(raw, end, member.text);
  }
  bool truth = false;
  if (type != ondemand::json_type::boolean ||
      field.value().get_bool().get(truth) != simdjson::SUCCESS) {
    return false;
  }
  member.kind = Member::Kind::kBoolean;
  member.number = truth ? 1.0 : 0.0;
  return true;
}

}  // namespace

int IntOf(double value, int fallback) {
  return value >= -1 && value <= kMaxStep ? static_cast<int>(value) : fallback;
}

int IntField(const Json& record, const char* key, int fallback) {
  auto found = record.find(key);
  if (found == record.end() || !found->is_number()) return fallback;
  return IntOf(found->get<double>(), fallback);
}

std::string WithoutBareNumbers(std::string_view line) {
  std::string result;
  if (line.find("NaN") == line.npos && line.find("Infinity") == line.npos) return result;
  std::size_t copied = 0;
  bool in_string = false;
  for (std::size_t at = 0; at < line.size(); ++at) {
    if (in_string) {
      if (line[at] == '\\') {
        ++at;  // whatever is escaped, it ends no string
      } else if (line[at] == '"') {
        in_string = false;
      }
      continue;
    }
    in_string = line[at] == '"';
    for (const BareNumber& bare : kBareNumbers) {
      if (line[at] != bare.name.front() || line.compare(at, bare.name.size(), bare.name) != 0 ||
          !IsValuePlace(line, at, at + bare.name.size())) {
        continue;
      }
      result.append(line, copied, at - copied).append(bare.text);
      copied = at + bare.name.size();
      at = copied - 1;
      break;
    }
  }
  return copied == 0 ? "" : result.append(line, copied);
}

Json ParseRecord(const std::string& line) {
  if (IsNestedTooDeep(line)) return Json(Json::value_t::discarded);
  Json record = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!record.is_discarded()) return record;
  const std::string plain = WithoutBareNumbers(line);
  return plain.empty() ? record : Json::parse(plain, nullptr, /*allow_exceptions=*/false);
}

std::string WhatIsIt(const std::string& line) {
  const bool is_gzip = line.size() > 1 && line[0] == '\x1f' && line[1] == '\x8b';
  return is_gzip ? "gzip'ed: unpack it first" : "not a JSON object";
}

std::string TextField(const Json& record, const char* key) {
  auto found = record.find(key);
  return found != record.end() && found->is_string() ? found->get<std::string>() : "";
}

std::optional<double> Member::Number() const {
  if (kind != Kind::kText) return number;
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-inf") return -std::numeric_limits<double>::infinity();
  return std::nullopt;
}

bool FlatRecord::Read(std::string_view line, std::string_view& type) {
  members.clear();
  step = nullptr;
  type = "";
  ondemand::document document;
  ondemand::object object;
  const simdjson::padded_string_view padded(line, line.size() + simdjson::SIMDJSON_PADDING);
  if (parser.iterate(padded).get(document) != simdjson::SUCCESS ||
      document.get_object().get(object) != simdjson::SUCCESS) {
    return false;
  }
  for (auto next : object) {
    ondemand::field field;
    if (std::move(next).get(field) != simdjson::SUCCESS) return false;
    Member& member = members.emplace_back();
    if (!ReadMember(field, line.data() + line.size(), member)) return false;
    if (member.key == "t") type = member.kind == Member::Kind::kText ? member.text : "";
  }
  if (document.current_location().error() != simdjson::OUT_OF_BOUNDS) return false;
  for (const Member& member : members) {
    if (member.key == "step") step = &member;
  }
  return true;
}

}  // namespace trainwreck
