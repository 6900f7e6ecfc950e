#include "trainer/ranks/local_place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>

namespace trainwreck {
namespace {

using testing::HasSubstr;

class LocalPlaceTest : public testing::Test {
 protected:
  ~LocalPlaceTest() override { Set({}); }

  // The environment is these of the variables, and no others that a launcher sets.
  void Set(const std::map<std::string, std::string>& variables) {
    for (const auto& [name, value] : set_) unsetenv(name.c_str());
    set_ = variables;
    for (const auto& [name, value] : set_) setenv(name.c_str(), value.c_str(), 1);
  }
  std::string ErrorOf(RankLauncher launcher, int rank, int world_size) {
    try {
      LocalPlaceOf(launcher, rank, world_size);
    } catch (const RecipeError& error) {
      return error.what();
    }
    return "";
  }

 private:
  std::map<std::string, std::string> set_;
};

TEST_F(LocalPlaceTest, IsWhatTheLauncherSays) {
  Set({{"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "4"}});
  EXPECT_EQ(LocalPlaceOf(RankLauncher::kTorchrun, 5, 8), (LocalPlace{1, 4}));
  EXPECT_EQ(LocalPlaceOf(RankLauncher::kOwn, 5, 8), (LocalPlace{1, 4}));
  EXPECT_EQ(LocalPlaceOf(RankLauncher::kSrun, 5, 8), (LocalPlace{5, 8})) << "these are not Slurm's";
  Set({{"OMPI_COMM_WORLD_LOCAL_RANK", "2"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "3"}});
  EXPECT_EQ(LocalPlaceOf(RankLauncher::kMpirun, 5, 6), (LocalPlace{2, 3}));
  Set({{"MPI_LOCALRANKID", "0"}, {"MPI_LOCALNRANKS", "2"}});
  EXPECT_EQ(LocalPlaceOf(RankLauncher::kMpirun, 4, 6), (LocalPlace{0, 2}));
}

TEST_F(LocalPlaceTest, OfSlurmsIsAmongTheTasksOfTheNode) {
  const auto of_node = [&](const char* node, const char* local, const char* tasks) {
    Set({{"SLURM_NODEID", node}, {"SLURM_LOCALID", local}, {"SLURM_STEP_TASKS_PER_NODE", tasks}});
    return LocalPlaceOf(RankLauncher::kSrun, 6, 8);
  };
  EXPECT_EQ(of_node("0", "3", "4(x2)"), (LocalPlace{3, 4}));
  EXPECT_EQ(of_node("1", "2", "4(x2)"), (LocalPlace{2, 4}));
  EXPECT_EQ(of_node("2", "0", "3(x2),2"), (LocalPlace{0, 2}));
  EXPECT_EQ(of_node("1", "0", "5,1,2"), (LocalPlace{0, 1}));
  EXPECT_EQ(of_node("0", "7", "8"), (LocalPlace{7, 8}));
  for (const char* strange : {"", "4(x2", "many", "4(x1)"}) {
    EXPECT_EQ(of_node("1", "2", strange), (LocalPlace{2, 8})) << strange;
  }
}

TEST_F(LocalPlaceTest, OfRanksOfWhichNobodySaysItIsTheirNumber) {
  EXPECT_EQ(LocalPlaceOf(RankLauncher::kOwn, 0, 1), (LocalPlace{0, 1}));
  EXPECT_EQ(LocalPlaceOf(RankLauncher::kMpirun, 2, 3), (LocalPlace{2, 3}));
}

TEST_F(LocalPlaceTest, RefusesWhatIsNoRankOfAMachine) {
  Set({{"LOCAL_RANK", "x"}});
  EXPECT_THAT(ErrorOf(RankLauncher::kOwn, 0, 2), HasSubstr("LOCAL_RANK is no rank: x"));
  Set({{"LOCAL_RANK", "1x"}});
  EXPECT_THAT(ErrorOf(RankLauncher::kOwn, 0, 2), HasSubstr("LOCAL_RANK is no rank: 1x"));
  Set({{"LOCAL_RANK", "-1"}});
  EXPECT_THAT(ErrorOf(RankLauncher::kOwn, 0, 2), HasSubstr("LOCAL_RANK is no rank: -1"));
  Set({{"LOCAL_RANK", "2"}, {"LOCAL_WORLD_SIZE", "2"}});
  EXPECT_THAT(ErrorOf(RankLauncher::kOwn, 2, 4), HasSubstr("rank 2 of 2 of its machine"));
  Set({{"LOCAL_RANK", "2"}, {"LOCAL_WORLD_SIZE", "8"}});
  EXPECT_THAT(ErrorOf(RankLauncher::kOwn, 2, 4), HasSubstr("and of 4 in all"));
}

}  // namespace
}  // namespace trainwreck
