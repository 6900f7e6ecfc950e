#include "harness/bisect/bisection.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace trainwreck {
namespace {

CommitList Line(int size) {
  CommitList commits = {{"0", "0", {}}};
  for (int i = 1; i <= size; ++i) {
    commits.push_back({std::to_string(i), std::to_string(i), {i - 1}});
  }
  return commits;
}

Json Run(const Bisection& bisection, int commit, double margin) {
  SeedResult result;
  result.commit = commit;
  result.seed = bisection.NextSeed();
  result.margin = margin;
  result.seconds = 1;
  return Bisection::LogRun(result);
}

// A bisection by a metric, whose margin at a commit comes from `draw`.
Step Finish(Bisection& bisection, const std::function<double(int)>& draw) {
  const std::vector<bool> ready(bisection.commits().size(), true);
  Step step;
  while ((step = bisection.Next(ready)).kind == Step::kRun) {
    bisection.Apply(Run(bisection, step.commit, draw(step.commit)));
  }
  return step;
}

BisectionOptions ByMetric() { return {{.max_runs = 400}, true}; }

// Good 20 to 31, bad down to -6e33 in 7 of 11 runs: what was called alike.
TEST(Metric, AnotherShareOfFarOutRunsIsAChange) {
  int right = 0;
  constexpr int kTrials = 8, kSize = 12;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::mt19937 random(trial);
    const int culprit = 1 + trial * 5 % kSize;
    Bisection bisection(Line(kSize), ByMetric());
    const Step step = Finish(bisection, [&](int commit) {
      if (commit >= culprit && std::bernoulli_distribution(7.0 / 11)(random)) {
        return -std::pow(10.0, std::uniform_real_distribution<double>(2, 33.8)(random));
      }
      return std::uniform_real_distribution<double>(20, 31)(random);
    });
    EXPECT_NE(step.kind, Step::kNoChange) << trial;
    right += step.kind == Step::kCulprit && step.commit == culprit;
  }
  EXPECT_GE(right, kTrials - 1);
}

TEST(Metric, TheSameShareOfFarOutRunsIsNone) {
  int blamed = 0;
  for (int trial = 0; trial < 6; ++trial) {
    std::mt19937 random(trial);
    Bisection bisection(Line(12), ByMetric());
    const Step step = Finish(bisection, [&](int) {
      return std::bernoulli_distribution(0.4)(random)
                 ? -std::pow(10.0, std::uniform_real_distribution<double>(2, 30)(random))
                 : std::uniform_real_distribution<double>(20, 31)(random);
    });
    blamed += step.kind == Step::kCulprit;
  }
  EXPECT_LE(blamed, 1);
}

// Whatever the margins are: constant, spread over octaves, infinite, a hair apart.
TEST(Metric, MarginsInOrderAreNeverAlike) {
  std::mt19937 random(1);
  auto power = [&](double from, double to) {
    return std::pow(10.0, std::uniform_real_distribution<double>(from, to)(random));
  };
  const std::function<double(bool)> kinds[] = {
      [&](bool is_bad) { return is_bad ? 1 - 1e-12 : 1.0; },
      [&](bool is_bad) { return is_bad ? -power(-3, 36) : power(-3, 36); },
      [&](bool is_bad) { return is_bad ? -std::numeric_limits<double>::infinity() : power(0, 1); },
      [&](bool is_bad) { return is_bad ? 1.0 : std::numeric_limits<double>::infinity(); },
      [&](bool is_bad) { return (is_bad ? 3 : 4.5) + power(-9, 0); },
      [&](bool is_bad) { return is_bad ? 5 - power(-3, 300) : 5.0; },
  };
  for (std::size_t kind = 0; kind < std::size(kinds); ++kind) {
    for (int culprit : {1, 4, 6}) {
      Bisection bisection(Line(6), ByMetric());
      const Step step =
          Finish(bisection, [&](int commit) { return kinds[kind](commit >= culprit); });
      EXPECT_EQ(step.kind, Step::kCulprit) << kind;
      EXPECT_EQ(step.commit, culprit) << kind;
    }
  }
}

TEST(Metric, SaysWhatTheEndsShowed) {
  Bisection better(Line(6), ByMetric());
  EXPECT_EQ(Finish(better, [&](int commit) { return commit >= 3 ? 5.0 : 1.0; }).kind,
            Step::kNoChange);
  const std::string why = better.WhyNoChange();
  EXPECT_NE(why.find("the bad end lie above those of the good one (good 1 to 1 in "),
            std::string::npos)
      << why;
}

TEST(Metric, SaysThatRunsHadNoMargin) {
  Bisection bisection(Line(6), ByMetric());
  int looks = 0;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Step step =
      Finish(bisection, [&](int commit) { return commit == 6 && ++looks % 2 == 0 ? nan : 1.0; });
  EXPECT_EQ(step.kind, Step::kNoChange);
  EXPECT_NE(bisection.WhyNoChange().find(" runs have no margin, "), std::string::npos)
      << bisection.WhyNoChange();
}

TEST(Sought, IsAQuestionOfControlOnlyWhereControlFails) {
  for (const char* arm : {"control", "fault"}) {
    Bisection bisection(Line(4), {});
    SeedResult result;
    result.commit = 4;
    bisection.Apply(Bisection::LogRun(result));
    EXPECT_FALSE(bisection.AsksOfControlOnly());  // nothing failed: any arm may
    result.seed = 1;
    result.failures = {{"some_class", "check", arm}};
    bisection.Apply(Bisection::LogRun(result));
    EXPECT_EQ(bisection.AsksOfControlOnly(), arm == std::string("control"));
  }
}

Json Failed(int commit, int seed, double octaves) {
  SeedResult result;
  result.commit = commit;
  result.seed = seed;
  result.failures = {{"some_class", "check", "control", FailureSize{octaves, "octaves"}}};
  return Bisection::LogRun(result);
}

// The same check fails before the culprit for a reason that has another size.
TEST(Sought, HasASize) {
  constexpr int kSize = 8, kSmallFrom = 2, kLargeFrom = 6;
  Bisection bisection(Line(kSize), {});
  const std::vector<bool> ready(kSize + 1, true);
  int seed = 0;
  Step step;
  while ((step = bisection.Next(ready)).kind == Step::kRun) {
    SeedResult passed;
    passed.commit = step.commit;
    passed.seed = seed;
    // Otherwise the commits up to kSmallFrom would be left.
    const bool fails = step.commit >= kSmallFrom && step.commit != kLargeFrom - 1;
    const double octaves = (step.commit >= kLargeFrom ? 7 : 1) + 0.1 * (seed % 3);
    bisection.Apply(fails ? Failed(step.commit, seed, octaves) : Bisection::LogRun(passed));
    ++seed;
  }
  ASSERT_EQ(step.kind, Step::kCulprit);
  EXPECT_EQ(bisection.search().suspects(), std::vector<int>{kLargeFrom});
  for (const auto& [commit, why] : bisection.skip_reasons()) {
    EXPECT_EQ(why.find("fails otherwise: some_class ('check' in control) by 1"), 0u) << why;
    EXPECT_NE(why.find(" octaves, at the bad end by 7"), std::string::npos) << why;
    EXPECT_EQ(bisection.TallyOf(commit).failed, 0);
  }
}

TEST(Sought, HasNoSizeWhereTheBadEndDisagrees) {
  Bisection bisection(Line(4), {});
  int seed = 0;
  for (double octaves : {7.0, 7.5}) bisection.Apply(Failed(4, seed++, octaves));
  for (int i = 0; i < 3; ++i) bisection.Apply(Failed(2, seed++, 1));
  EXPECT_TRUE(bisection.IsSkipped(2));
  EXPECT_EQ(bisection.TallyOf(2).failed, 0);
  bisection.Apply(Failed(4, seed++, 0.5));  // now the bad end itself has sizes of all kinds
  EXPECT_FALSE(bisection.IsSkipped(2));
  EXPECT_EQ(bisection.TallyOf(2).failed, 3);
}

TEST(Marks, AreTakenFromTheLog) {
  CommitList commits = Line(8);
  Bisection bisection(commits, {});
  bisection.Apply(Bisection::LogMark(commits[3], 3, Mark::kGood));
  bisection.Apply(Bisection::LogMark(commits[6], 6, Mark::kBad));
  bisection.Apply(Bisection::LogMark(commits[5], 5, Mark::kSkip));
  for (int commit : {1, 2, 3, 7, 8}) EXPECT_EQ(bisection.search().posterior()[commit], 0) << commit;
  for (int commit : {4, 5, 6}) EXPECT_GT(bisection.search().posterior()[commit], 0) << commit;
  EXPECT_THROW(bisection.Apply(Bisection::LogMark(commits[2], 2, Mark::kBad)), std::runtime_error);
  EXPECT_EQ(bisection.marks().size(), 3u);
  EXPECT_GT(bisection.search().posterior()[4], 0);
}

}  // namespace
}  // namespace trainwreck
