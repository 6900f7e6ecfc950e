#include "harness/keys/search.h"

#include <algorithm>
#include <deque>
#include <set>
#include <utility>

namespace trainwreck {
namespace {

constexpr std::size_t kConditionsAtOnce = 8;
constexpr std::size_t kValuesUnderConditions = 3;  // of each key

class Search {
 public:
  Search(const SearchInput& input, const KeyObserver& observer)
      : input_(input), observer_(observer) {}

  SearchResult Run();

 private:
  // Keys with one new value each, under one of the accepted conditions.
  struct Group {
    Recipe condition;
    std::vector<std::pair<std::string, Json>> changes;
  };

  bool CheckBase();
  void TryAlone();
  void TryWhereKnown();
  void TryUnderConditions();
  void Explore(const std::vector<Recipe>& conditions);
  void Settle(std::vector<Group> groups);
  void Read(const Group& group, const KeyObservation& seen, std::vector<Group>& halves);
  void Resolve(const Recipe& condition, const std::string& key, const Json& value,
               std::string record);

  std::vector<KeyObservation> Observe(const std::vector<KeyTrial>& trials);
  std::vector<Recipe> Accepted(const std::vector<Recipe>& conditions);
  void Repair(const std::vector<Recipe>& refused);
  std::vector<Group> GroupsUnder(const Recipe& condition, std::size_t layer) const;
  void EnqueueNumbers();
  bool IsOpen(const std::string& key) const;
  bool AnyOpen() const;
  std::vector<std::string> OpenKeys() const;
  void Enqueue(std::deque<Recipe>& queue, Recipe condition);

  const SearchInput& input_;
  const KeyObserver& observer_;
  SearchResult result_;
  std::map<Recipe, KeyObservation> bases_;  // by condition
  std::set<std::string> noise_;             // records that differ between equal runs
  std::set<std::string> refusers_;          // keys of which some value was refused: tried alone
  std::set<Recipe> enqueued_;
  std::deque<Recipe> repaired_, choices_, truths_, deeper_, numbers_;  // in this order
};

std::vector<KeyObservation> Search::Observe(const std::vector<KeyTrial>& trials) {
  result_.runs += static_cast<int>(trials.size());
  return trials.empty() ? std::vector<KeyObservation>() : observer_(trials);
}

bool Search::IsOpen(const std::string& key) const {
  const auto found = result_.keys.find(key);
  return found != result_.keys.end() && !found->second.acts;
}

std::vector<std::string> Search::OpenKeys() const {
  std::vector<std::string> open;
  for (const auto& [key, reading] : result_.keys) {
    // A key that acts elsewhere was asked under the condition under which it does.
    if (!reading.acts && !input_.known.contains(key)) open.push_back(key);
  }
  return open;
}

bool Search::AnyOpen() const { return !OpenKeys().empty(); }

// Those under which the target trains, and twice the same.
std::vector<Recipe> Search::Accepted(const std::vector<Recipe>& conditions) {
  std::vector<KeyTrial> trials;
  for (const Recipe& condition : conditions) {
    trials.push_back({condition, {}, 0});
    trials.push_back({condition, {}, 1});
  }
  const std::vector<KeyObservation> seen = Observe(trials);
  std::vector<Recipe> accepted, refused;
  for (std::size_t i = 0; i < conditions.size(); ++i) {
    const KeyObservation &one = seen[2 * i], &other = seen[2 * i + 1];
    if (!one.is_whole && !one.has_begun) refused.push_back(conditions[i]);
    if (!one.has_begun || !one.is_usable || !other.is_usable) continue;
    std::set<std::string> noise = noise_;
    for (const auto* run : {&one, &other}) {
      for (const auto& [name, digest] : run->records) {
        const auto x = one.records.find(name), y = other.records.find(name);
        const bool differs =
            x == one.records.end() || y == other.records.end() || x->second != y->second;
        if (differs && MayBeNoise(name)) noise.insert(name);
      }
    }
    const std::string difference = FirstOtherRecord(one, other, noise);
    if (conditions[i].empty()) result_.unsteady = difference;
    if (!difference.empty()) continue;
    noise_ = std::move(noise);
    bases_[conditions[i]] = one;
    accepted.push_back(conditions[i]);
  }
  Repair(refused);
  return accepted;
}

// A choice that the target refuses alone may be taken together with another one.
void Search::Repair(const std::vector<Recipe>& refused) {
  std::vector<KeyTrial> trials;
  std::vector<std::size_t> of;  // index of the refused one
  for (std::size_t i = 0; i < refused.size(); ++i) {
    if (refused[i].size() != 1) continue;
    const auto& [key, choice] = *refused[i].begin();
    if (!choice.is_string() || !input_.switches.contains(key)) continue;
    for (const auto& [other, values] : input_.switches) {
      if (other == key) continue;
      for (const Json& value : values) {
        if (!value.is_string()) continue;
        Recipe both = refused[i];
        both[other] = value;
        trials.push_back({both, {}, 0});
        of.push_back(i);
      }
    }
  }
  const std::vector<KeyObservation> seen = Observe(trials);
  std::set<std::size_t> repaired;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    if (seen[i].has_begun && repaired.insert(of[i]).second) {
      Enqueue(repaired_, trials[i].condition);
    }
  }
}

bool Search::CheckBase() {
  const std::vector<Recipe> accepted = Accepted({Recipe()});
  if (!accepted.empty() && bases_.at({}).is_whole) return true;
  if (result_.unsteady.empty()) {
    const KeyObservation seen = observer_({{{}, {}, 0}}).front();
    result_.failure = seen.words.empty() ? "it did not come to its end" : seen.words;
  }
  return false;
}

void Search::Resolve(const Recipe& condition, const std::string& key, const Json& value,
                     std::string record) {
  KeyReading& reading = result_.keys.at(key);
  if (reading.acts) return;
  reading.acts = Witness{condition, value, std::move(record)};
  if (condition.empty()) return;
  // What acts here only may be what others wait for.
  const bool is_switch = input_.switches.contains(key);
  for (const Json& other : input_.values.at(key)) {
    if (!is_switch && other != value) continue;
    Recipe deeper = condition;
    deeper[key] = other;
    Enqueue(deeper_, std::move(deeper));
  }
}

void Search::Read(const Group& group, const KeyObservation& seen, std::vector<Group>& halves) {
  const KeyObservation& base = bases_.at(group.condition);
  const bool is_refused = IsRefused(seen, base);
  const std::string record = is_refused ? "" : FirstOtherRecord(base, seen, noise_);
  if (!is_refused && record.empty()) {
    for (const auto& [key, value] : group.changes) ++result_.keys.at(key).tried;
    return;
  }
  if (group.changes.size() == 1) {
    const auto& [key, value] = group.changes.front();
    if (!is_refused) return Resolve(group.condition, key, value, record);
    refusers_.insert(key);
    KeyReading& reading = result_.keys.at(key);
    if (reading.refusal.empty()) reading.refusal = seen.words;
    return;
  }
  const auto middle = group.changes.begin() + static_cast<std::ptrdiff_t>(group.changes.size() / 2);
  halves.push_back({group.condition, {group.changes.begin(), middle}});
  halves.push_back({group.condition, {middle, group.changes.end()}});
}

void Search::Settle(std::vector<Group> groups) {
  while (!groups.empty()) {
    std::vector<Group> asked;
    std::vector<KeyTrial> trials;
    for (Group& group : groups) {
      std::erase_if(group.changes, [&](const auto& change) { return !IsOpen(change.first); });
      if (group.changes.empty()) continue;
      trials.push_back({group.condition, {group.changes.begin(), group.changes.end()}, 0});
      asked.push_back(std::move(group));
    }
    const std::vector<KeyObservation> seen = Observe(trials);
    groups.clear();
    for (std::size_t i = 0; i < asked.size(); ++i) Read(asked[i], seen[i], groups);
  }
}

// One value of each key at a time, until it acts.
void Search::TryAlone() {
  bool any = true;
  for (std::size_t layer = 0; any; ++layer) {
    std::vector<Group> groups;
    any = false;
    for (const auto& [key, values] : input_.values) {
      if (!IsOpen(key) || input_.known.contains(key) || layer >= values.size()) continue;
      any = true;
      groups.push_back({{}, {{key, values[layer]}}});
    }
    Settle(std::move(groups));
  }
}

// Keys that act elsewhere: with the value and under the condition of there, then with other values.
void Search::TryWhereKnown() {
  std::vector<Recipe> conditions;
  for (const auto& [key, witness] : input_.known) {
    if (!result_.keys.contains(key) || bases_.contains(witness.condition)) continue;
    if (std::find(conditions.begin(), conditions.end(), witness.condition) == conditions.end()) {
      conditions.push_back(witness.condition);
    }
  }
  const std::vector<Recipe> accepted = Accepted(conditions);
  result_.conditions += static_cast<int>(accepted.size());
  bool any = true;
  for (std::size_t layer = 0; any; ++layer) {
    std::vector<Group> groups;
    any = false;
    for (const auto& [key, witness] : input_.known) {
      if (!IsOpen(key) || !bases_.contains(witness.condition)) continue;
      std::vector<Json> values = {witness.value};
      for (const Json& value : input_.values.at(key)) {
        if (value != witness.value) values.push_back(value);
      }
      if (layer >= values.size()) continue;
      any = true;
      groups.push_back({witness.condition, {{key, values[layer]}}});
    }
    Settle(std::move(groups));
  }
}

void Search::Enqueue(std::deque<Recipe>& queue, Recipe condition) {
  for (const auto& [key, value] : condition) {
    const auto own = input_.base.find(key);
    if (own != input_.base.end() && own->second == value) return;
  }
  if (enqueued_.insert(condition).second) queue.push_back(std::move(condition));
}

// The open keys at once, each with one of its values; those that are often refused alone. In two
// halves of every second key: one may hide what its neighbour does, as a factor of 1 hides when it
// is applied.
std::vector<Search::Group> Search::GroupsUnder(const Recipe& condition, std::size_t layer) const {
  std::vector<Group> groups;
  Group halves[] = {{condition, {}}, {condition, {}}};
  std::size_t taken = 0;
  for (const std::string& key : OpenKeys()) {
    const std::vector<Json>& values = input_.values.at(key);
    if (layer >= values.size()) continue;
    // A choice that was refused alone is changed under the one that was taken with another.
    const auto own = condition.find(key);
    if (own != condition.end() && (condition.size() == 1 || own->second == values[layer])) continue;
    if (refusers_.contains(key)) {
      groups.push_back({condition, {{key, values[layer]}}});
    } else {
      halves[taken++ % 2].changes.emplace_back(key, values[layer]);
    }
  }
  for (Group& half : halves) groups.push_back(std::move(half));
  return groups;
}

void Search::Explore(const std::vector<Recipe>& conditions) {
  const std::vector<Recipe> accepted = Accepted(conditions);
  result_.conditions += static_cast<int>(accepted.size());
  for (std::size_t layer = 0; layer < kValuesUnderConditions; ++layer) {
    std::vector<Group> groups;
    for (const Recipe& condition : accepted) {
      for (Group& group : GroupsUnder(condition, layer)) groups.push_back(std::move(group));
    }
    Settle(std::move(groups));
  }
}

// Takes the values of numbers that showed something, and both ends: some keys act only at extremes.
void Search::EnqueueNumbers() {
  for (const auto& [key, values] : input_.numbers) {
    const auto found = result_.keys.find(key);
    if (found != result_.keys.end() && found->second.acts &&
        found->second.acts->condition.empty()) {
      Enqueue(numbers_, {{key, found->second.acts->value}});
    }
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    if (least == values.end()) continue;
    Enqueue(numbers_, {{key, *least}});
    Enqueue(numbers_, {{key, *most}});
  }
}

void Search::TryUnderConditions() {
  for (const auto& [key, values] : input_.switches) {
    for (const Json& value : values) {
      Enqueue(value.is_boolean() ? truths_ : choices_, {{key, value}});
    }
  }
  EnqueueNumbers();
  while (AnyOpen()) {
    std::deque<Recipe>* queue = nullptr;
    for (auto* one : {&numbers_, &deeper_, &truths_, &choices_, &repaired_}) {
      if (!one->empty()) queue = one;
    }
    if (queue == nullptr) return;
    if (input_.max_runs > 0 && result_.runs >= input_.max_runs) {
      result_.is_cut_off = true;
      return;
    }
    // Under one that was repaired many keys act, which then need no other.
    const std::size_t most = queue == &repaired_ ? 1 : kConditionsAtOnce;
    std::vector<Recipe> conditions;
    while (!queue->empty() && conditions.size() < most) {
      conditions.push_back(std::move(queue->front()));
      queue->pop_front();
    }
    Explore(conditions);
  }
}

SearchResult Search::Run() {
  if (!CheckBase()) return std::move(result_);
  for (const auto& [key, values] : input_.values) {
    if (!values.empty()) result_.keys[key] = {};
  }
  TryWhereKnown();
  TryAlone();
  TryUnderConditions();
  return std::move(result_);
}

}  // namespace

SearchResult SearchKeys(const SearchInput& input, const KeyObserver& observer) {
  return Search(input, observer).Run();
}

}  // namespace trainwreck
