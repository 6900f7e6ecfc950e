// One file is all that a new report takes: adding/haiku.cc. --report, its help and its checks ask
// the same list.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "harness/report/report.h"

namespace trainwreck {
namespace {

TEST(AddingAReportTest, OneFileIsListedFoundAndWritten) {
  std::vector<std::string> names;
  for (const ReportFormat& format : ReportFormats()) names.push_back(format.name);
  ASSERT_GT(names.size(), 3u);
  EXPECT_EQ(names.front(), "json");
  EXPECT_EQ(names.back(), "haiku");  // its place
  const std::string path = testing::TempDir() + "/haiku.txt";
  WriteReport(*FindReportFormat("haiku"), path, {{}, {}, {}}, {});
  std::ifstream file(path);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "3 verdicts");
  EXPECT_FALSE(FindReportFormat("sonnet"));
}

}  // namespace
}  // namespace trainwreck
