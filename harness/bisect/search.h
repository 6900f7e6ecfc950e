// The search for the commit that made runs fail more often, through noise. Bayesian: after each run
// every commit, and "no commit at all", has the probability that Bayes' theorem gives it over all
// behaviours of a noise model; the next run is the one that tells most per cost. Pure: it starts
// nothing and knows nothing of git, and the same observations always lead to the same next step.
//
//   Search search(History::Line(128), FailureRates(), {});
//   for (;;) {
//     Step step = search.Next();
//     if (step.kind != Step::kRun) break;             // culprit, no change, ...
//     search.Observe(step.commit, RunFails(step.commit));
//   }
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "harness/bisect/noise.h"

namespace trainwreck {

// Commits by number: 0 is the good end, 1..size() are the candidates, ancestors before their
// descendants, size() is the bad end, whose ancestors they all are. A culprit spoils itself and all
// of its descendants, as git bisect has it.
// The program has another History, of verdicts (harness/history); both are linked into it.
inline namespace search {
class History {
 public:
  // parents[i] lists the parents of candidate i + 1; those that are no candidates as 0.
  explicit History(const std::vector<std::vector<int>>& parents);
  static History Line(int size);

  int size() const { return static_cast<int>(ancestors_.size()) - 1; }
  const std::vector<int>& parents(int commit) const { return parents_[commit]; }
  // Whether `commit` is bad if `culprit` is to blame; also: whether `culprit` is `commit` or an
  // ancestor of it.
  bool IsBad(int culprit, int commit) const {
    return culprit > 0 && (ancestors_[commit][culprit / 64] >> (culprit % 64) & 1) != 0;
  }
  int AncestorCount(int commit) const { return counts_[commit]; }  // itself included

 private:
  std::vector<std::vector<int>> parents_;
  std::vector<std::vector<std::uint64_t>> ancestors_;
  std::vector<int> counts_;
};
}  // namespace search

struct SearchOptions {
  double confidence = 0.95;
  int max_runs = 1000;
  int max_end_runs = 160;  // of both ends together, before they count as alike
};

struct Step {
  enum Kind {
    kRun,        // run `commit`
    kCulprit,    // found
    kNoChange,   // both ends behave alike; nothing can be blamed
    kUndecided,  // max_runs are used up, or an end cannot be tested
  };
  Kind kind = kRun;
  int commit = 0;
  // Of a run: "ends", "search" or "retest" (one commit is likelier than all others together).
  const char* phase = "";
};

// What a run of a commit costs, in any unit.
struct Cost {
  double prepare = 0;  // before the first one: checking out, building; 0 when that is done
  double run = 1;
};

class Search {
 public:
  Search(History history, NoiseModel model, SearchOptions options);

  // A run of `commit`: 1 failed, 0 passed; or its margin.
  void Observe(int commit, double result);
  // `commit` cannot be tested: it is never asked for again, but may be the culprit.
  void Skip(int commit);
  // Both are the same program, so nothing that lies between them is the culprit.
  void Merge(int a, int b);

  Step Next(const std::function<Cost(int)>& cost_of = {}) const;

  // By commit; [0] is "no culprit at all".
  const std::vector<double>& posterior() const { return posterior_; }
  // The likeliest commit, together with those that cannot be told from it because what lies between
  // them cannot be tested; in ascending order.
  const std::vector<int>& suspects() const { return suspects_; }
  // That it is one of these: their posterior, less what simulations show it to be too sure of.
  double confidence() const;
  // Where the suspects show: the first commit that has them all and can be tested, and the last
  // ones that have none of them.
  int Witness() const;
  std::vector<int> WitnessParents() const;

  int runs() const { return runs_; }
  int runs_of(int commit) const { return runs_of_[commit]; }
  // What is thought of the behaviour now, given that there is a culprit.
  double GoodLevel() const;
  double BadLevel() const;
  double BitsPerRun() const;  // at best, for a search that knows it
  const History& history() const { return history_; }

 private:
  void Update();
  void FindSuspects();
  Step Choose(const std::function<Cost(int)>& cost_of) const;
  Step PickEnd() const;
  std::optional<Step> PickMeasurement() const;
  std::optional<Step> PickRetest() const;
  Step PickSearch(const std::function<Cost(int)>& cost_of) const;
  std::vector<double> BadProbabilities() const;
  bool CanTest(int commit) const { return !is_skipped_[commit]; }

  History history_;
  NoiseModel model_;
  SearchOptions options_;
  // Joint weights of a culprit and a pair of behaviours, and of no culprit and a single one; all
  // together they sum to 1.
  std::vector<std::vector<double>> weights_;
  std::vector<double> none_weights_;
  std::vector<bool> is_noisy_;  // by pair of behaviours
  std::vector<bool> is_skipped_;
  std::vector<int> runs_of_;
  int runs_ = 0;
  // Derived by Update().
  std::vector<double> posterior_, pair_weights_;
  NoiseModel::Table if_good_, if_bad_;  // by culprit: what a run of a good or bad commit shows then
  std::vector<int> suspects_;
  double suspected_ = 0;  // the posterior of all of them
};

}  // namespace trainwreck
