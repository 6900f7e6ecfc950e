// The seeds that a comparison lacks, with a script in the place of trainwreck.
#include "harness/bisect/more_seeds.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "harness/history/history_testing.h"
#include "harness/session/fake_suite.h"

namespace trainwreck {
namespace {

namespace fs = std::filesystem;

TEST(MoreSeeds, TheWordsSayWhatWasRecordedAndTheseSeeds) {
  RecordedRun recorded;
  recorded.common.target = "./stack";
  recorded.points = {"sgd"};
  recorded.set = {"optimizer.lr=0.2"};
  recorded.cores = 3;
  recorded.exec = recorded.full = true;
  using Words = std::vector<std::string>;
  EXPECT_EQ(WordsFor(recorded, {"nan/x", 3, 6}, "out"),
            (Words{"run",     "nan/x",   "--each-seed", "3:6",   "--target",
                   "./stack", "--point", "sgd",         "--set", "optimizer.lr=0.2",
                   "--cores", "3",       "--isolate",   "exec",  "--full",
                   "--keep",  "none",    "--history",   "none",  "--output",
                   "out"}));
  EXPECT_EQ(WordsFor({.paths = {"a.yaml", "b.yaml"}}, {"nan/x", 3, 6}, "out")[2], "b.yaml");
}

class MoreSeedsTest : public ::testing::Test {
 protected:
  // What is run lies below the current folder.
  MoreSeedsTest() : home_(fs::current_path()) {
    suite_.WriteSlow("slow");
    fs::current_path(suite_.folder());
    recorded_.common = suite_.common();
    side_ = TestRecord("", DigestOfTarget(suite_.Open().target));
  }
  ~MoreSeedsTest() override { fs::current_path(home_); }

  // A program that leaves this text, if any, as its verdicts, and its words in `called`.
  std::string Script(const std::string& verdicts) const {
    const std::string path = suite_.folder() + "/program";
    std::ofstream(suite_.folder() + "/verdicts") << verdicts;
    std::ofstream(path) << "#!/bin/sh\necho \"$@\" >> '" << suite_.folder() << "/called'\n"
                        << "for word; do output=$word; done\n"
                        << (verdicts.empty() ? "exit 3\n"
                                             : "mkdir -p $output\ncp '" + suite_.folder() +
                                                   "/verdicts' $output/verdicts.json\n");
    fs::permissions(path, fs::perms::owner_all);
    return path;
  }

  std::string Called() const {
    std::stringstream text;
    text << std::ifstream(suite_.folder() + "/called").rdbuf();
    return text.str();
  }

  testing::FakeSuite suite_;
  RecordedRun recorded_;
  Record side_;

 private:
  fs::path home_;
};

TEST_F(MoreSeedsTest, TheSameProgramIsRunHere) {
  Verdict verdict;
  verdict.case_name = verdict.scenario = "fake/slow@3";
  const MoreSeeds more =
      RunMissingSeeds(side_, recorded_, {{"fake/slow", 3, 4}, {"fake/other", 0, 2}},
                      Script(JsonReport({verdict}, {})));
  EXPECT_EQ(more.why, "");
  ASSERT_EQ(more.records.size(), 2u);
  EXPECT_EQ(more.records[0].cases.at(0).name, "fake/slow");
  EXPECT_EQ(Called().rfind("run fake/slow --each-seed 3:4", 0), 0u) << Called();
  EXPECT_NE(Called().find("run fake/other --each-seed 0:2"), std::string::npos) << Called();
  EXPECT_FALSE(fs::exists(".trainwreck/more-seeds/run"));
}

TEST_F(MoreSeedsTest, ARunWithoutVerdictsIsToldWithItsLog) {
  const MoreSeeds more = RunMissingSeeds(side_, recorded_, {{"fake/slow", 3, 4}}, Script(""));
  EXPECT_TRUE(more.records.empty());
  EXPECT_EQ(more.why.rfind("'fake/slow' could not be run, see ", 0), 0u) << more.why;
}

TEST_F(MoreSeedsTest, AProgramThatIsNowhereIsNotRun) {
  side_.target_digest = "0123456789abcdef";
  const MoreSeeds more = RunMissingSeeds(side_, recorded_, {{"fake/slow", 3, 4}}, Script("{}"));
  EXPECT_TRUE(more.records.empty());
  EXPECT_EQ(more.why.rfind("its program (01234567) is not the one that is here (", 0), 0u);
  EXPECT_EQ(Called(), "");
  // Of a commit, but this is no repository.
  side_.commit = "abc";
  const std::string why =
      RunMissingSeeds(side_, recorded_, {{"fake/slow", 3, 4}}, Script("{}")).why;
  EXPECT_NE(why.find(", and its commit cannot be checked out: "), std::string::npos) << why;
}

}  // namespace
}  // namespace trainwreck
