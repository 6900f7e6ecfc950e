// Simulated bisections: many random culprits, runs that fail at given rates, one line of JSON for
// each trial and method. simulate.py compares them with git-bayesect on the same histories.
//
//   search_simulation SIZE RATE_IF_BAD RATE_IF_GOOD TRIALS SEED
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "harness/bisect/search.h"

namespace trainwreck {
namespace {

// SplitMix64; simulate.py has the same, so that both see the same runs fail.
std::uint64_t Mix(std::uint64_t z) {
  z += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// One history: which commit is to blame (0: none), and whether the next run of a commit fails.
class Trial {
 public:
  Trial(int size, double if_bad, double if_good, std::uint64_t seed)
      : seed_(Mix(seed)), if_bad_(if_bad), if_good_(if_good), looks_(size + 1, 0) {
    culprit_ = if_bad > if_good ? 1 + static_cast<int>(seed_ % size) : 0;
  }
  int culprit() const { return culprit_; }
  bool RunFails(int commit) {
    const std::uint64_t draw = Mix(Mix(seed_ + commit) + looks_[commit]++);
    const bool is_bad = culprit_ > 0 && commit >= culprit_;
    return static_cast<double>(draw >> 11) * 0x1p-53 < (is_bad ? if_bad_ : if_good_);
  }

 private:
  std::uint64_t seed_;
  double if_bad_, if_good_;
  int culprit_;
  std::vector<std::uint64_t> looks_;
};

void Print(const char* method, const Trial& trial, int blamed, int runs, int search,
           double claimed) {
  std::printf(
      "{\"method\": \"%s\", \"culprit\": %d, \"blamed\": %d, \"runs\": %d, \"search\": %d, "
      "\"claimed\": %.4f}\n",
      method, trial.culprit(), blamed, runs, search, claimed);
}

// The same model, certain of the rates: what a search could do that is told them.
std::optional<NoiseModel> Told(NoiseModel model, double if_bad, double if_good) {
  bool is_there = false;
  for (int pair = 0; pair < model.pairs(); ++pair) {
    const bool is_it = model.bad_level[pair] == if_bad && model.good_level[pair] == if_good;
    model.pair_prior[pair] = is_it;
    is_there = is_there || is_it;
  }
  if (!is_there) return std::nullopt;
  return model;
}

void Ours(const char* method, Trial trial, int size, const NoiseModel& model) {
  Search search(CommitGraph::Line(size), model, {.max_runs = 2000});
  int looked = 0;
  Step step;
  while ((step = search.Next()).kind == Step::kRun) {
    looked += std::string(step.phase) == "search";
    search.Observe(step.commit, trial.RunFails(step.commit));
  }
  const bool is_found = step.kind == Step::kCulprit;
  Print(method, trial, is_found ? step.commit : 0, search.runs(), looked,
        is_found ? search.confidence() : search.posterior()[0]);
}

// As `git bisect` does: each commit is what most of its `looks` runs say, the ends are believed.
void Halving(const char* method, Trial trial, int size, int looks) {
  int good = 0, bad = size, runs = 0;
  while (bad - good > 1) {
    const int middle = (good + bad) / 2;
    int failed = 0;
    for (int i = 0; i < looks; ++i) failed += trial.RunFails(middle);
    runs += looks;
    (2 * failed > looks ? bad : good) = middle;
  }
  Print(method, trial, bad, runs, runs, 1.0);
}

int Main(int argc, char** argv) {
  if (argc != 6) {
    std::fprintf(stderr, "search_simulation SIZE RATE_IF_BAD RATE_IF_GOOD TRIALS SEED\n");
    return 2;
  }
  const int size = std::atoi(argv[1]), trials = std::atoi(argv[4]);
  const double if_bad = std::atof(argv[2]), if_good = std::atof(argv[3]);
  const NoiseModel model = FailureRates();
  const std::optional<NoiseModel> told = Told(model, if_bad, if_good);
  const NoiseModel no_flakes = FailureRates(/*nothing_flakes=*/true);
  for (int i = 0; i < trials; ++i) {
    const Trial trial(size, if_bad, if_good, std::strtoull(argv[5], nullptr, 10) + i);
    Ours("trainwreck", trial, size, model);
    if (if_good == 0) Ours("no flakes", trial, size, no_flakes);
    if (told) Ours("told", trial, size, *told);
    Halving("plain", trial, size, 1);
    Halving("majority", trial, size, 5);
  }
  return 0;
}

}  // namespace
}  // namespace trainwreck

int main(int argc, char** argv) { return trainwreck::Main(argc, argv); }
