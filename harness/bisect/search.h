// The search for the commit that made runs fail more often, through noise. Bayesian: after each
// run, Bayes' theorem gives every commit, and "no commit at all", a probability over all behaviours
// of a noise model. The next run is the one with the most information per cost. Pure: it starts
// nothing and knows nothing of git, and the same observations always lead to the same next step.
//
//   Search search(CommitGraph::Line(128), FailureRates(), {});
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

// Commits by number. 0 is the good end; 1..size() are the candidates, ancestors before their
// descendants. size() is the bad end: all others are its ancestors. As in git bisect, a culprit
// makes itself and all of its descendants bad.
class CommitGraph {
 public:
  // parents[i] lists the parents of candidate i + 1; a parent that is no candidate is 0.
  explicit CommitGraph(const std::vector<std::vector<int>>& parents);
  static CommitGraph Line(int size);

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
  // The purpose of a run: "ends", "search" or "retest" (one commit is likelier than all others
  // together).
  const char* phase = "";
};

// The cost of running a commit, in any unit.
struct Cost {
  double prepare = 0;  // before the first one: checking out, building; 0 when that is done
  double run = 1;
};

class Search {
 public:
  Search(CommitGraph history, NoiseModel model, SearchOptions options);

  // Takes the result of a run of `commit`: 1 failed, 0 passed; or its margin. After many runs at
  // once, one Refresh() at the end is enough.
  void Observe(int commit, double result, bool refresh = true);
  void Refresh() { Update(); }
  // `commit` cannot be tested: it is never asked for again, but may be the culprit.
  void Skip(int commit);
  // `commit` is known to be good or bad: it is not run. False, and nothing is changed, when no
  // culprit would be left.
  bool Mark(int commit, bool is_bad);
  // Both are the same program, so nothing that lies between them is the culprit.
  void Merge(int a, int b);

  Step Next(const std::function<Cost(int)>& cost_of = {}) const;

  // The probability of each commit to be the culprit; [0] is "no culprit at all".
  const std::vector<double>& posterior() const { return posterior_; }
  // The likeliest commit, with those that cannot be told from it because the commits between them
  // cannot be tested; in ascending order.
  const std::vector<int>& suspects() const { return suspects_; }
  // The probability that the culprit is among the suspects: their posterior, corrected by how far
  // simulations show it to be overconfident.
  double confidence() const;
  // The testable commits around the suspects: the first one that has them all, and the last ones
  // that have none of them.
  int Witness() const;
  std::vector<int> WitnessParents() const;

  int runs() const { return runs_; }
  int runs_of(int commit) const { return runs_of_[commit]; }
  // The estimated failure rate or margin before the culprit, given that there is one.
  double GoodLevel() const;
  double BadLevel() const;
  double BitsPerRun() const;  // at best, if the behaviour were known
  const CommitGraph& history() const { return history_; }

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

  CommitGraph history_;
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
