#include "harness/targets/printed_metrics.h"

#include <re2/re2.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <map>

#include "harness/targets/option_roles.h"

namespace trainwreck {
namespace {

// A name and its number: `loss 2.3`, `loss: 2.3`, `loss=2.3`, `'loss': 2.3`; and what follows.
constexpr char kPair[] =
    R"re(((?:(?:train|val|validation|eval|test) )?[A-Za-z][\w/.-]*)(['"]?(?:\s*[:=]\s*|\s+)['"]?)([-+]?\d+\.?\d*(?:[eE][-+]?\d+)?|nan|inf)\b)re";

struct Pair {
  std::string name;
  std::string between;  // ": "
  std::string value;
  bool ends_word = false;  // a space comes after the value, or nothing

  // Widths of columns may change.
  std::string Text(const std::string& signal, bool is_step, bool is_apart) const;
};

struct Kind {
  std::string line;
  int lines = 0;
  std::vector<std::string> names;
  std::vector<Pair> pairs;        // of the first line
  std::vector<std::string> next;  // the values of the second
};

struct KnownMetric {
  const char* role;
  std::vector<const char*> names;
};

const std::vector<KnownMetric>& KnownMetrics() {
  static const std::vector<KnownMetric> all = {
      {"loss", {"loss", "train_loss", "training_loss"}},
      {"eval_loss",
       {"eval_loss", "val_loss", "valid_loss", "validation_loss", "dev_loss", "test_loss"}},
      {"grad_norm", {"grad_norm", "gradient_norm", "gnorm", "train_grad_norm"}},
      {"lr", {"lr", "learning_rate", "train_lr", "train_learning_rate"}},
  };
  return all;
}

std::string Plain(const std::string& name) {
  std::string plain;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    plain += std::isalnum(byte) ? static_cast<char>(std::tolower(byte)) : '_';
  }
  return plain;
}

Kind KindOf(const std::string& line) {
  static const RE2 pattern(kPair);
  Kind kind{.line = line, .lines = 1};
  re2::StringPiece rest = line;
  Pair pair;
  while (RE2::FindAndConsume(&rest, pattern, &pair.name, &pair.between, &pair.value)) {
    pair.ends_word = rest.empty() || std::isspace(static_cast<unsigned char>(rest[0])) != 0;
    kind.names.push_back(pair.name);
    kind.pairs.push_back(pair);
  }
  return kind;
}

std::string Pair::Text(const std::string& signal, bool is_step, bool is_apart) const {
  std::string text = is_apart ? R"((?:^|[^\w/.-]))" : R"(\b)";
  for (const char c : name) text += c == '.' ? R"(\.)" : std::string(1, c);
  const bool has_mark = between.find_first_not_of(" \t") != std::string::npos;
  for (const char c : between) {
    const bool is_space = std::isspace(static_cast<unsigned char>(c)) != 0;
    if (!is_space) text += c;
    if (is_space && !text.ends_with(R"(\s*)") && !text.ends_with(R"(\s+)")) {
      text += has_mark ? R"(\s*)" : R"(\s+)";
    }
  }
  const char* const number = is_step ? R"(\d+)" : ends_word ? R"(\S+)" : R"([^\s,;)}\]'"|]+)";
  return text + "(?P<" + signal + ">" + number + ")";
}

bool IsStep(const Pair& pair) {
  static const std::vector<std::string> names = {"step", "iter", "iteration", "global_step"};
  return std::ranges::count(names, Plain(pair.name)) > 0 && IsWhole(pair.value);
}

// Where a second line says it.
bool GoesUp(const Kind& kind, std::size_t i) {
  if (kind.next.empty()) return true;
  return IsWhole(kind.next[i]) &&
         std::atoi(kind.next[i].c_str()) > std::atoi(kind.pairs[i].value.c_str());
}

bool HasRole(const Kind& kind, const std::string& role) {
  return std::ranges::any_of(kind.names,
                             [&](const std::string& name) { return RoleOfMetric(name) == role; });
}

// An evaluation may come once in a program's first steps. Other numbers may be of its start.
bool IsEnough(const Kind& kind) { return kind.lines > 1 || HasRole(kind, "eval_loss"); }

PrintedMetrics MetricsOf(const Kind& kind, const std::vector<std::string>& known) {
  PrintedMetrics found{.line = kind.line};
  for (std::size_t i = 0; i < kind.pairs.size(); ++i) {
    const Pair& pair = kind.pairs[i];
    const std::string& name = pair.name;
    // Else the pattern would find `loss` in `val/loss`.
    const bool is_apart = std::ranges::any_of(kind.names, [&](const std::string& other) {
      return other != name && other.ends_with(name);
    });
    if (!found.has_step && IsStep(pair) && GoesUp(kind, i)) {
      found.has_step = true;
      found.first_step = pair.value == "0" ? 0 : 1;
      found.metrics.push_back({name, "step", pair.Text("step", true, is_apart)});
      continue;
    }
    const std::string role = RoleOfMetric(name);
    const auto same = [&](const PrintedMetric& one) { return one.role == role; };
    if (role.empty() || std::ranges::count(known, role) > 0) continue;
    if (std::ranges::any_of(found.metrics, same)) continue;
    found.metrics.push_back({name, role, pair.Text(Plain(name), false, is_apart)});
  }
  return found;
}

}  // namespace

std::string RoleOfMetric(const std::string& name) {
  const std::string plain = Plain(name);
  for (const KnownMetric& known : KnownMetrics()) {
    if (std::ranges::count(known.names, plain) > 0) return known.role;
  }
  return "";
}

std::string PrintedMetric::Signal() const { return role == "step" ? role : Plain(name); }

std::string PrintedMetrics::Pattern() const {
  std::string pattern;
  for (const PrintedMetric& metric : metrics)
    pattern += (pattern.empty() ? "" : ".*?") + metric.text;
  return pattern;
}

std::optional<PrintedMetrics> FindPrintedMetrics(const std::vector<std::string>& lines,
                                                 const std::vector<std::string>& known) {
  std::map<std::vector<std::string>, Kind> kinds;
  for (const std::string& line : lines) {
    Kind kind = KindOf(line);
    if (kind.names.empty()) continue;
    const auto [at, is_new] = kinds.try_emplace(kind.names, kind);
    if (is_new || ++at->second.lines > 2) continue;
    for (const Pair& pair : kind.pairs) at->second.next.push_back(pair.value);
  }
  std::optional<PrintedMetrics> best;
  bool begins_at_0 = false;
  int most = 0;  // the loss of each step comes more often than that of an evaluation
  for (const auto& [names, kind] : kinds) {
    if (known.empty() && HasRole(kind, "loss")) most = std::max(most, kind.lines);
  }
  for (const auto& [names, kind] : kinds) {
    begins_at_0 |= std::ranges::any_of(
        kind.pairs, [](const Pair& pair) { return IsStep(pair) && pair.value == "0"; });
    if (!IsEnough(kind) || 2 * kind.lines < most) continue;
    PrintedMetrics found = MetricsOf(kind, known);
    if (found.metrics.size() == (found.has_step ? 1 : 0)) continue;
    if (!best || found.metrics.size() > best->metrics.size()) best = std::move(found);
  }
  if (best && begins_at_0) best->first_step = 0;  // as other lines say
  return best;
}

}  // namespace trainwreck
