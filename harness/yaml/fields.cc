#include "harness/yaml/fields.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <utility>

#include "harness/text/nearest.h"
#include "harness/text/words.h"

namespace trainwreck {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// [-+] digits [. digits] [e [-+] digits], as people and YAML 1.2 write numbers.
bool LooksLikeNumber(const std::string& text) {
  std::size_t i = 0;
  const auto digits = [&] {
    const std::size_t begin = i;
    while (i < text.size() && IsDigit(text[i])) ++i;
    return i - begin;
  };
  if (i < text.size() && (text[i] == '-' || text[i] == '+')) ++i;
  std::size_t count = digits();
  if (i < text.size() && text[i] == '.') {
    ++i;
    count += digits();
  }
  if (count == 0) return false;
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    ++i;
    if (i < text.size() && (text[i] == '-' || text[i] == '+')) ++i;
    if (digits() == 0) return false;
  }
  return i == text.size();
}

std::optional<std::int64_t> ParseInt(const std::string& text) {
  const char* begin = text.data() + (text.size() > 1 && text[0] == '+' ? 1 : 0);
  const char* end = text.data() + text.size();
  // 010 is eight to some readers of YAML and ten to others.
  const char* first = begin != end && *begin == '-' ? begin + 1 : begin;
  if (end - first > 1 && *first == '0') return std::nullopt;
  std::int64_t value = 0;
  auto [rest, error] = std::from_chars(begin, end, value);
  if (error != std::errc() || rest != end) return std::nullopt;
  return value;
}

// "lr=90" as it should have been written; empty when the text is no such thing.
std::string AsPair(const std::string& text) {
  const std::size_t equals = text.find_first_of("=:");
  if (equals == 0 || equals == std::string::npos || equals + 1 >= text.size()) return "";
  return "write {" + text.substr(0, equals) + ": " + text.substr(equals + 1) + "}";
}

std::string BoolHint(const YamlNode& node, bool fits) {
  if (!node.is_plain) return fits ? "drop the quotes" : "";
  if (node.text == "yes" || node.text == "on") return "write true";
  return node.text == "no" || node.text == "off" ? "write false" : "";
}

// What is wrong with a number that almost fits.
std::string NumberHint(const YamlNode& node, bool fits, const char* example) {
  if (!node.is_plain && fits) return "drop the quotes";
  const std::string& text = node.text;
  if (text.size() > 1 && text[0] == '0' && IsDigit(text[1])) return "without leading zeros";
  const std::size_t end = text.find_first_not_of("+-.0123456789");
  if (end == std::string::npos || end == 0) return std::string("such as ") + example;
  const std::string digits = text.substr(0, end), rest = text.substr(end);
  if (rest == "%") {
    char share[32];
    std::snprintf(share, sizeof share, "%.6g", std::strtod(digits.c_str(), nullptr) / 100);
    return std::string("write a share as a number: ") + share;
  }
  if (rest[0] == ',' && rest.size() > 1 && IsDigit(rest[1])) {
    return "write a point, not a comma: " + digits + "." + rest.substr(1);
  }
  return "write the number alone, without a unit";
}

// "remedy" for "remedies": a long common beginning makes up for another ending.
std::string SameBeginning(const std::string& name, const std::vector<std::string>& known) {
  constexpr std::size_t kLong = 5;
  for (const std::string& candidate : known) {
    const std::size_t longest = std::min(name.size(), candidate.size());
    std::size_t same = 0;
    while (same < longest && name[same] == candidate[same]) ++same;
    if (same >= kLong && same + 2 >= name.size()) return candidate;
  }
  return "";
}

// `node` holds one value: a scalar, not a map, a list or nothing.
bool IsValue(const YamlNode& node, const std::string& what, const char* wanted, Errors& errors) {
  if (node.IsScalar()) return true;
  errors.Add(node, what + " must be " + wanted + ", but is " + Describe(node));
  return false;
}

std::optional<Json> ReadScalarValue(const YamlNode& node, const ParamInfo& info, ValueType type,
                                    Errors& errors) {
  std::string what = "'" + info.name + "'";
  switch (type) {
    case ValueType::kBool: {
      std::optional<bool> value = ReadBool(node, what, errors);
      return value ? std::optional<Json>(*value) : std::nullopt;
    }
    case ValueType::kInt:
    case ValueType::kIntList: {
      if (type == ValueType::kIntList) what.insert(0, "an entry of ");
      if (!IsValue(node, what, "a whole number", errors)) return std::nullopt;
      std::optional<std::int64_t> value = ParseInt(node.text);
      if (node.is_plain && value) return Json(*value);
      errors.Add(node, what + " must be a whole number", NumberHint(node, value.has_value(), "5"));
      return std::nullopt;
    }
    case ValueType::kNumber: {
      std::optional<double> value = ReadNumber(node, what, errors);
      return value ? std::optional<Json>(*value) : std::nullopt;
    }
    case ValueType::kString:
    case ValueType::kStringList:
      if (!IsValue(node, what, "text", errors)) return std::nullopt;
      return Json(node.text);
  }
  return std::nullopt;
}

}  // namespace

Fields::Fields(const YamlNode& node, std::string owner, Errors& errors, const std::string& example)
    : node_(node), owner_(std::move(owner)), errors_(errors) {
  if (node.IsMap()) {
    map_ = &node;
  } else {
    errors.Add(node, owner_ + " must be a map, but is " + Describe(node), example);
  }
}

const YamlNode* Fields::Take(const std::string& key) {
  known_.push_back(key);
  return map_ == nullptr ? nullptr : map_->Find(key);
}

const YamlNode* Fields::Require(const std::string& key, const std::string& example) {
  const YamlNode* value = Take(key);
  if (value == nullptr) missing_.emplace_back(key, example);
  return value;
}

void Fields::RejectRest(bool allow_notes) {
  if (map_ == nullptr) return;
  for (const YamlNode& key : map_->keys) {
    if (allow_notes && key.text.rfind("x-", 0) == 0) continue;
    if (std::find(known_.begin(), known_.end(), key.text) != known_.end()) continue;
    errors_.Add(key, "unknown key '" + key.text + "' in " + owner_, SuggestName(key.text, known_));
    // A key that is spelled wrong is not missing as well.
    const std::string meant = NearestName(key.text, known_);
    std::erase_if(missing_, [&](const auto& entry) { return entry.first == meant; });
  }
  for (const auto& [key, example] : missing_) {
    errors_.Add(node_, owner_ + " lacks '" + key + "'",
                example.empty() ? "" : "add '" + example + "'");
  }
}

std::optional<std::string> ReadText(const YamlNode& node, const std::string& what, Errors& errors) {
  if (!IsValue(node, what, "text", errors)) return std::nullopt;
  if (node.text.find_first_not_of(" \t\r\n") == std::string::npos) {
    errors.Add(node, what + " must not be empty");
    return std::nullopt;
  }
  return node.text;
}

std::optional<bool> ReadBool(const YamlNode& node, const std::string& what, Errors& errors) {
  if (!IsValue(node, what, "true or false", errors)) return std::nullopt;
  const bool fits = node.text == "true" || node.text == "false";
  if (fits && node.is_plain) return node.text == "true";
  errors.Add(node, what + " must be true or false", BoolHint(node, fits));
  return std::nullopt;
}

std::optional<int> ReadInt(const YamlNode& node, const std::string& what, Errors& errors, int min,
                           int max) {
  if (!IsValue(node, what, "a whole number", errors)) return std::nullopt;
  std::optional<std::int64_t> value = ParseInt(node.text);
  if (!value || !node.is_plain) {
    errors.Add(node, what + " must be a whole number", NumberHint(node, value.has_value(), "5"));
    return std::nullopt;
  }
  if (*value < min || *value > max) {
    errors.Add(node, what + (*value < min ? " must be >= " + std::to_string(min)
                                          : " must be <= " + std::to_string(max)));
    return std::nullopt;
  }
  return static_cast<int>(*value);
}

std::optional<double> ReadNumber(const YamlNode& node, const std::string& what, Errors& errors) {
  if (!IsValue(node, what, "a number", errors)) return std::nullopt;
  const bool fits = LooksLikeNumber(node.text);
  if (!fits || !node.is_plain) {
    errors.Add(node, what + " must be a number", NumberHint(node, fits, "0.1"));
    return std::nullopt;
  }
  const double value = std::strtod(node.text.c_str(), nullptr);
  if (!std::isfinite(value)) {
    errors.Add(node, what + " is too large for a number");
    return std::nullopt;
  }
  return value;
}

std::optional<std::int64_t> ReadBytes(const YamlNode& node, const std::string& what,
                                      Errors& errors) {
  if (!IsValue(node, what, "a size", errors)) return std::nullopt;
  struct Suffix {
    const char* text;
    int shift;
  };
  static constexpr Suffix kSuffixes[] = {{"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}};
  for (const Suffix& suffix : kSuffixes) {
    const std::string& text = node.text;
    if (text.size() < 4 || text.compare(text.size() - 3, 3, suffix.text) != 0) continue;
    std::string number = text.substr(0, text.size() - 3);
    while (!number.empty() && number.back() == ' ') number.pop_back();
    const double value = LooksLikeNumber(number) ? std::strtod(number.c_str(), nullptr) : -1;
    const double bytes = std::ldexp(value, suffix.shift);
    if (value > 0 && bytes < std::ldexp(1.0, 62)) return static_cast<std::int64_t>(bytes);
  }
  errors.Add(node, what + " must be a size with its unit: KiB, MiB, GiB or TiB", "such as 4GiB");
  return std::nullopt;
}

std::vector<const YamlNode*> ReadList(const YamlNode& node, const std::string& what,
                                      Errors& errors) {
  if (node.IsScalar()) return {&node};
  std::vector<const YamlNode*> list;
  if (!node.IsList()) {
    errors.Add(node, what + " must be a list, but is " + Describe(node),
               node.IsMap() && !node.keys.empty()
                   ? "each entry begins with a dash: - {" + node.keys.front().text + ": ...}"
                   : "");
    return list;
  }
  if (node.items.empty())
    errors.Add(node, what + " is an empty list", "it needs at least one entry, or is left out");
  for (const YamlNode& item : node.items) list.push_back(&item);
  return list;
}

std::vector<std::string> ReadTexts(const YamlNode& node, const std::string& what, Errors& errors) {
  std::vector<std::string> texts;
  for (const YamlNode* item : ReadList(node, what, errors)) {
    std::optional<std::string> text = ReadText(*item, "an entry of " + what, errors);
    if (!text) continue;
    if (std::find(texts.begin(), texts.end(), *text) != texts.end()) {
      errors.Add(*item, what + " holds '" + *text + "' twice");
    }
    texts.push_back(std::move(*text));
  }
  return texts;
}

std::optional<Json> ReadValue(const YamlNode& node, const ParamInfo& info, Errors& errors) {
  const std::size_t errors_before = errors.size();
  std::optional<Json> value;
  if (info.type == ValueType::kStringList || info.type == ValueType::kIntList) {
    value = Json::array();
    for (const YamlNode* item : ReadList(node, "'" + info.name + "'", errors)) {
      std::optional<Json> element = ReadScalarValue(*item, info, info.type, errors);
      if (element) value->push_back(std::move(*element));
    }
  } else {
    value = ReadScalarValue(node, info, info.type, errors);
  }
  if (!value || errors.size() > errors_before) return std::nullopt;
  const std::string wrong = CheckValue(info, *value);
  if (wrong.empty()) return value;
  std::string hint;
  if (value->is_string()) {
    const std::string nearest = NearestName(node.text, info.choices);
    if (!nearest.empty()) hint = "did you mean '" + nearest + "'?";
  }
  errors.Add(node, "'" + info.name + "' " + wrong, hint);
  return std::nullopt;
}

bool CheckFilledMap(const YamlNode& node, const std::string& what, Errors& errors,
                    const std::string& example) {
  if (!node.IsMap()) {
    std::string hint = example;
    if (hint.empty() && node.kind == YamlNode::Kind::kNull) {
      hint = "are the lines below it indented by two blanks more?";
    }
    if (hint.empty() && node.IsScalar()) hint = AsPair(node.text);
    errors.Add(node, what + " must be a map, but is " + Describe(node), hint);
    return false;
  }
  if (node.keys.empty() && !node.is_partial) {
    errors.Add(node, what + " is an empty map", "it needs at least one entry");
  }
  return !node.keys.empty();
}

bool CheckName(const YamlNode& key, const std::string& what, Errors& errors, bool may_have_dash) {
  constexpr std::size_t kLongest = 64;
  const std::string& text = key.text;
  const auto fits = [&](char c) {
    return (c >= 'a' && c <= 'z') || IsDigit(c) || c == '_' || (c == '-' && may_have_dash);
  };
  const bool is_letter_first = !text.empty() && text[0] >= 'a' && text[0] <= 'z';
  if (is_letter_first && text.back() != '-' && text.size() <= kLongest &&
      std::all_of(text.begin(), text.end(), fits)) {
    return true;
  }
  errors.Add(key,
             what + " must be at most 64 of a-z, 0-9" + (may_have_dash ? ", '-'" : "") +
                 " and '_', a letter first",
             may_have_dash ? "it becomes the name of a folder"
                           : "it becomes a name in formulas and folders");
  return false;
}

std::string SuggestName(const std::string& name, const std::vector<std::string>& known) {
  constexpr std::size_t kShown = 8;
  std::string nearest = NearestName(name, known);
  if (nearest.empty()) nearest = SameBeginning(name, known);
  if (!nearest.empty()) return "did you mean '" + nearest + "'?";
  if (known.empty() || known.size() > kShown) return "";
  return "known: " + Join(known);
}

}  // namespace trainwreck
