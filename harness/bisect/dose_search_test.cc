// The search for doses over the fake target: a fault that slows the descent of its loss,
// 4 exp(-lr * step), by a factor. Where each claim turns is known exactly.
#include "harness/bisect/dose_search.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "harness/session/fake_suite.h"

namespace trainwreck {
namespace dose_search_test {

using testing::FakeSuite;

// lr = 0.2, last step 19: `at_end loss > 1` holds where 4 exp(-3.8 factor) > 1.
const double kShowsBelow = std::log(4) / 3.8;
// The remedy multiplies by 50: it fails where 4 exp(-190 factor) > 1.
const double kHoldsAbove = std::log(4) / 190;

DoseRequest Ask(double from, double to, int levels = 9) {
  return {.scenario = "fake/slow",
          .parameter = "inject.slow.with.factor",
          .from = from,
          .to = to,
          .levels = levels,
          .cores = 2};
}

std::string Refusal(const Session& session, const DoseRequest& request) {
  try {
    DoseSearch search(session, request);
    return "";
  } catch (const UsageError& error) {
    return error.what();
  }
}

TEST(DoseSearch, FindsBetweenWhichDosesEachAnswerTurns) {
  const FakeSuite suite;
  suite.WriteSlow("slow");
  DoseSearch search(suite.Open(), Ask(1, 0.001, 31));
  EXPECT_EQ(search.strongest().name, "fake/slow");
  ASSERT_TRUE(search.Run(suite.folder()));
  const std::vector<DoseAnswer> answers = search.Answers();
  ASSERT_EQ(answers.size(), 2u);
  const DoseAnswer& symptom = answers[0];
  EXPECT_EQ(symptom.name, "stuck");
  ASSERT_TRUE(symptom.limit && symptom.between && symptom.rates);
  EXPECT_GT(symptom.between->first, kShowsBelow);
  EXPECT_LE(symptom.between->second, kShowsBelow);
  EXPECT_EQ(*symptom.limit, symptom.between->second) << "the weakest that shows";
  EXPECT_LT(symptom.rates->first, symptom.rates->second);
  const DoseAnswer& remedy = answers[1];
  EXPECT_TRUE(remedy.is_remedy);
  ASSERT_TRUE(remedy.limit && remedy.between);
  EXPECT_GT(remedy.between->first, kHoldsAbove);
  EXPECT_LE(remedy.between->second, kHoldsAbove);
  EXPECT_EQ(*remedy.limit, remedy.between->first) << "the strongest that it holds";
  // Every seed has all arms, so one look answers both.
  int looks = 0;
  for (const auto& [dose, count] : symptom.seen) looks += count.second;
  EXPECT_EQ(looks, search.seeds());
  EXPECT_FALSE(std::filesystem::exists(suite.folder() + "/0")) << "runs leave nothing";
  const Json json = search.ToJson();
  EXPECT_EQ(json.at("answers")[0].at("limit"), *symptom.limit);
  EXPECT_EQ(json.at("doses").size(), 31u);
}

TEST(DoseSearch, SaysWhereThereIsNoLimitBetween) {
  const FakeSuite suite;
  suite.WriteSlow("slow");
  DoseSearch search(suite.Open(), Ask(0.9, 0.5));
  ASSERT_TRUE(search.Run(suite.folder()));
  const std::vector<DoseAnswer> answers = search.Answers();
  EXPECT_TRUE(answers[0].is_decided);
  EXPECT_FALSE(answers[0].limit);
  EXPECT_EQ(answers[0].text, "none: it never shows");
  EXPECT_EQ(answers[1].text, "> 0.5");
  EXPECT_TRUE(search.ToJson().at("answers")[0].at("limit").is_null());
}

// A run that dies says nothing about `at_end loss`: no dose is asked for without end.
TEST(DoseSearch, GivesUpDosesWhoseRunsSayNothing) {
  const FakeSuite suite;
  suite.Write("slow",
              "recipe: {steps: 20, fake.mode: crashes}\n"
              "inject:\n  slow: {fault: fake.slow_descent}\n"
              "symptoms:\n  stuck: at_end loss > 1\n"
              "remedies:\n  faster: {scale: {optimizer.lr: 50}}\n");
  DoseSearch search(suite.Open(), Ask(1, 0.5, 3));
  ASSERT_TRUE(search.Run(suite.folder()));
  EXPECT_FALSE(search.Answers()[0].limit);
  EXPECT_LE(search.seeds(), 3 * 3 * 2) << "three looks at each of three doses, two questions";
}

TEST(DoseSearch, RefusesWhatIsNoDose) {
  const FakeSuite suite;
  suite.WriteSlow("slow");
  suite.WriteSlow("other");
  const Session session = suite.Open();
  const auto contains = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos ? std::string() : text + " lacks " + part;
  };
  DoseRequest request = Ask(1, 2);
  request.parameter = "inject.slow.with.facto";
  EXPECT_EQ(contains(Refusal(session, request), "did you mean 'inject.slow.with.factor'?"), "");
  EXPECT_EQ(contains(Refusal(session, Ask(1, 1)), "the same dose"), "");
  EXPECT_EQ(contains(Refusal(session, Ask(1, 2000)), "--param: the dose 2000"), "");
  request = Ask(1, 2);
  request.from.reset();
  EXPECT_EQ(contains(Refusal(session, request), "give --from: 'factor' has no smallest"), "");
  request = Ask(1, 2);
  request.scenario = "fake/*";
  EXPECT_EQ(contains(Refusal(session, request), "'fake/*' is several scenarios"), "");
}

}  // namespace dose_search_test
}  // namespace trainwreck
