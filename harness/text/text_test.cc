#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "harness/text/files.h"
#include "harness/text/glob.h"
#include "harness/text/nearest.h"
#include "harness/text/words.h"

namespace trainwreck {
namespace {

TEST(Glob, Matches) {
  EXPECT_TRUE(GlobMatches("*", ""));
  EXPECT_TRUE(GlobMatches("head.*", "head.weight"));
  EXPECT_FALSE(GlobMatches("head.*", "heads.weight"));
  EXPECT_TRUE(GlobMatches("blocks.?.*.bias", "blocks.1.attn.qkv.bias"));
  EXPECT_TRUE(GlobMatches("*a*b*c", "xxaxxbxbxxc"));
  EXPECT_FALSE(GlobMatches("*a*b*c", "xxaxxbxbxx"));
  EXPECT_FALSE(GlobMatches("", "a"));
}

TEST(NearestName, IsNearOrNone) {
  const std::vector<std::string> known = {"loss", "grad_norm", "lr", "update_norm"};
  EXPECT_EQ(NearestName("los", known), "loss");
  EXPECT_EQ(NearestName("lsos", known), "loss");
  EXPECT_EQ(NearestName("grad_nrom", known), "grad_norm");
  EXPECT_EQ(NearestName("rl", known), "lr");
  EXPECT_EQ(NearestName("banana", known), "");
  EXPECT_EQ(NearestName("", known), "");
  EXPECT_EQ(NearestName(std::string(1000, 'x'), known), "");
}

TEST(NearestName, FindsSlips) {
  const std::vector<std::string> known = {"fault", "with", "from", "probability"};
  EXPECT_EQ(NearestName("fualt", known), "fault");
  EXPECT_EQ(NearestName("probabilty", known), "probability");
  EXPECT_EQ(NearestName("elephant", known), "");
  EXPECT_EQ(NearestName("", known), "");
  EXPECT_EQ(NearestName(std::string(100'000, 'a'), known), "");
}

TEST(DidYouMean, AsksOnlyWhenANameIsNear) {
  EXPECT_EQ(DidYouMean("los", {"loss"}), "did you mean 'loss'?");
  EXPECT_EQ(DidYouMean("banana", {"loss"}), "");
}

using Words = std::vector<std::string>;

TEST(Words, AreJoined) {
  EXPECT_EQ(Join(Words{}), "");
  EXPECT_EQ(Join(Words{"a"}), "a");
  EXPECT_EQ(Join(std::set<std::string>{"b", "a"}), "a, b");
  EXPECT_EQ(Join(Words{"", "b", ""}, "; "), "; b; ") << "an empty word has its place";
}

TEST(Words, OfSeveralLinesFitInOne) {
  EXPECT_EQ(InOneLine("a\nb\n\nc\n\n"), "a b  c");
  EXPECT_EQ(InOneLine("\n"), "");
}

TEST(Words, OfAShellAreQuotedWhereTheyHaveToBe) {
  EXPECT_EQ(ShellWord("nan/x.yaml"), "nan/x.yaml");
  EXPECT_EQ(ShellWord("--set=a.b=1e-3,c"), "--set=a.b=1e-3,c");
  EXPECT_EQ(ShellWord(""), "''");
  EXPECT_EQ(ShellWord("nan/x[sgd]"), "'nan/x[sgd]'");
  EXPECT_EQ(ShellWord("it's $HOME"), R"('it'\''s $HOME')");
}

TEST(Words, OfALineAreReadAsTheShellDid) {
  EXPECT_EQ(SplitShellWords("trainwreck run  'nan/x[sgd]' --set a=1"),
            (Words{"trainwreck", "run", "nan/x[sgd]", "--set", "a=1"}));
  EXPECT_EQ(SplitShellWords(R"(a 'it'\''s' '' b\ c)"), (Words{"a", "it's", "", "b c"}));
  EXPECT_EQ(SplitShellWords(""), Words{});
  const Words words = {"a b", "'", "\\", "", "*", "~", "plain", "ends\\"};
  std::string line;
  for (const std::string& word : words) line += ShellWord(word) + " ";
  EXPECT_EQ(SplitShellWords(line), words);
}

TEST(Files, AreReadWholeOrNotAtAll) {
  const std::string path = ::testing::TempDir() + "/whole";
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += static_cast<char>(i);
  std::ofstream(path, std::ios::binary) << text;
  EXPECT_EQ(ReadFile(path), text);
  std::ofstream(path, std::ios::trunc).close();
  EXPECT_EQ(ReadFile(path), "");
  EXPECT_EQ(ReadFile(path + "/nothing"), std::nullopt);
  EXPECT_EQ(ReadFile(::testing::TempDir()), std::nullopt) << "a folder is no text";
}

}  // namespace
}  // namespace trainwreck
