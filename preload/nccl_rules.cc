#include "preload/nccl_rules.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <limits>

namespace trainwreck::preload {
namespace {

constexpr std::array<std::string_view, 10> kOps = {
    "all_reduce", "broadcast", "reduce", "all_gather",  "reduce_scatter",
    "all_to_all", "send",      "recv",   "group_start", "group_end"};
constexpr std::array<std::string_view, 6> kActions = {"delay",   "drop",  "error",
                                                      "reorder", "fewer", "retype"};
// By ncclDataType_t: int8, uint8, int32, uint32, int64, uint64, half, float, double, bfloat16 and
// the two of eight bits.
constexpr std::array<std::size_t, 12> kBytes = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};

// The parts that are not empty. (Not by a stream: its library would be loaded with the shim.)
std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    if (end > begin) parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

long Number(const std::string& key, const std::string& text, long least, long most) {
  long value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || value < least || value > most) {
    throw NcclRuleError(key + "=" + text + ": a whole number from " + std::to_string(least) +
                        " is needed");
  }
  return value;
}

template <typename Enum, std::size_t kSize>
Enum Named(const std::string& key, const std::string& text,
           const std::array<std::string_view, kSize>& names) {
  const auto found = std::find(names.begin(), names.end(), text);
  if (found == names.end()) throw NcclRuleError(key + "=" + text + ": no such " + key);
  return static_cast<Enum>(found - names.begin());
}

std::vector<int> Ranks(const std::string& text) {
  std::vector<int> ranks;
  for (const std::string& one : Split(text, ',')) {
    ranks.push_back(static_cast<int>(Number("ranks", one, 0, std::numeric_limits<int>::max())));
  }
  if (ranks.empty()) throw NcclRuleError("ranks=: none");
  return ranks;
}

void Set(NcclRule& rule, const std::string& key, const std::string& value) {
  constexpr long kMost = std::numeric_limits<int>::max();
  if (key == "do") {
    rule.action = Named<NcclAction>(key, value, kActions);
  } else if (key == "op") {
    rule.any_op = value == "any";
    if (!rule.any_op) rule.op = Named<NcclOp>(key, value, kOps);
  } else if (key == "id") {
    rule.id = value;
  } else if (key == "ranks") {
    rule.ranks = Ranks(value);
  } else if (key == "call") {
    rule.first_call = Number(key, value, 0, kMost);
  } else if (key == "calls") {
    rule.calls = Number(key, value, 0, kMost);
  } else if (key == "ms") {
    rule.delay_ms = Number(key, value, 0, kMost);
  } else if (key == "code") {
    rule.code = static_cast<int>(Number(key, value, 1, kMost));
  } else if (key == "elements") {
    rule.elements = static_cast<std::size_t>(Number(key, value, 1, kMost));
  } else if (key == "datatype") {
    rule.datatype = static_cast<int>(Number(key, value, 0, kBytes.size() - 1));
  } else {
    throw NcclRuleError(key + ": no such field");
  }
}

NcclRule ParseRule(const std::string& text) {
  NcclRule rule;
  bool acts = false;
  for (const std::string& word : Split(text, ' ')) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos) throw NcclRuleError(word + ": no key=value");
    const std::string key = word.substr(0, equals);
    Set(rule, key, word.substr(equals + 1));
    acts = acts || key == "do";
  }
  if (!acts) throw NcclRuleError("'" + text + "' does not say what to do");
  const bool fits_groups = rule.action == NcclAction::kDelay || rule.action == NcclAction::kError;
  if (!rule.any_op && !MovesData(rule.op) && !fits_groups) {
    throw NcclRuleError("do=" + std::string(NameOf(rule.action)) +
                        ": the begin and the end of a group can be delayed or fail");
  }
  return rule;
}

}  // namespace

std::string_view NameOf(NcclOp op) { return kOps.at(static_cast<std::size_t>(op)); }
std::string_view NameOf(NcclAction action) { return kActions.at(static_cast<std::size_t>(action)); }

bool NcclRule::ActsOnRank(int rank) const {
  return ranks.empty() || std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
}

std::vector<NcclRule> ParseNcclRules(const std::string& text) {
  std::vector<NcclRule> rules;
  for (const std::string& part : Split(text, ';')) {
    if (part.find_first_not_of(' ') != std::string::npos) rules.push_back(ParseRule(part));
  }
  return rules;
}

std::size_t BytesOfDatatype(int datatype) {
  return datatype >= 0 && static_cast<std::size_t>(datatype) < kBytes.size()
             ? kBytes[static_cast<std::size_t>(datatype)]
             : 0;
}

std::vector<NcclRules::Match> NcclRules::Count(NcclOp op, int rank) {
  std::vector<Match> matches;
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    const NcclRule& rule = rules_[i];
    if (rule.any_op ? !MovesData(op) : rule.op != op) continue;
    const long call = seen_[i]++;
    if (!rule.ActsOnRank(rank) || call < rule.first_call) continue;
    if (rule.calls > 0 && call >= rule.first_call + rule.calls) continue;
    matches.push_back({&rule, call});
  }
  return matches;
}

}  // namespace trainwreck::preload
