#include "harness/yaml/diagnostic.h"

#include <gtest/gtest.h>

namespace trainwreck {
namespace {

TEST(Format, ShowsPlaceLineCaretAndHint) {
  const Diagnostic error{"scenarios/nan/x.yaml",
                         {12, 9, 5},
                         "unknown key 'fualt'",
                         "did you mean 'fault'?",
                         "  hot: {fualt: recipe.high_lr}"};
  EXPECT_EQ(Format(error),
            "scenarios/nan/x.yaml:12:9: error: unknown key 'fualt'\n"
            "   12 |   hot: {fualt: recipe.high_lr}\n"
            "      |         ^~~~~\n"
            "  did you mean 'fault'?\n");
}

TEST(Format, OfTheWholeFileHasNoLine) {
  EXPECT_EQ(Format({"x.yaml", {}, "the file is empty", "", ""}),
            "x.yaml: error: the file is empty\n");
}

TEST(Format, ColoursOnRequestOnly) {
  const Diagnostic error{"x.yaml", {1, 1, 1}, "wrong", "", "text"};
  EXPECT_EQ(Format(error).find('\033'), std::string::npos);
  EXPECT_NE(Format(error, true).find("\033[1;31m"), std::string::npos);
}

TEST(Format, KeepsTabsBeforeTheCaret) {
  const Diagnostic error{"x.yaml", {1, 3, 1}, "wrong", "", "\t\tkey"};
  EXPECT_NE(Format(error).find("      | \t\t^\n"), std::string::npos);
}

TEST(Format, CountsCharactersNotBytesForTheCaret) {
  const Diagnostic error{"x.yaml", {1, 4, 3}, "wrong", "", "é: bad"};  // é has two bytes
  EXPECT_NE(Format(error).find("      |   ^~~\n"), std::string::npos);
}

TEST(Format, CutsLongLinesAroundTheCaret) {
  const std::string line = std::string(500, 'a') + "X" + std::string(500, 'b');
  const std::string text = Format({"x.yaml", {1, 501, 1}, "wrong", "", line});
  EXPECT_LT(text.size(), 500U);
  EXPECT_NE(text.find("aXb"), std::string::npos);
  // The caret stands under the X.
  const std::size_t shown = text.find("| ...") + 2;
  const std::size_t caret_line = text.rfind("| ") + 2;
  EXPECT_EQ(text.find('X') - shown, text.find('^') - caret_line);
}

TEST(Format, SurvivesPlacesOutsideTheLine) {
  EXPECT_NE(Format({"x.yaml", {1, 99, 7}, "wrong", "", "short"}).find('^'), std::string::npos);
  EXPECT_NE(Format({"x.yaml", {1, -3, 0}, "wrong", "", "short"}).find('^'), std::string::npos);
}

}  // namespace
}  // namespace trainwreck
