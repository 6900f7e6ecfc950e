// The seeds that a comparison lacks, with a script in the place of trainwreck.
#include "harness/bisect/more_seeds.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "harness/history/history.h"
#include "harness/history/history_testing.h"
#include "harness/session/fake_suite.h"

namespace trainwreck {
namespace more_seeds_test {

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
  // The side has a commit, but this is no repository.
  side_.commit = "abc";
  const std::string why =
      RunMissingSeeds(side_, recorded_, {{"fake/slow", 3, 4}}, Script("{}")).why;
  EXPECT_NE(why.find(", and its commit cannot be checked out: "), std::string::npos) << why;
}

// Both sides are of the program that is here, with so many seeds, and runs of a history.
class AddMissingSeedsTest : public MoreSeedsTest {
 protected:
  static constexpr const char* kHistory = "seeds.db";

  void Keep(int seeds_of_a, int seeds_of_b) {
    RunHistory history(kHistory, RunHistory::Mode::kWrite);
    for (auto [side, seeds] : {std::pair{&sides_.a, seeds_of_a}, {&sides_.b, seeds_of_b}}) {
      *side = side_;
      side->cases = {TestCase("fake/slow")};
      std::vector<TrainingRecord>& trainings = side->cases[0].trainings;
      trainings.resize(seeds, trainings[0]);
      for (int seed = 0; seed < seeds; ++seed) trainings[seed].seed = seed;
      side->id = history.Add(*side);
    }
  }

  // The verdicts of seed 3, by the target with this digest.
  std::string VerdictsOf(const std::string& digest) const {
    Verdict verdict;
    verdict.case_name = "fake/slow@3";
    verdict.scenario = "fake/slow";
    verdict.scenario_digest = sides_.a.cases[0].scenario_digest;
    verdict.environment = sides_.a.cases[0].environment;
    verdict.arms.push_back({.arm = "control"});
    verdict.runs["control"].emplace_back();
    RunInfo info;
    info.target_digest = digest;
    return JsonReport({verdict}, info);
  }

  bool Add(const std::string& program, bool is_known = true) {
    const SeedsRequest request = {.history = kHistory,
                                  .read =
                                      [&](const std::string& line) {
                                        read_ += line + ";";
                                        return is_known ? std::optional(recorded_) : std::nullopt;
                                      },
                                  .program = program};
    return AddMissingSeeds(sides_, {{"fake/slow", 1}}, request, said_);
  }

  int SeedsOf(std::int64_t id) {
    return RunHistory(kHistory, RunHistory::Mode::kRead).Load(id)->cases.at(0).seeds();
  }

  Sides sides_;
  std::string read_;
  std::ostringstream said_;
};

TEST_F(AddMissingSeedsTest, OnlyTheSideThatLacksThemGetsThem) {
  Keep(4, 3);
  EXPECT_TRUE(Add(Script(VerdictsOf(side_.target_digest))));
  EXPECT_EQ(said_.str(), "# B: running seeds 3 to 3 of fake/slow\n");
  EXPECT_EQ(read_, "trainwreck run;");
  EXPECT_EQ(sides_.a.cases[0].seeds(), 4);
  EXPECT_EQ(sides_.b.cases[0].seeds(), 4);
  EXPECT_EQ(SeedsOf(sides_.a.id), 4);
  EXPECT_EQ(SeedsOf(sides_.b.id), 4);
}

TEST_F(AddMissingSeedsTest, WhatAnotherProgramGaveIsLeftOut) {
  Keep(4, 3);
  EXPECT_FALSE(Add(Script(VerdictsOf("another"))));
  EXPECT_EQ(sides_.b.cases[0].seeds(), 3);
  EXPECT_EQ(SeedsOf(sides_.b.id), 3);
}

TEST_F(AddMissingSeedsTest, WhatCannotBeRunIsToldWithWhatAPersonCanDo) {
  side_.commit = "0123456789abcdef";
  side_.is_dirty = true;
  Keep(4, 3);
  EXPECT_FALSE(Add(Script(""), /*is_known=*/false));
  EXPECT_EQ(said_.str(),
            "# B: running seeds 3 to 3 of fake/slow\n"
            "# B: no more seeds of it: its command is not known\n"
            "# build commit 0123456789 with its changes, and there: trainwreck run --seeds 4\n");
  EXPECT_EQ(Called(), "");
}

TEST_F(AddMissingSeedsTest, WhereNothingIsMissingNothingIsSaid) {
  Keep(4, 4);
  EXPECT_FALSE(AddMissingSeeds(sides_, {}, {.history = kHistory}, said_));
  EXPECT_EQ(said_.str(), "");
}

}  // namespace more_seeds_test
}  // namespace trainwreck
