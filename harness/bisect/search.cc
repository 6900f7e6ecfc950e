#include "harness/bisect/search.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <utility>

namespace trainwreck {
namespace {

// The user says that something broke. At times nothing did.
constexpr double kPriorOfNone = 0.1;
// Each end is run so often before anything else; more often while "no change" is not unlikely.
constexpr int kFirstLooks = 1;
// The ends are run until "no change" is less likely than this; the search goes on to weigh it.
constexpr double kDoubt = 0.15;
// The posterior is too sure of itself, since no behaviour is exactly one of the model's; the more
// so, simulations show, the more alike good and bad runs are. The odds against the suspects are
// divided by 2.2 times the total variation distance of such runs, less 1, but at most multiplied by
// this.
constexpr double kMostOverconfident = 4;
// A run that tells less than so many bits at best is noisy. When that is likely, the ends are run
// for this share of the runs that the search takes at least, so that it knows the behaviours.
constexpr double kNoisyBits = 0.42;
constexpr double kNoiseIsLikely = 0.65;
constexpr double kShareOfEnds = 0.3;
constexpr double kNothingToLearn = 1e-3;  // bits
// So often were the culprit and those before it run when it is named. A broken commit that passes
// by luck is commoner than a sound one that fails.
constexpr int kLooksAtCulprit = 2;
constexpr int kLooksBefore = 4;
constexpr int kLargestBatch = 64;
// A behaviour with less weight than this is left out of what a run is expected to show.
constexpr double kNegligible = 1e-10;

}  // namespace

CommitGraph::CommitGraph(const std::vector<std::vector<int>>& parents) {
  const int size = static_cast<int>(parents.size());
  const std::size_t words = static_cast<std::size_t>(size) / 64 + 1;
  parents_.push_back({});
  parents_.insert(parents_.end(), parents.begin(), parents.end());
  ancestors_.assign(size + 1, std::vector<std::uint64_t>(words, 0));
  counts_.assign(size + 1, 0);
  for (int commit = 1; commit <= size; ++commit) {
    for (int parent : parents_[commit]) {
      for (std::size_t w = 0; w < words; ++w) ancestors_[commit][w] |= ancestors_[parent][w];
    }
    ancestors_[commit][commit / 64] |= std::uint64_t{1} << (commit % 64);
    for (std::uint64_t word : ancestors_[commit]) counts_[commit] += std::popcount(word);
  }
}

CommitGraph CommitGraph::Line(int size) {
  std::vector<std::vector<int>> parents(size);
  for (int i = 0; i < size; ++i) parents[i] = {i};
  return CommitGraph(parents);
}

Search::Search(CommitGraph history, NoiseModel model, SearchOptions options)
    : history_(std::move(history)), model_(std::move(model)), options_(options) {
  const int commits = history_.size() + 1;
  std::vector<double> of_one = model_.pair_prior;
  for (double& weight : of_one) weight *= (1 - kPriorOfNone) / history_.size();
  weights_.assign(commits, of_one);
  weights_[0].clear();
  none_weights_ = model_.single_prior;
  for (double& weight : none_weights_) weight *= kPriorOfNone;
  for (int pair = 0; pair < model_.pairs(); ++pair) {
    is_noisy_.push_back(model_.capacity[pair] < kNoisyBits);
  }
  is_skipped_.assign(commits, false);
  runs_of_.assign(commits, 0);
  Update();
}

void Search::Observe(int commit, double result, bool refresh) {
  const int bin = model_.BinOf(result);
  std::vector<double> good(model_.pairs()), bad(model_.pairs());
  for (int pair = 0; pair < model_.pairs(); ++pair) {
    good[pair] = model_.good[pair][bin];
    bad[pair] = model_.bad[pair][bin];
  }
  for (int culprit = 1; culprit <= history_.size(); ++culprit) {
    const double* seen = history_.IsBad(culprit, commit) ? bad.data() : good.data();
    double* weights = weights_[culprit].data();
    for (int pair = 0; pair < model_.pairs(); ++pair) weights[pair] *= seen[pair];
  }
  for (int i = 0; i < model_.singles(); ++i) none_weights_[i] *= model_.single[i][bin];
  ++runs_;
  ++runs_of_[commit];
  constexpr int kRunsUntilUnderflow = 32;  // at most: weights are products
  if (refresh || runs_ % kRunsUntilUnderflow == 0) Update();
}

void Search::Skip(int commit) {
  is_skipped_[commit] = true;
  FindSuspects();
}

bool Search::Mark(int commit, bool is_bad) {
  double left = 0;
  for (int culprit = 1; culprit <= history_.size(); ++culprit) {
    if (history_.IsBad(culprit, commit) == is_bad) left += posterior_[culprit];
  }
  if (left <= 0) return false;
  for (int culprit = 1; culprit <= history_.size(); ++culprit) {
    if (history_.IsBad(culprit, commit) == is_bad) continue;
    std::fill(weights_[culprit].begin(), weights_[culprit].end(), 0.0);
  }
  is_skipped_[commit] = true;
  Update();
  return true;
}

void Search::Merge(int a, int b) {
  for (int culprit = 1; culprit <= history_.size(); ++culprit) {
    if (history_.IsBad(culprit, a) == history_.IsBad(culprit, b)) continue;
    std::fill(weights_[culprit].begin(), weights_[culprit].end(), 0.0);
  }
  Update();
}

void Search::Update() {
  posterior_.assign(history_.size() + 1, 0.0);
  posterior_[0] = std::accumulate(none_weights_.begin(), none_weights_.end(), 0.0);
  for (int culprit = 1; culprit <= history_.size(); ++culprit) {
    for (double weight : weights_[culprit]) posterior_[culprit] += weight;
  }
  const double sum = std::accumulate(posterior_.begin(), posterior_.end(), 0.0);
  for (double& p : posterior_) p /= sum;
  for (double& weight : none_weights_) weight /= sum;
  pair_weights_.assign(model_.pairs(), 0.0);
  if_good_.assign(history_.size() + 1, std::vector<double>(model_.bins(), 0.0));
  if_bad_ = if_good_;
  const double change = 1 - posterior_[0];
  for (int culprit = 1; culprit <= history_.size(); ++culprit) {
    if (posterior_[culprit] <= 0) continue;
    for (int pair = 0; pair < model_.pairs(); ++pair) {
      double& weight = weights_[culprit][pair];
      weight /= sum;
      pair_weights_[pair] += weight / change;
      if (weight < kNegligible * posterior_[culprit]) continue;
      for (int k = 0; k < model_.bins(); ++k) {
        if_good_[culprit][k] += weight / posterior_[culprit] * model_.good[pair][k];
        if_bad_[culprit][k] += weight / posterior_[culprit] * model_.bad[pair][k];
      }
    }
  }
  for (int i = 0; i < model_.singles() && posterior_[0] > 0; ++i) {
    for (int k = 0; k < model_.bins(); ++k) {
      if_good_[0][k] += none_weights_[i] / posterior_[0] * model_.single[i][k];
    }
  }
  FindSuspects();
}

// Candidates that every commit that can be tested puts on the same side as the likeliest one.
void Search::FindSuspects() {
  const int best = static_cast<int>(std::max_element(posterior_.begin() + 1, posterior_.end()) -
                                    posterior_.begin());
  suspects_.clear();
  suspected_ = 0;
  const bool has_skips =
      std::find(is_skipped_.begin(), is_skipped_.end(), true) != is_skipped_.end();
  std::vector<bool> is_same(posterior_.size(), has_skips);
  is_same[best] = true;
  for (int commit = 1; has_skips && commit <= history_.size(); ++commit) {
    if (!CanTest(commit)) continue;
    const bool is_bad = history_.IsBad(best, commit);
    for (int other = 1; other <= history_.size(); ++other) {
      if (history_.IsBad(other, commit) != is_bad) is_same[other] = false;
    }
  }
  for (int other = 1; other <= history_.size(); ++other) {
    if (!is_same[other] || (other != best && posterior_[other] <= 0)) continue;
    suspects_.push_back(other);
    suspected_ += posterior_[other];
  }
}

int Search::Witness() const {
  int witness = history_.size();
  for (int commit = 1; commit <= history_.size(); ++commit) {
    if (CanTest(commit) && history_.IsBad(suspects_.front(), commit) &&
        history_.AncestorCount(commit) < history_.AncestorCount(witness)) {
      witness = commit;
    }
  }
  return witness;
}

std::vector<int> Search::WitnessParents() const {
  const int witness = Witness();
  std::vector<int> last;
  for (int commit = history_.size(); commit >= 1; --commit) {
    if (!CanTest(commit) || !history_.IsBad(commit, witness)) continue;  // no ancestor of it
    if (history_.IsBad(suspects_.front(), commit)) continue;
    const bool is_covered = std::any_of(last.begin(), last.end(),
                                        [&](int later) { return history_.IsBad(commit, later); });
    if (!is_covered) last.push_back(commit);
  }
  if (last.empty()) last.push_back(0);
  return last;
}

double Search::confidence() const {
  double distance = 0;  // expected, between a good run and a bad one
  for (int pair = 0; pair < model_.pairs(); ++pair) {
    for (int k = 0; k < model_.bins(); ++k) {
      distance += pair_weights_[pair] * std::abs(model_.good[pair][k] - model_.bad[pair][k]) / 2;
    }
  }
  const double doubt =
      (1 - suspected_) / std::clamp(2.2 * distance - 1, 1 / kMostOverconfident, 1.0);
  return suspected_ / (suspected_ + doubt);
}

double Search::GoodLevel() const {
  return std::inner_product(pair_weights_.begin(), pair_weights_.end(), model_.good_level.begin(),
                            0.0);
}

double Search::BadLevel() const {
  return std::inner_product(pair_weights_.begin(), pair_weights_.end(), model_.bad_level.begin(),
                            0.0);
}

double Search::BitsPerRun() const {
  return Capacity(Mix(model_.good, pair_weights_), Mix(model_.bad, pair_weights_));
}

Step Search::Next(const std::function<Cost(int)>& cost_of) const {
  const Step step = Choose(cost_of);
  if (step.kind == Step::kRun && runs_ >= options_.max_runs) return {Step::kUndecided};
  return step;
}

Step Search::Choose(const std::function<Cost(int)>& cost_of) const {
  const int bad_end = history_.size();
  if (!CanTest(0) || !CanTest(bad_end)) return {Step::kUndecided};
  if (runs_of_[bad_end] < kFirstLooks) return {Step::kRun, bad_end, "ends"};
  if (runs_of_[0] < kFirstLooks) return {Step::kRun, 0, "ends"};
  if (posterior_[0] >= 1 - (1 - options_.confidence) / 2) return {Step::kNoChange};
  if (posterior_[0] > kDoubt) {
    if (runs_of_[0] + runs_of_[bad_end] >= options_.max_end_runs) return {Step::kNoChange};
    return PickEnd();
  }
  if (confidence() >= options_.confidence) {
    if (auto retest = PickRetest()) return *retest;
    return {Step::kCulprit, suspects_.front()};
  }
  if (auto measurement = PickMeasurement()) return *measurement;
  return PickSearch(cost_of);
}

// The end that tells more about whether there is a change at all.
Step Search::PickEnd() const {
  const double change = 1 - posterior_[0];
  const double at_good = Information(change, if_good_[0], Mix(model_.good, pair_weights_));
  const double at_bad = Information(change, if_good_[0], Mix(model_.bad, pair_weights_));
  return {Step::kRun, at_good > at_bad ? 0 : history_.size(), "ends"};
}

// The end that tells more about the behaviours, as long as the search would suffer from not knowing
// them.
std::optional<Step> Search::PickMeasurement() const {
  double noisy = 0;
  for (int pair = 0; pair < model_.pairs(); ++pair) noisy += pair_weights_[pair] * is_noisy_[pair];
  const double at_least = std::log2(history_.size()) / BitsPerRun();
  const double wanted = std::min<double>(options_.max_end_runs, kShareOfEnds * at_least);
  if (noisy < kNoiseIsLikely || runs_of_[0] + runs_of_[history_.size()] >= wanted) return {};
  auto bits = [&](const NoiseModel::Table& table) {
    double known = 0;
    for (int pair = 0; pair < model_.pairs(); ++pair) {
      known += pair_weights_[pair] * Entropy(table[pair]);
    }
    return Entropy(Mix(table, pair_weights_)) - known;
  };
  const double at_good = bits(model_.good), at_bad = bits(model_.bad);
  if (std::max(at_good, at_bad) < kNothingToLearn) return {};
  return Step{Step::kRun, at_good > at_bad ? 0 : history_.size(), "ends"};
}

// Nobody is blamed unless its runs were repeated, and those of the commits before it.
std::optional<Step> Search::PickRetest() const {
  const int witness = Witness();
  if (runs_of_[witness] < kLooksAtCulprit) return Step{Step::kRun, witness, "retest"};
  for (int commit : WitnessParents()) {
    if (runs_of_[commit] < kLooksBefore) return Step{Step::kRun, commit, "retest"};
  }
  return std::nullopt;
}

// By commit: the probability that it is bad.
std::vector<double> Search::BadProbabilities() const {
  std::vector<double> is_bad(history_.size() + 1, 0.0);
  for (int commit = 1; commit <= history_.size(); ++commit) {
    if (history_.parents(commit).size() == 1) {
      is_bad[commit] = is_bad[history_.parents(commit)[0]] + posterior_[commit];
      continue;
    }
    for (int culprit = 1; culprit <= commit; ++culprit) {
      if (history_.IsBad(culprit, commit)) is_bad[commit] += posterior_[culprit];
    }
  }
  return is_bad;
}

Step Search::PickSearch(const std::function<Cost(int)>& cost_of) const {
  // A run of `commit` shows if_bad_[c] for culprits c among its ancestors and if_good_[c] for all
  // others. Both sums, of the probabilities and of their entropies, grow along a line.
  const int bins = model_.bins();
  const int columns = bins + 1;  // the last one is the entropy
  std::vector<double> base(columns, 0.0);
  NoiseModel::Table change(history_.size() + 1, std::vector<double>(columns, 0.0));
  for (int culprit = 0; culprit <= history_.size(); ++culprit) {
    const double p = posterior_[culprit];
    if (p <= 0) continue;
    for (int k = 0; k < bins; ++k) base[k] += p * if_good_[culprit][k];
    base[bins] += p * Entropy(if_good_[culprit]);
    if (culprit == 0) continue;
    for (int k = 0; k < bins; ++k) {
      change[culprit][k] = p * (if_bad_[culprit][k] - if_good_[culprit][k]);
    }
    change[culprit][bins] = p * (Entropy(if_bad_[culprit]) - Entropy(if_good_[culprit]));
  }
  NoiseModel::Table sums(history_.size() + 1, base);
  const std::vector<double> is_bad = BadProbabilities();
  int best_built = -1, best_new = -1;
  double most_built = -1, most_new = -1;
  for (int commit = 0; commit <= history_.size(); ++commit) {
    std::vector<double>& sum = sums[commit];
    auto add = [&](int culprit) {
      for (int i = 0; i < columns; ++i) sum[i] += change[culprit][i];
    };
    if (history_.parents(commit).size() == 1) {
      sum = sums[history_.parents(commit)[0]];
      add(commit);
    } else {
      for (int culprit = 1; culprit <= commit; ++culprit) {
        if (history_.IsBad(culprit, commit)) add(culprit);
      }
    }
    if (!CanTest(commit)) continue;
    const double bits = Entropy({sum.begin(), sum.end() - 1}) - sum.back();
    const bool is_built = !cost_of || cost_of(commit).prepare <= 0;
    double& most = is_built ? most_built : most_new;
    if (bits > most) {
      most = bits;
      (is_built ? best_built : best_new) = commit;
    }
  }
  const char* phase = suspected_ > 0.5 ? "retest" : "search";
  if (best_new < 0) return {Step::kRun, best_built, phase};
  if (best_built < 0) return {Step::kRun, best_new, phase};
  // What is built needs one run to tell that much; the other one a build, and as many runs as pay.
  const Cost cost = cost_of(best_new);
  const double once = BatchInformation(model_, pair_weights_, is_bad[best_new], 1);
  double per_cost = 0;
  for (int runs = 1; runs <= kLargestBatch; runs *= 2) {
    const double bits =
        once <= 0
            ? 0
            : most_new / once * BatchInformation(model_, pair_weights_, is_bad[best_new], runs);
    per_cost = std::max(per_cost, bits / (cost.prepare + runs * cost.run));
  }
  const bool is_built_better = most_built / cost_of(best_built).run >= per_cost;
  return {Step::kRun, is_built_better ? best_built : best_new, phase};
}

}  // namespace trainwreck
