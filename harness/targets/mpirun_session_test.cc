#include "harness/targets/mpirun_session.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>

namespace trainwreck {
namespace {

constexpr char kFolder[] = "OMPI_MCA_orte_tmpdir_base";

TEST(MpirunSession, EachRunHasAFolderUntilItEnds) {
  std::map<std::string, std::string> first, second;
  std::optional<MpirunSession> session;
  session.emplace(first);
  const MpirunSession other(second);
  const std::string folder = first.at(kFolder);
  EXPECT_NE(folder, second.at(kFolder));
  std::ofstream(folder + "/left") << "by a job that was killed";
  session.reset();
  EXPECT_FALSE(std::filesystem::exists(folder));
  EXPECT_TRUE(std::filesystem::is_directory(second.at(kFolder)));
}

TEST(MpirunSession, TheUsersOwnFolderStays) {
  for (const std::string name : {kFolder, "OMPI_MCA_orte_local_tmpdir_base"}) {
    const std::string own = testing::TempDir() + "own";
    std::filesystem::create_directory(own);
    std::map<std::string, std::string> of_target = {{name, own}}, of_user;
    { const MpirunSession session(of_target); }
    EXPECT_EQ(of_target, (std::map<std::string, std::string>{{name, own}}));
    setenv(name.c_str(), own.c_str(), 1);
    { const MpirunSession session(of_user); }
    unsetenv(name.c_str());
    EXPECT_TRUE(of_user.empty());
    EXPECT_TRUE(std::filesystem::exists(own));
  }
}

TEST(MpirunSession, WithoutAFolderForItTheRunStartsAllTheSame) {
  setenv("TMPDIR", "/nowhere", 1);
  std::map<std::string, std::string> environment;
  { const MpirunSession session(environment); }
  unsetenv("TMPDIR");
  EXPECT_TRUE(environment.empty());
}

}  // namespace
}  // namespace trainwreck
