// Which differences between two recipes flip the verdict, over the fake target. Its loss is
// 4 exp(-lr * step); a control run whose loss ends above 1 shows the symptom, so the verdict fails.
#include "harness/bisect/between.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "harness/session/fake_suite.h"

namespace trainwreck {
namespace between_test {

using testing::FakeSuite;

struct Said {
  int status = -1;
  std::string text;
};

class Between : public ::testing::Test {
 protected:
  // Outputs go below the current folder.
  Between() : home_(std::filesystem::current_path()) {
    std::filesystem::current_path(suite_.folder());
  }
  ~Between() override { std::filesystem::current_path(home_); }

  void Write(const std::string& name, const std::string& recipe) const {
    suite_.Write(name, "recipe: {" + recipe +
                           "}\n"
                           "inject:\n  slow: {fault: fake.slow_descent, with: {factor: 0.01}}\n"
                           "symptoms:\n  stuck: at_end loss > 1\n"
                           "remedies:\n  faster: {scale: {optimizer.lr: 50}}\n"
                           "seeds: 2\n");
  }

  Said Ask(const std::string& good, const std::string& bad, int max_runs = 1000) const {
    BisectOptions options;
    options.common = suite_.common();
    options.between = {good, bad};
    options.jobs = 2;
    options.max_runs = max_runs;
    Said said;
    ::testing::internal::CaptureStdout();
    try {
      said.status = BisectBetween(options);
      said.text = ::testing::internal::GetCapturedStdout();
    } catch (const UsageError& error) {
      ::testing::internal::GetCapturedStdout();
      said.text = error.what();
    }
    return said;
  }

  FakeSuite suite_;

 private:
  std::filesystem::path home_;
};

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_F(Between, NamesTheOneChangeThatFlipsTheVerdict) {
  Write("good", "steps: 20, optimizer.lr: 0.2");
  Write("bad", "steps: 20, optimizer.lr: 0.003, fake.at: 7, fake.rank: 1");
  const Said said = Ask("fake/good", "fake/bad");
  EXPECT_EQ(said.status, kExitPassed);
  EXPECT_TRUE(Contains(said.text, "# 3 differences between fake/good and fake/bad")) << said.text;
  EXPECT_TRUE(Contains(said.text, "this change flips the verdict\n  optimizer.lr: 0.2 -> 0.003\n"))
      << said.text;
}

// Twelve steps at 0.2 end below 1, and so do twenty at 0.1; only twelve at 0.1 end above.
TEST_F(Between, NamesChangesThatOnlyFlipItTogether) {
  Write("good", "steps: 20, optimizer.lr: 0.2");
  Write("bad", "steps: 12, optimizer.lr: 0.1, fake.at: 7");
  const Said said = Ask("fake/good", "fake/bad");
  EXPECT_EQ(said.status, kExitPassed);
  EXPECT_TRUE(Contains(said.text, "these changes together flip the verdict\n")) << said.text;
  EXPECT_TRUE(Contains(said.text, "  optimizer.lr: 0.2 -> 0.1\n")) << said.text;
  EXPECT_TRUE(Contains(said.text, "  steps: 20 -> 12\n")) << said.text;
  EXPECT_FALSE(Contains(said.text, "  fake.at:")) << said.text;
}

TEST_F(Between, SaysWhenTheEndsDoNotDiffer) {
  Write("good", "steps: 20, optimizer.lr: 0.2");
  Write("same", "steps: 20, optimizer.lr: 0.21");
  const Said said = Ask("fake/good", "fake/same");
  EXPECT_EQ(said.status, kExitFailed);
  EXPECT_FALSE(Contains(said.text, "flip")) << said.text;
  const Said short_of_runs = Ask("fake/good", "fake/same", /*max_runs=*/1);
  EXPECT_EQ(short_of_runs.status, kExitFailed);
}

TEST_F(Between, RefusesWhatIsNoPair) {
  Write("good", "steps: 20, optimizer.lr: 0.2");
  Write("bad", "steps: 20, optimizer.lr: 0.003");
  EXPECT_TRUE(Contains(Ask("fake/good", "fake/good").text, "both recipes are the same"));
  EXPECT_TRUE(Contains(Ask("fake/*", "fake/bad").text, "'fake/*' is several scenarios"));
}

}  // namespace between_test
}  // namespace trainwreck
