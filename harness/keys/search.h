// Which recipe keys change nothing that is observed. Each key is changed alone; one that changes
// nothing is tried again under conditions, which are other values of other keys: "momentum acts
// under optimizer.kind=sgd". What acts only under a condition gives further conditions. Under a
// condition, all remaining keys are first changed together; where this changes something, they are
// halved.
//
//   SearchResult result = SearchKeys({.values = {{"optimizer.eps", {1e-7}}}, ...}, observer);
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/keys/trial.h"
#include "harness/protocol/json.h"

namespace trainwreck {

// Where a key was seen to act.
struct Witness {
  Recipe condition;  // empty: on the recipe as it is
  Json value;
  std::string record;  // the first that differs
};

struct KeyReading {
  std::optional<Witness> acts;
  int tried = 0;        // changes that the target took and that changed nothing
  std::string refusal;  // the target's message about a refused value
  // Whether it was tried and changed nothing. Where the target took no value, it was not tried.
  bool IsIgnored() const { return !acts && tried > 0; }
};

struct SearchInput {
  Recipe base;
  std::map<std::string, std::vector<Json>> values;  // key -> what it is changed to, in this order
  // Key -> values that make conditions. Switches (of choices and truths) come before numbers.
  std::map<std::string, std::vector<Json>> switches, numbers;
  std::map<std::string, Witness> known;  // where keys acted in another context: tried there alone
  int max_runs = 0;
};

struct SearchResult {
  std::string failure;   // not empty: why the base run is not usable; nothing else was done
  std::string unsteady;  // not empty: what differs between two base runs; nothing else was done
  std::map<std::string, KeyReading> keys;
  int runs = 0;
  int conditions = 0;       // that were taken
  bool is_cut_off = false;  // by max_runs: conditions are left
};

SearchResult SearchKeys(const SearchInput& input, const KeyObserver& observer);

}  // namespace trainwreck
