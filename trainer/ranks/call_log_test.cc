#include "trainer/ranks/call_log.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>

#include "trainer/ranks/forked_ranks.h"

namespace trainwreck {
namespace {

// Without the spaces behind each.
std::vector<std::string> LinesOf(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    lines.push_back(line.substr(0, line.find_last_not_of(' ') + 1));
  }
  return lines;
}

double AtOneSecond() { return 1; }

TEST(CallLog, HasTheLastCallsInARing) {
  ScratchFolder folder;
  CallLog log(folder.File("calls"), AtOneSecond);
  for (int call = 0; call < 18; ++call) {
    log.Begin(call, call / 2, "all_reduce", "[4]", "float64");
    log.End(call, /*failed=*/call == 16);
  }
  log.Begin(18, 9, "barrier", "[]", "");
  EXPECT_EQ(std::filesystem::file_size(folder.File("calls")), 16 * 256u);
  const auto lines = LinesOf(folder.File("calls"));
  ASSERT_EQ(lines.size(), 16u);
  const std::string begin =
      R"({"call":16,"step":8,"op":"all_reduce","shape":"[4]","dtype":"float64","began":1.000000,)";
  EXPECT_EQ(lines[0], begin + R"("ended":"failed"})");
  EXPECT_EQ(lines[2], R"({"call":18,"step":9,"op":"barrier","shape":"[]","dtype":"","began":)"
                      R"(1.000000,"ended":null})");
  EXPECT_NE(lines[3].find("\"call\":3,"), std::string::npos);
  EXPECT_NE(lines[3].find("\"ended\":1.000000}"), std::string::npos);
}

TEST(CallLog, OutlivesAKilledProcess) {
  ScratchFolder folder;
  RunForked(1, [&](int) {
    CallLog log(folder.File("calls"), AtOneSecond);
    log.Begin(0, 0, "all_reduce", std::string(500, '1'), "float32");
    raise(SIGKILL);
    return std::string();
  });
  const std::string line = LinesOf(folder.File("calls")).at(0);
  EXPECT_TRUE(line.ends_with("\"ended\":null}")) << line;
}

TEST(CallLog, SaysWhyItCannotBeMade) {
  EXPECT_THROW(CallLog("/nowhere/calls", AtOneSecond), std::runtime_error);
}

}  // namespace
}  // namespace trainwreck
