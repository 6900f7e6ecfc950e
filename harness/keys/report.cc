#include "harness/keys/report.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace trainwreck {
namespace {

constexpr const char* kSchema = "trainwreck/keys";
constexpr int kSchemaVersion = 1;

// A context, other than `besides`, in which the key acts.
std::optional<KeyContext> ContextWhere(const std::string& key,
                                       const std::vector<SearchedContext>& contexts,
                                       KeyContext besides) {
  for (const SearchedContext& one : contexts) {
    const auto found = one.search.keys.find(key);
    if (one.context == besides || found == one.search.keys.end()) continue;
    if (found->second.acts) return one.context;
  }
  return std::nullopt;
}

bool ActsIn(const SearchResult& search, const std::string& key) {
  const auto found = search.keys.find(key);
  return found != search.keys.end() && found->second.acts;
}

const ExpectedIgnored* FindExpected(const std::vector<ExpectedIgnored>& expected,
                                    const std::string& key, KeyContext context) {
  const auto found = std::find_if(expected.begin(), expected.end(), [&](const auto& entry) {
    return entry.key == key && entry.contexts.contains(context);
  });
  return found == expected.end() ? nullptr : &*found;
}

std::string Describe(const Witness& witness) {
  const std::string value = witness.value.dump();
  return "as " + value + (witness.condition.empty() ? "" : " under " + TextOf(witness.condition)) +
         ": " + witness.record;
}

class Conclusion {
 public:
  Conclusion(const std::vector<SearchedContext>& contexts, const SearchResult& plain,
             const std::vector<ExpectedIgnored>& expected)
      : contexts_(contexts), plain_(plain), expected_(expected) {}

  KeyFinding Of(const std::string& key, const KeyReading& reading,
                const SearchedContext& one) const {
    KeyFinding finding = Seen(key, reading, one);
    const ExpectedIgnored* entry = FindExpected(expected_, key, one.context);
    if (entry == nullptr) return finding;
    if (finding.state == KeyState::kIgnored) {
      finding.state = KeyState::kDeclared;
      finding.text = entry->reason;
    } else {
      finding.text = std::string("declared to change nothing (") + entry->reason +
                     "), but: " + ToString(finding.state) + " " + finding.text;
      finding.state = KeyState::kStale;
    }
    return finding;
  }

 private:
  KeyFinding Seen(const std::string& key, const KeyReading& reading,
                  const SearchedContext& one) const {
    if (reading.acts) return {key, one.context, KeyState::kActs, Describe(*reading.acts)};
    if (!reading.IsIgnored()) return {key, one.context, KeyState::kRefused, reading.refusal};
    const auto where = ContextWhere(key, contexts_, one.context);
    if (where && !ActsIn(plain_, key)) {
      return {key, one.context, KeyState::kElsewhere, std::string("in ") + ToString(*where)};
    }
    std::string text = std::to_string(reading.tried) + " changes that changed nothing";
    if (ActsIn(plain_, key) && one.context != KeyContext::kPlain) {
      text += "; on the plain recipe it acts " + Describe(*plain_.keys.at(key).acts);
    }
    if (one.search.is_cut_off) text += "; --max-runs left conditions untried";
    return {key, one.context, KeyState::kIgnored, std::move(text)};
  }

  const std::vector<SearchedContext>& contexts_;
  const SearchResult& plain_;
  const std::vector<ExpectedIgnored>& expected_;
};

}  // namespace

const char* ToString(KeyState state) {
  switch (state) {
    case KeyState::kActs:
      return "acts";
    case KeyState::kElsewhere:
      return "acts elsewhere";
    case KeyState::kDeclared:
      return "declared";
    case KeyState::kRefused:
      return "refused";
    case KeyState::kLeftOut:
      return "left out";
    case KeyState::kIgnored:
      return "IGNORED";
    case KeyState::kStale:
      return "NOT AS DECLARED";
  }
  return "";
}

int KeysReport::Count(KeyContext context, KeyState state) const {
  return static_cast<int>(std::count_if(findings.begin(), findings.end(), [&](const auto& one) {
    return one.context == context && one.state == state;
  }));
}

bool KeysReport::Fails() const {
  return std::any_of(findings.begin(), findings.end(), [](const KeyFinding& one) {
    return one.state == KeyState::kIgnored || one.state == KeyState::kStale;
  });
}

std::string TextOf(const Recipe& condition) {
  std::string text;
  for (const auto& [key, value] : condition) {
    text += (text.empty() ? "" : ", ") + key + "=" +
            (value.is_string() ? value.get<std::string>() : value.dump());
  }
  return text;
}

KeysReport ConcludeKeys(std::vector<SearchedContext> contexts, const SearchResult& plain,
                        const std::vector<ExpectedIgnored>& expected) {
  KeysReport report;
  const Conclusion conclusion(contexts, plain, expected);
  for (const SearchedContext& one : contexts) {
    std::map<std::string, KeyFinding> by_key;
    for (const auto& [key, why] : one.left_out) {
      by_key[key] = {key, one.context, KeyState::kLeftOut, why};
    }
    for (const auto& [key, reading] : one.search.keys) {
      by_key[key] = conclusion.Of(key, reading, one);
    }
    for (auto& [key, finding] : by_key) report.findings.push_back(std::move(finding));
  }
  report.contexts = std::move(contexts);
  return report;
}

Json ToJson(const KeysReport& report) {
  Json contexts = Json::object(), findings = Json::array();
  for (const SearchedContext& one : report.contexts) {
    contexts[ToString(one.context)] = {
        {"lacking", one.lacking.empty() ? Json() : Json(one.lacking)},
        {"runs", one.search.runs},
        {"conditions", one.search.conditions},
        {"cut_off", one.search.is_cut_off}};
  }
  for (const KeyFinding& finding : report.findings) {
    findings.push_back({{"key", finding.key},
                        {"context", ToString(finding.context)},
                        {"state", ToString(finding.state)},
                        {"text", finding.text}});
  }
  return {{"schema", kSchema},
          {"version", kSchemaVersion},
          {"fails", report.Fails()},
          {"contexts", contexts},
          {"keys", findings}};
}

}  // namespace trainwreck
