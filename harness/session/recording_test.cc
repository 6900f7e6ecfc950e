// Sides of a comparison, as a person names them.
#include "harness/session/recording.h"

#include <gtest/gtest.h>
#include <sys/statfs.h>

#include <filesystem>
#include <fstream>

#include "harness/history/history_testing.h"
#include "harness/session/session.h"

namespace trainwreck {
namespace recording_test {

std::int64_t file_system_here = 0;  // that statfs tells; 0: nothing is known

namespace fs = std::filesystem;

class SideTest : public ::testing::Test {
 protected:
  // Names are those of the current folder.
  SideTest() : home_(fs::current_path()), folder_(::testing::TempDir() + "/sides") {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    fs::current_path(folder_);
  }
  ~SideTest() override { fs::current_path(home_); }

  static void WriteVerdicts(const std::string& folder, const std::string& case_name) {
    fs::create_directories(folder);
    Verdict verdict;
    verdict.case_name = verdict.scenario = case_name;
    std::ofstream(folder + "/verdicts.json") << JsonReport({verdict}, {});
  }
  static std::string CasesOf(const std::string& word, const std::string& history = "none") {
    std::string names;
    for (const CaseRecord& one : LoadSide(word, history).cases) names += one.name + " ";
    return names;
  }

 private:
  fs::path home_;
  std::string folder_;
};

TEST_F(SideTest, VerdictsAreAFileAFolderOrAnInvocation) {
  WriteVerdicts("there", "nan/there");
  WriteVerdicts(".trainwreck/runs/2026", "nan/kept");
  EXPECT_EQ(CasesOf("there/verdicts.json"), "nan/there ");
  EXPECT_EQ(CasesOf("there"), "nan/there ");
  EXPECT_EQ(CasesOf("2026"), "nan/kept ");
  std::ofstream("broken.json") << "{}";
  EXPECT_THROW(CasesOf("broken.json"), ConfigurationError);
}

TEST_F(SideTest, LatestIsTheHistorysNotTheFoldersAndRunsOfACommitAreOneSide) {
  WriteVerdicts(".trainwreck/runs/latest", "nan/of-the-folder");
  RunHistory history("h.db", RunHistory::Mode::kWrite);
  Record first = TestRecord("abcdef0123", "digest");
  first.cases.pop_back();
  Record second = TestRecord("abcdef0123", "digest");
  second.cases.erase(second.cases.begin());
  history.Add(first);
  history.Add(second);
  EXPECT_EQ(CasesOf("latest", "h.db"), "nan/b ");
  EXPECT_EQ(CasesOf("1", "h.db"), "nan/a ");
  EXPECT_EQ(CasesOf("abcdef0123", "h.db"), "nan/a nan/b ");
  EXPECT_THROW(CasesOf("3", "h.db"), UsageError);
  EXPECT_THROW(CasesOf("latest", "none"), UsageError);
}

TEST_F(SideTest, AHistoryThatIsOnlyNiceToHaveMayBeMissingOrDamaged) {
  EXPECT_EQ(FindHistory("h.db"), nullptr);
  EXPECT_FALSE(fs::exists("h.db")) << "asking for it makes none";
  std::ofstream("h.db") << "no database";
  EXPECT_EQ(FindHistory("h.db"), nullptr);
  EXPECT_EQ(FindHistory("none"), nullptr);
  fs::remove("h.db");
  RunHistory("h.db", RunHistory::Mode::kWrite).Add(TestRecord("abc", "digest"));
  ASSERT_NE(FindHistory("h.db"), nullptr);
  EXPECT_TRUE(FindHistory("h.db")->Has(1));
}

TEST(SharedFileSystem, HasANameAndALocalOneHasNone) {
  EXPECT_EQ(NameOfSharedFileSystem(0x6969), "NFS");  // NFS_SUPER_MAGIC of linux/magic.h
  EXPECT_EQ(NameOfSharedFileSystem(0x65735546), "FUSE");
  EXPECT_EQ(NameOfSharedFileSystem(0x01021997), "9P");
  EXPECT_EQ(NameOfSharedFileSystem(0xef53), "");  // ext4
}

TEST_F(SideTest, AHistoryOnASharedFileSystemIsToldOfBeforeTheRuns) {
  const auto said = [](const std::string& option) {
    ::testing::internal::CaptureStderr();
    CheckHistory(option);
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(said(""), "");
  file_system_here = 0x65735546;
  for (const char* option : {"", "h.db", "not/yet/there.db"}) {
    EXPECT_NE(said(option).find("is on FUSE, where a history is safe with writers of one machine"),
              std::string::npos)
        << option;
  }
  EXPECT_EQ(said("none"), "");
  file_system_here = 0;
}

}  // namespace recording_test
}  // namespace trainwreck

// In place of the C library's.
extern "C" int statfs(const char* path, struct statfs* info) noexcept {
  if (!std::filesystem::exists(path)) return -1;
  *info = {};
  info->f_type = trainwreck::recording_test::file_system_here;
  return 0;
}
