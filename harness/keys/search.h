// Which recipe keys change nothing that is observed. Each key is changed alone; one that changes
// nothing is tried again under conditions, which are other values of other keys: "momentum acts
// under optimizer.kind=sgd". What acts only under a condition gives further conditions. Under a
// condition all keys that are left are changed together first, and halved where that shows.
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
  std::string refusal;  // what the target said of a value that it refused, if it did
  // Neither acts nor changed nothing: no value was taken.
  bool IsIgnored() const { return !acts && tried > 0; }
};

struct SearchInput {
  Recipe base;
  std::map<std::string, std::vector<Json>> values;  // key -> what it is changed to, in this order
  // Key -> values that make conditions. Switches (of choices and truths) come before numbers.
  std::map<std::string, std::vector<Json>> switches, numbers;
  std::map<std::string, Witness> known;  // where keys acted in another context: asked there alone
  int max_runs = 0;
};

struct SearchResult {
  std::string failure;   // not empty: why the base run is none, and nothing else was done
  std::string unsteady;  // not empty: what differs between two base runs, and nothing else was done
  std::map<std::string, KeyReading> keys;
  int runs = 0;
  int conditions = 0;       // that were taken
  bool is_cut_off = false;  // by max_runs: conditions are left
};

SearchResult SearchKeys(const SearchInput& input, const KeyObserver& observer);

}  // namespace trainwreck
