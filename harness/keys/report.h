// The result of searches over the keys of a target in several contexts.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/keys/contexts.h"
#include "harness/keys/expected.h"
#include "harness/keys/search.h"
#include "harness/protocol/json.h"

namespace trainwreck {

// kElsewhere: it changes nothing here and on the plain recipe, but acts in another context: it is
// an option of that one. kIgnored and kStale fail.
enum class KeyState { kActs, kElsewhere, kDeclared, kRefused, kLeftOut, kIgnored, kStale };
const char* ToString(KeyState state);

struct SearchedContext {
  KeyContext context = KeyContext::kPlain;
  std::string lacking;  // not empty: the target cannot have it, and there is no search
  SearchResult search;
  std::map<std::string, std::string> left_out;  // key -> why
};

struct KeyFinding {
  std::string key;
  KeyContext context = KeyContext::kPlain;
  KeyState state = KeyState::kActs;
  std::string text;  // "under optimizer.kind=sgd", the reason of a declaration, ...
};

struct KeysReport {
  std::vector<SearchedContext> contexts;
  std::vector<KeyFinding> findings;  // by context, then by key

  int Count(KeyContext context, KeyState state) const;
  bool Fails() const;
};

// `plain` says where keys act even when it is not among the contexts that are judged.
KeysReport ConcludeKeys(std::vector<SearchedContext> contexts, const SearchResult& plain,
                        const std::vector<ExpectedIgnored>& expected);

std::string TextOf(const Recipe& condition);  // "model.kind=gpt, data.kind=markov"

Json ToJson(const KeysReport& report);

}  // namespace trainwreck
