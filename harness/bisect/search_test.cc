#include "harness/bisect/search.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>
#include <set>
#include <string>

namespace trainwreck {
namespace {

// Runs that fail at one rate before the culprit and at another from it on; culprit 0: at the first
// rate everywhere.
struct World {
  World(const CommitGraph& history, int culprit, double if_good, double if_bad, unsigned seed)
      : history(history), culprit(culprit), if_good(if_good), if_bad(if_bad), random(seed) {}
  double Run(int commit) {
    const double rate = history.IsBad(culprit, commit) ? if_bad : if_good;
    return std::bernoulli_distribution(rate)(random);
  }
  const CommitGraph& history;
  int culprit;
  double if_good, if_bad;
  std::mt19937 random;
};

Step Finish(Search& search, World& world, const std::function<Cost(int)>& cost = {}) {
  for (;;) {
    const Step step = search.Next(cost);
    if (step.kind != Step::kRun) return step;
    search.Observe(step.commit, world.Run(step.commit));
  }
}

TEST(Noise, KnowsTheTextbooksCapacities) {
  EXPECT_NEAR(Capacity({1, 0}, {0, 1}), 1.0, 1e-9);
  EXPECT_NEAR(Capacity({0.9, 0.1}, {0.1, 0.9}), 0.531004406, 1e-6);  // 1 - H(0.1)
  EXPECT_NEAR(Capacity({1, 0}, {0.5, 0.5}), std::log2(1.25), 1e-6);  // Z-channel
  EXPECT_NEAR(Capacity({0.3, 0.7}, {0.3, 0.7}), 0.0, 1e-9);
}

TEST(Noise, ABatchTellsMoreThanARunAndLessThanAllItsRuns) {
  const NoiseModel model = FailureRates();
  const std::vector<double> of_good = Mix(model.good, model.pair_prior);
  const std::vector<double> of_bad = Mix(model.bad, model.pair_prior);
  const double once = Information(0.5, of_good, of_bad);
  EXPECT_NEAR(BatchInformation(model, model.pair_prior, 0.5, 1), once, 1e-12);
  double last = once;
  for (int runs : {2, 4, 8, 16}) {
    const double bits = BatchInformation(model, model.pair_prior, 0.5, runs);
    EXPECT_GT(bits, last);
    EXPECT_LT(bits, std::min(1.0, runs * once));
    last = bits;
  }
}

TEST(Noise, TablesAreDistributions) {
  const NoiseModel margins = Margins({1, 1.1, 0.9, 1.2, 1.05}, {0.1, -0.1, 0.2, 0, 0.1});
  for (const NoiseModel& model : {FailureRates(), margins}) {
    for (const NoiseModel::Table* table : {&model.good, &model.bad, &model.single}) {
      for (const std::vector<double>& row : *table) {
        ASSERT_EQ(static_cast<int>(row.size()), model.bins());
        EXPECT_NEAR(std::accumulate(row.begin(), row.end(), 0.0), 1.0, 1e-9);
      }
    }
    for (int pair = 0; pair < model.pairs(); ++pair) {
      EXPECT_GE(std::abs(model.bad_level[pair] - model.good_level[pair]), 0.1);
    }
  }
}

// Bayes' theorem as it stands in a book, over all culprits and behaviours.
TEST(Search, HasThePosteriorOfBayes) {
  const CommitGraph history = CommitGraph::Line(5);
  const NoiseModel model = FailureRates();
  Search search(history, model, {});
  const std::vector<std::pair<int, int>> runs = {{5, 1}, {0, 0}, {2, 0}, {3, 1},
                                                 {3, 0}, {4, 1}, {0, 0}};
  for (const auto& [commit, failed] : runs) search.Observe(commit, failed);
  std::vector<double> weights(6, 0.0);
  for (int i = 0; i < model.singles(); ++i) {
    double product = 0.1 * model.single_prior[i];
    for (const auto& [commit, failed] : runs) product *= model.single[i][failed];
    weights[0] += product;
  }
  for (int culprit = 1; culprit <= 5; ++culprit) {
    for (int pair = 0; pair < model.pairs(); ++pair) {
      double product = 0.9 / 5 * model.pair_prior[pair];
      for (const auto& [commit, failed] : runs) {
        product *= (commit >= culprit ? model.bad : model.good)[pair][failed];
      }
      weights[culprit] += product;
    }
  }
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (int culprit = 0; culprit <= 5; ++culprit) {
    EXPECT_NEAR(search.posterior()[culprit], weights[culprit] / sum, 1e-12) << culprit;
  }
}

// The odds against the suspects, times what simulations show for behaviours so far apart.
TEST(Search, IsLessSureWhereRunsAreAlike) {
  for (const auto& [if_good, if_bad, factor] :
       {std::tuple(0.0, 1.0, 1.0), std::tuple(0.2, 0.8, 1 / 0.32), std::tuple(0.0, 0.5, 4.0)}) {
    NoiseModel model = FailureRates();
    for (int pair = 0; pair < model.pairs(); ++pair) {
      model.pair_prior[pair] = model.good_level[pair] == if_good && model.bad_level[pair] == if_bad;
    }
    Search search(CommitGraph::Line(4), model, {});
    for (const auto& [commit, failed] : {std::pair(4, 1), std::pair(3, 1), std::pair(2, 0)}) {
      search.Observe(commit, failed);
    }
    ASSERT_EQ(search.suspects(), std::vector<int>{3});
    const double posterior = search.posterior()[3], confidence = search.confidence();
    EXPECT_NEAR((1 - confidence) / confidence, factor * (1 - posterior) / posterior, 1e-9);
  }
}

TEST(Search, HalvesWhereNothingIsNoisy) {
  for (int culprit = 1; culprit <= 64; ++culprit) {
    Search search(CommitGraph::Line(64), FailureRates(), {});
    World world(search.history(), culprit, 0, 1, 1);
    const Step step = Finish(search, world);
    EXPECT_EQ(step.kind, Step::kCulprit);
    EXPECT_EQ(step.commit, culprit);
    EXPECT_LE(search.runs(), 2 + 6 + 6);  // ends, halvings, the culprit and its parent again
    EXPECT_GE(search.runs_of(culprit), 2);
    EXPECT_GE(search.runs_of(culprit - 1), 4);
  }
}

// The search suffers from not knowing the rates only where runs are noisy; nothing is left to learn
// for one that is told them.
TEST(Search, MeasuresTheEndsFirstWhereRunsAreNoisy) {
  NoiseModel told = FailureRates();
  for (int pair = 0; pair < told.pairs(); ++pair) {
    told.pair_prior[pair] = told.good_level[pair] == 0 && told.bad_level[pair] == 0.5;
  }
  auto end_runs = [](const NoiseModel& model, double if_bad) {
    int runs = 0;
    for (int trial = 0; trial < 20; ++trial) {
      Search search(CommitGraph::Line(1000), model, {});
      World world(search.history(), 100 + 40 * trial, 0, if_bad, trial);
      Step step;
      while ((step = search.Next()).kind == Step::kRun) {
        runs += std::string(step.phase) == "ends";
        search.Observe(step.commit, world.Run(step.commit));
      }
    }
    return runs / 20.0;
  };
  EXPECT_EQ(end_runs(FailureRates(), 1), 2);
  const double bound = std::log2(1000) / std::log2(1.25);  // of the search
  EXPECT_GT(end_runs(FailureRates(), 0.5), 0.25 * bound);
  EXPECT_LT(end_runs(told, 0.5), 0.15 * bound);
}

// A user who knows that nothing flakes saves what it takes to find that out.
TEST(Search, NeedsFewerRunsWhereNothingFlakes) {
  int runs[2] = {0, 0}, right[2] = {0, 0};
  constexpr int kTrials = 100;
  for (bool knows : {false, true}) {
    for (int trial = 0; trial < kTrials; ++trial) {
      Search search(CommitGraph::Line(64), FailureRates(knows), {});
      World world(search.history(), 1 + trial * 7 % 64, 0, 0.5, trial);
      const Step step = Finish(search, world);
      right[knows] += step.kind == Step::kCulprit && step.commit == world.culprit;
      runs[knows] += search.runs();
    }
  }
  EXPECT_LT(runs[1], 0.9 * runs[0]);
  EXPECT_GE(right[1], 88);  // 95% are 95; below 88 is beyond three deviations
  // One failure of the good end says that the user is mistaken.
  Search mistaken(CommitGraph::Line(8), FailureRates(true), {});
  mistaken.Observe(8, 1);
  mistaken.Observe(0, 1);
  EXPECT_EQ(mistaken.Next().kind, Step::kNoChange);
}

TEST(Search, AMarkLeavesOutWhatItExcludes) {
  Search search(CommitGraph::Line(20), FailureRates(), {});
  ASSERT_TRUE(search.Mark(5, /*is_bad=*/false));
  ASSERT_TRUE(search.Mark(9, /*is_bad=*/true));
  EXPECT_FALSE(search.Mark(4, /*is_bad=*/true));
  EXPECT_FALSE(search.Mark(9, /*is_bad=*/false));
  World world(search.history(), 7, 0, 1, 1);
  EXPECT_EQ(Finish(search, world).kind, Step::kCulprit);
  EXPECT_EQ(search.suspects(), std::vector<int>{7});
  EXPECT_EQ(search.runs_of(5) + search.runs_of(9), 0);
}

TEST(Search, IsRightAsOftenAsItSays) {
  constexpr int kTrials = 200;
  for (const auto& [if_good, if_bad] : {std::pair(0.0, 0.5), std::pair(0.2, 0.8)}) {
    int right = 0;
    for (int trial = 0; trial < kTrials; ++trial) {
      Search search(CommitGraph::Line(40), FailureRates(), {});
      World world(search.history(), 1 + trial * 7 % 40, if_good, if_bad, trial);
      const Step step = Finish(search, world);
      right += step.kind == Step::kCulprit && step.commit == world.culprit;
    }
    EXPECT_GE(right, 180) << if_good;  // 95% are 190; below 180 is beyond three deviations
  }
}

TEST(Search, BlamesNobodyWhereNothingChanged) {
  int blamed = 0;
  for (int trial = 0; trial < 100; ++trial) {
    Search search(CommitGraph::Line(40), FailureRates(), {});
    const double rate = std::vector<double>{0, 0.1, 0.5, 1}[trial % 4];
    World world(search.history(), 0, rate, rate, trial);
    const Step step = Finish(search, world);
    blamed += step.kind == Step::kCulprit;
    EXPECT_NE(step.kind, Step::kRun);
  }
  EXPECT_LE(blamed, 10);
}

TEST(Search, AChangeForTheBetterIsNoCulprit) {
  for (int trial = 0; trial < 20; ++trial) {
    Search search(CommitGraph::Line(20), FailureRates(), {});
    World world(search.history(), 9, 0.9, 0.1, trial);
    EXPECT_NE(Finish(search, world).kind, Step::kCulprit);
  }
}

TEST(Search, SameLooksSameStep) {
  Search a(CommitGraph::Line(100), FailureRates(), {}),
      b(CommitGraph::Line(100), FailureRates(), {});
  World world(a.history(), 33, 0.1, 0.8, 5);
  for (int i = 0; i < 30; ++i) {
    const Step step = a.Next();
    ASSERT_EQ(step.commit, b.Next().commit);
    const double result = world.Run(step.commit);
    a.Observe(step.commit, result);
    b.Observe(step.commit, result);
  }
}

TEST(Search, WhatCannotBeTestedIsARange) {
  for (int culprit : {9, 10, 11, 12}) {
    Search search(CommitGraph::Line(30), FailureRates(), {});
    for (int commit : {9, 10, 11}) search.Skip(commit);
    World world(search.history(), culprit, 0, 1, 1);
    EXPECT_EQ(Finish(search, world).kind, Step::kCulprit);
    EXPECT_EQ(search.suspects(), (std::vector<int>{9, 10, 11, 12}));
    EXPECT_EQ(search.Witness(), 12);
    EXPECT_EQ(search.WitnessParents(), std::vector<int>{8});
    for (int commit : {9, 10, 11}) EXPECT_EQ(search.runs_of(commit), 0);
  }
}

TEST(Search, AnEndThatCannotBeTestedEndsIt) {
  for (int end : {0, 30}) {
    Search search(CommitGraph::Line(30), FailureRates(), {});
    search.Skip(end);
    EXPECT_EQ(search.Next().kind, Step::kUndecided);
  }
}

TEST(Search, TheSameProgramCannotBeBlamed) {
  Search search(CommitGraph::Line(30), FailureRates(), {});
  search.Merge(12, 16);
  double between = 0;
  for (int commit = 13; commit <= 16; ++commit) between += search.posterior()[commit];
  EXPECT_EQ(between, 0);
  EXPECT_GT(search.posterior()[12], 0);
  EXPECT_GT(search.posterior()[17], 0);
}

TEST(Search, StopsAtMaxRuns) {
  Search search(CommitGraph::Line(1000), FailureRates(), {.max_runs = 7});
  World world(search.history(), 400, 0.4, 0.6, 1);
  EXPECT_EQ(Finish(search, world).kind, Step::kUndecided);
  EXPECT_EQ(search.runs(), 7);
}

// Others may observe more: dose asks several questions of one run.
TEST(Search, AnAnswerStandsAfterMaxRuns) {
  Search alike(CommitGraph::Line(8), FailureRates(), {.max_runs = 7});
  for (int i = 0; i < 20; ++i) {
    alike.Observe(0, 0);
    alike.Observe(8, 0);
  }
  EXPECT_EQ(alike.Next().kind, Step::kNoChange);
  Search broken(CommitGraph::Line(2), FailureRates(), {.max_runs = 7});
  for (int i = 0; i < 10; ++i) {
    broken.Observe(0, 0);
    broken.Observe(1, 1);
    broken.Observe(2, 1);
  }
  EXPECT_EQ(broken.Next().kind, Step::kCulprit);
}

// The culprit of a history with merges is the commit whose descendants are the bad ones.
TEST(Search, FindsEveryCommitOfRandomGraphs) {
  std::mt19937 random(3);
  for (int graph = 0; graph < 10; ++graph) {
    constexpr int kSize = 30;
    std::vector<std::vector<int>> parents(kSize);
    std::set<int> heads;
    for (int commit = 1; commit <= kSize; ++commit) {
      const int near = std::max(0, commit - 5);
      std::set<int> chosen = {std::uniform_int_distribution<int>(near, commit - 1)(random)};
      if (random() % 3 == 0)
        chosen.insert(std::uniform_int_distribution<int>(near, commit - 1)(random));
      if (commit == kSize) chosen = heads;  // the bad end has all others as ancestors
      if (chosen.size() > 1) chosen.erase(0);
      for (int parent : chosen) heads.erase(parent);
      heads.insert(commit);
      parents[commit - 1].assign(chosen.begin(), chosen.end());
    }
    const CommitGraph history(parents);
    for (int culprit = 1; culprit <= kSize; ++culprit) {
      Search search(history, FailureRates(), {});
      World world(history, culprit, 0, 1, 1);
      const Step step = Finish(search, world);
      EXPECT_EQ(step.kind, Step::kCulprit);
      EXPECT_EQ(search.suspects(), std::vector<int>{culprit});
      EXPECT_EQ(search.Witness(), culprit);
    }
  }
}

// A build that costs as much as hundreds of runs: more runs, of fewer commits.
TEST(Search, StaysWhereItHasBuilt) {
  double builds[2] = {0, 0}, runs[2] = {0, 0};
  for (bool is_dear : {false, true}) {
    for (int trial = 0; trial < 30; ++trial) {
      Search search(CommitGraph::Line(200), FailureRates(), {});
      World world(search.history(), 1 + trial * 6, 0, 0.5, trial);
      std::set<int> built;
      for (;;) {
        const Step step = search.Next([&](int commit) {
          return Cost{is_dear && built.count(commit) == 0 ? 300.0 : 0.0, 1.0};
        });
        if (step.kind != Step::kRun) break;
        built.insert(step.commit);
        search.Observe(step.commit, world.Run(step.commit));
      }
      builds[is_dear] += static_cast<double>(built.size());
      runs[is_dear] += search.runs();
    }
  }
  EXPECT_LT(builds[1], 0.7 * builds[0]);
  EXPECT_GT(runs[1], runs[0]);
  EXPECT_LT(300 * builds[1] + runs[1], 300 * builds[0] + runs[0]);
}

TEST(Search, FindsAShiftOfMargins) {
  int right = 0;
  constexpr int kTrials = 50;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::mt19937 random(trial);
    std::normal_distribution<double> noise(0, 1);
    const int culprit = 1 + trial * 5 % 60;
    auto run = [&](int commit) { return (commit >= culprit ? 0.0 : 3.0) + noise(random); };
    std::vector<double> good, bad;
    for (int i = 0; i < 5; ++i) {
      good.push_back(run(0));
      bad.push_back(run(60));
    }
    Search search(CommitGraph::Line(60), Margins(good, bad), {});
    for (int i = 0; i < 5; ++i) {
      search.Observe(0, good[i]);
      search.Observe(60, bad[i]);
    }
    Step step;
    while ((step = search.Next()).kind == Step::kRun) search.Observe(step.commit, run(step.commit));
    right += step.kind == Step::kCulprit && step.commit == culprit;
  }
  EXPECT_GE(right, 44);
}

TEST(Search, MarginsThatGotBetterBlameNobody) {
  std::mt19937 random(1);
  std::normal_distribution<double> noise(0, 1);
  auto run = [&](int commit) { return (commit >= 9 ? 5.0 : 0.0) + noise(random); };
  std::vector<double> good, bad;
  for (int i = 0; i < 5; ++i) {
    good.push_back(run(0));
    bad.push_back(run(20));
  }
  Search search(CommitGraph::Line(20), Margins(good, bad), {});
  for (int i = 0; i < 5; ++i) {
    search.Observe(0, good[i]);
    search.Observe(20, bad[i]);
  }
  Step step;
  while ((step = search.Next()).kind == Step::kRun) search.Observe(step.commit, run(step.commit));
  EXPECT_EQ(step.kind, Step::kNoChange);
}

}  // namespace
}  // namespace trainwreck
