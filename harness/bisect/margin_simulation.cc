// Simulated bisections by a metric: random culprits in histories whose runs have margins of several
// kinds, one line for each kind: how often the culprit was named, another commit, or no change.
// With WORDS only the kinds whose name begins with them.
//
//   margin_simulation SIZE TRIALS SEED [WORDS]
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "harness/bisect/bisection.h"

namespace trainwreck {
namespace {

using Draw = std::function<double(std::mt19937&)>;

Draw Normal(double mean, double spread) {
  return
      [=](std::mt19937& random) { return std::normal_distribution<double>(mean, spread)(random); };
}

// A share of the runs diverges, to anything from -1 to -1e36.
Draw Diverging(double share, Draw else_draw) {
  return [share, else_draw = std::move(else_draw)](std::mt19937& random) {
    if (!std::bernoulli_distribution(share)(random)) return else_draw(random);
    return -std::pow(10.0, std::uniform_real_distribution<double>(0, 36)(random));
  };
}

// Every run below `best`, by anything from 1e-3 to 1e30.
Draw HeavyBelow(double best) {
  return [=](std::mt19937& random) {
    return best - std::pow(10.0, std::uniform_real_distribution<double>(-3, 30)(random));
  };
}

Draw Constant(double value) {
  return [=](std::mt19937&) { return value; };
}

struct Kind {
  const char* name;
  Draw good, bad;
  bool is_worse = true;  // from the culprit on; else no commit should be named
};

CommitList Line(int size) {
  CommitList commits = {{"0", "0", {}}};
  for (int i = 1; i <= size; ++i)
    commits.push_back({std::to_string(i), std::to_string(i), {i - 1}});
  return commits;
}

struct Outcome {
  int right = 0, wrong = 0, none = 0, runs = 0;
};

void Try(const Kind& kind, int size, unsigned seed, Outcome& outcome) {
  std::mt19937 random(seed);
  const int culprit = std::uniform_int_distribution<int>(1, size)(random);
  Bisection bisection(Line(size), {{.max_runs = 600}, true});
  const std::vector<bool> ready(static_cast<std::size_t>(size) + 1, true);
  Step step;
  while ((step = bisection.Next(ready)).kind == Step::kRun) {
    SeedResult result;
    result.commit = step.commit;
    result.seed = bisection.NextSeed();
    result.margin = (step.commit >= culprit ? kind.bad : kind.good)(random);
    result.seconds = 1;
    bisection.Apply(Bisection::LogRun(result));
  }
  const bool is_named = step.kind == Step::kCulprit;
  const bool is_right =
      kind.is_worse ? is_named && step.commit == culprit : step.kind == Step::kNoChange;
  outcome.right += is_right;
  outcome.wrong += is_named && !is_right;
  outcome.none += !is_named && !is_right;
  outcome.runs += bisection.runs();
}

int Main(int argc, char** argv) {
  if (argc != 4 && argc != 5) {
    std::fprintf(stderr, "margin_simulation SIZE TRIALS SEED [WORDS]\n");
    return 2;
  }
  const std::string words = argc == 5 ? argv[4] : "";
  const int size = std::atoi(argv[1]), trials = std::atoi(argv[2]), seed = std::atoi(argv[3]);
  const Draw bulk = Normal(25, 4);
  const Kind kinds[] = {
      {"moved by 3 deviations", Normal(3, 1), Normal(0, 1)},
      {"moved by 1.5 deviations", Normal(1.5, 1), Normal(0, 1)},
      {"7 of 11 diverge", bulk, Diverging(7.0 / 11, bulk)},
      {"3 of 10 diverge", bulk, Diverging(0.3, bulk)},
      {"8 instead of 2 of 10 diverge", Diverging(0.2, bulk), Diverging(0.8, bulk)},
      {"all are worse, by 1e-3 to 1e30", bulk, HeavyBelow(5)},
      {"all are the same, a bit lower", Constant(1), Constant(1 - 1e-9)},
      {"no change, normal", bulk, bulk, false},
      {"no change, 3 of 10 diverge", Diverging(0.3, bulk), Diverging(0.3, bulk), false},
      {"better by 3 deviations", Normal(0, 1), Normal(3, 1), false},
  };
  std::printf(
      "| margins | right | other commit | no change, or undecided | runs "
      "|\n|---|---|---|---|---|\n");
  for (const Kind& kind : kinds) {
    if (!std::string(kind.name).starts_with(words)) continue;
    Outcome outcome;
    for (int i = 0; i < trials; ++i) Try(kind, size, static_cast<unsigned>(seed + i), outcome);
    auto share = [&](int count) { return 100.0 * count / trials; };
    std::printf("| %s | %.0f%% | %.0f%% | %.0f%% | %.1f |\n", kind.name, share(outcome.right),
                share(outcome.wrong), share(outcome.none),
                static_cast<double>(outcome.runs) / trials);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace trainwreck

int main(int argc, char** argv) { return trainwreck::Main(argc, argv); }
