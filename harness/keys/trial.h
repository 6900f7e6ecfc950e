// One training with a changed recipe, and what was seen of it. The search (search.h) asks for
// trials; runs of a target (key_runs.h), or a test, answer.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "harness/protocol/plan.h"

namespace trainwreck {

struct KeyTrial {
  Recipe condition;  // changes of the base recipe, for the whole run
  Recipe changes;    // changes of the keys under test, from where the context changes keys
  int repeat = 0;    // the same once more
  bool operator<(const KeyTrial& other) const;
};

struct KeyObservation {
  bool is_whole = false;   // it came to its end
  bool is_usable = true;   // as a base run: neither the watchdog nor a budget ended it
  bool has_begun = false;  // it recorded a step with the changes in force
  std::string words;       // of a run that is not whole: what it said
  // Name of a record -> its digest: "loss of rank 0", "event resumed.from_step of rank 0", "end".
  std::map<std::string, std::string> records;
};

// The observations, one for each trial, in their order. Throws SearchInterrupted.
using KeyObserver = std::function<std::vector<KeyObservation>(const std::vector<KeyTrial>&)>;

struct SearchInterrupted {};

// Whether records of this name are left out, because they may differ between two equal runs: fields
// of events, such as paths and process ids.
bool MayBeNoise(const std::string& record);

// The first record that differs; empty: there is none.
std::string FirstOtherRecord(const KeyObservation& a, const KeyObservation& b,
                             const std::set<std::string>& noise);

// Whether the target refused the recipe: the run ended before its first step and reported no event
// that the base run lacks.
bool IsRefused(const KeyObservation& seen, const KeyObservation& base);

}  // namespace trainwreck
