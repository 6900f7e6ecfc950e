// seed_spread(): how much runs with different seeds differ, as a multiple of control's.
#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <vector>

#include "harness/formula/formula.h"
#include "harness/formula/test_support.h"

namespace trainwreck::formula {
namespace seed_spread_test {

using testing::Errors;
using testing::kNan;
using testing::TestRun;
using testing::TestVocabulary;

// The final loss of each seed, in an arm and in control.
struct Seeds {
  std::vector<double> own = {1, 5, 2, 8, 4, 9, 3, 7};
  std::vector<double> control = {1.0, 1.2, 1.1, 1.3, 0.9, 1.2, 1.0, 1.1};

  Reading Of(const std::string& text) const {
    std::deque<TestRun> made;
    Runs runs;
    for (std::size_t seed = 0; seed < own.size(); ++seed) {
      const TestRun& self = made.emplace_back(TestRun(2).With("loss", {4, own[seed]}));
      const TestRun& other = made.emplace_back(TestRun(2).With("loss", {4, control[seed]}));
      runs.seeds.push_back({&self.trace(), {{"control", &other.trace()}}});
    }
    runs.self = runs.seeds.front().self;
    runs.arms = runs.seeds.front().arms;
    return Formula::Parse(text).formula->Evaluate(runs, testing::TestTarget());
  }
};

constexpr char kUnstable[] = "seed_spread(loss[-1]) > 4";

TEST(SeedSpread, IsTrueWhereTheWholeIntervalIsAbove) {
  const Reading reading = Seeds().Of(kUnstable);
  EXPECT_EQ(reading.truth, Truth::kTrue) << reading.seen;
  ASSERT_TRUE(reading.margins[static_cast<int>(Unit::kOctave)]);
  EXPECT_GT(reading.margins[static_cast<int>(Unit::kOctave)]->lo, 0.2);
  EXPECT_NE(reading.seen.find(" to "), std::string::npos) << "an interval: " << reading.seen;
}

TEST(SeedSpread, IsFalseInARunLikeControl) {
  Seeds seeds;
  for (double& loss : seeds.own) loss = 0.9 + 0.03 * loss;
  EXPECT_EQ(seeds.Of(kUnstable).truth, Truth::kFalse);
  seeds.own = seeds.control;
  EXPECT_EQ(seeds.Of("seed_spread(loss[-1]) <= 1").truth, Truth::kTrue);
}

TEST(SeedSpread, IsUnknownWhereTheIntervalDoesNotSay) {
  EXPECT_EQ(Seeds().Of("seed_spread(loss[-1]) > 20").truth, Truth::kUnknown);
  Seeds one_apart;
  one_apart.own = {1, 1, 1, 1, 1, 1, 1, 50};
  EXPECT_EQ(one_apart.Of(kUnstable).truth, Truth::kUnknown) << "it rests on one seed";
  Seeds few{{1, 9}, {1, 1.1}};
  EXPECT_EQ(few.Of(kUnstable).truth, Truth::kUnknown);
  Seeds lost;
  lost.own[3] = kNan;
  EXPECT_EQ(lost.Of(kUnstable).truth, Truth::kUnknown);
}

TEST(SeedSpread, OfRunsThatMustBeEqual) {
  Seeds repeated;
  repeated.control = {1, 1, 1, 1, 1, 1, 1, 1};
  EXPECT_EQ(repeated.Of("seed_spread(loss[-1]) > 1").truth, Truth::kTrue);
  repeated.own = {2, 2, 2, 2, 2, 2, 2, 2};
  EXPECT_EQ(repeated.Of("seed_spread(loss[-1]) > 1").truth, Truth::kFalse);
}

TEST(SeedSpread, IsUnknownToWhoHasOneSeedOnly) {
  const TestRun run = TestRun(2).With("loss", {4, 1});
  EXPECT_EQ(testing::Read(kUnstable, run).truth, Truth::kUnknown);
  const auto parsed = Formula::Parse(kUnstable);
  EXPECT_TRUE(parsed.formula->reads_seeds());
  EXPECT_EQ(parsed.formula->arms(), std::set<std::string>{"control"});
}

TEST(SeedSpread, TakesOneNumberOfEachRun) {
  EXPECT_EQ(Errors("seed_spread(mean(loss[-2:]) / loss[0]) > 3", TestVocabulary(60)), "");
  EXPECT_EQ(Errors("always seed_spread(loss[-1]) > 3", TestVocabulary(60)),
            "7-28: seed_spread is about whole runs, and stands in no other operator "
            "(seed_spread(mean(loss[-10:])) > 3)\n");
  EXPECT_NE(Errors("seed_spread(loss) > 3", TestVocabulary(60)), "");
  EXPECT_NE(Errors("seed_spread(seed_spread(loss[-1])) > 3", TestVocabulary(60)), "");
  EXPECT_NE(Errors("seed_spread(grad_norm{*}[-1]) > 3", TestVocabulary(60)), "");
  Vocabulary alone = TestVocabulary(60);
  alone.arms.clear();
  EXPECT_NE(Errors("seed_spread(loss[-1]) > 3", alone), "");
}

}  // namespace seed_spread_test
}  // namespace trainwreck::formula
