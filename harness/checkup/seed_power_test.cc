// The spread over seeds and what follows from it, from known losses; then runs of the fake target.
#include "harness/checkup/seed_power.h"

#include <gtest/gtest.h>

#include <cmath>

#include "harness/session/fake_suite.h"

namespace trainwreck {
namespace seed_power_test {

SeedLosses Of(const std::string& name, std::vector<double> losses) {
  return Summarise(name, std::move(losses), 0.95);
}

TEST(SeedPower, OfOneRecipeSaysWhichDifferencesCostHowManySeeds) {
  const SeedPowerReport report = ConcludeSeeds({Of("first", {0.98, 0.99, 1, 1.01, 1.02})}, {});
  EXPECT_TRUE(report.is_told());
  ASSERT_EQ(report.needed.size(), 6u);
  EXPECT_NEAR(report.needed.front().difference, 0.005, 1e-12);
  EXPECT_NEAR(report.needed.back().difference, 0.2, 1e-12);
  EXPECT_GT(report.needed.front().seeds, 100);
  EXPECT_EQ(report.needed.back().seeds, 2);
  for (std::size_t i = 0; i < report.needed.size(); ++i) {
    EXPECT_GE(report.needed[i].cautious, report.needed[i].seeds);
    if (i > 0) {
      EXPECT_LE(report.needed[i].seeds, report.needed[i - 1].seeds);
    }
  }
}

TEST(SeedPower, OfTwoRecipesSaysWhetherTheyDiffer) {
  const SeedLosses first = Of("first", {0.98, 0.99, 1, 1.01, 1.02});
  const SeedPowerReport apart =
      ConcludeSeeds({first, Of("second", {1.08, 1.09, 1.1, 1.11, 1.12})}, {});
  EXPECT_TRUE(apart.is_told());
  EXPECT_NEAR(apart.difference->value, 0.1, 1e-9);
  EXPECT_GT(apart.difference->lo, 0);
  const SeedPowerReport alike =
      ConcludeSeeds({first, Of("second", {0.985, 0.995, 1.005, 1.015, 1.025})}, {});
  EXPECT_FALSE(alike.is_told());
  EXPECT_GT(alike.needed.at(0).seeds, 50);
  EXPECT_GT(alike.least, 0.005);
}

TEST(SeedPower, HasNoSpreadWhereARunDiverged) {
  const SeedPowerReport report =
      ConcludeSeeds({Of("first", {1, 2, INFINITY}), Of("second", {1, 2, 3})}, {});
  EXPECT_FALSE(report.is_told());
  EXPECT_EQ(report.recipes[0].diverged(), 1);
  EXPECT_FALSE(report.difference);
  EXPECT_EQ(ToJson(report)["recipes"][0]["spread"], Json());
}

// The fake target's noise over five seeds: -0.02 to 0.02 in steps of 0.01.
TEST(SeedPower, ReadsTheEndsOfRuns) {
  const testing::FakeSuite suite;
  suite.WriteSlow("slow");
  const Session session = suite.Open();
  PlanOptions plan;
  plan.seeds = 5;
  plan.overrides.set = {{"fake.mode", "noisy"}};
  const Chosen first = ChooseCases(session, {.paths = {"fake/slow"}}, plan, {});
  plan.overrides.set.emplace_back("optimizer.lr", 0.1);
  const Chosen second = ChooseCases(session, {.paths = {"fake/slow"}}, plan, {});
  const auto report = MeasureSeeds({{"first", OnePatient(first, "control", 0, 5)},
                                    {"second", OnePatient(second, "control", 0, 5)}},
                                   {.last = 1}, session, 2);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->seeds, 5);
  EXPECT_EQ(report->steps, 20);
  EXPECT_NEAR(report->recipes[0].mean->value, 4 * std::exp(-0.2 * 19), 1e-9);
  EXPECT_NEAR(report->recipes[0].spread->value, 0.01 * std::sqrt(2.5), 1e-9);
  EXPECT_NEAR(report->difference->value, 4 * (std::exp(-0.1 * 19) - std::exp(-0.2 * 19)), 1e-9);
  EXPECT_TRUE(report->is_told());
}

}  // namespace seed_power_test
}  // namespace trainwreck
