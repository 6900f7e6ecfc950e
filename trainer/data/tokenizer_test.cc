#include "trainer/data/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace trainwreck {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

using Tokens = std::vector<std::int64_t>;

// 'a' is 97, 'b' 98, 'c' 99.
TEST(LearnTokenizerTest, MergesWhatStandsTogetherMostOften) {
  // ab five times, bc three times; then (ab)c three times.
  const Tokenizer tokenizer = LearnTokenizer("abc abc abc ab ab", 2);
  EXPECT_THAT(tokenizer.merges(), ElementsAre(Pair(97, 98), Pair(' ', 256)));
  EXPECT_EQ(tokenizer.TextOf(256), "ab");
  EXPECT_EQ(tokenizer.TextOf(257), " ab");
  EXPECT_EQ(tokenizer.size(), 258);
  EXPECT_EQ(tokenizer.Encode("abc ab"), (Tokens{256, 99, 257}));
}

TEST(LearnTokenizerTest, OfEquallyFrequentPairsTheLowerNumbersComeFirst) {
  const Tokenizer tokenizer = LearnTokenizer("zy\nzy\nba\nba", 1);
  EXPECT_THAT(tokenizer.merges(), ElementsAre(Pair(98, 97)));
}

TEST(LearnTokenizerTest, EndsWhereNoPairOccursTwice) {
  EXPECT_THAT(LearnTokenizer("abcdef", 10).merges(), IsEmpty());
  EXPECT_THAT(LearnTokenizer("abab\nab", 10).merges(), ElementsAre(Pair(97, 98)));
  EXPECT_THAT(LearnTokenizer("", 10).merges(), IsEmpty());
}

TEST(LearnTokenizerTest, OverlappingPairsAreReplacedFromTheLeft) {
  const Tokenizer tokenizer = LearnTokenizer("aaa\naaa", 1);
  EXPECT_THAT(tokenizer.merges(), ElementsAre(Pair(97, 97)));
  EXPECT_EQ(tokenizer.Encode("aaaaa"), (Tokens{256, 256, 97}));
}

TEST(TokenizerTest, EarlierMergesAreMadeFirst) {
  const Tokenizer tokenizer({{98, 99}, {97, 98}, {97, 256}});
  EXPECT_EQ(tokenizer.Encode("abc"), (Tokens{258})) << "a(bc), not (ab)c";
  EXPECT_EQ(tokenizer.Encode("ab"), (Tokens{257}));
}

TEST(TokenizerTest, ReservedTokensMoveAllOthers) {
  const Tokenizer tokenizer({{98, 99}}, /*reserved=*/1);  // a and b
  EXPECT_EQ(tokenizer.Encode("abc"), (Tokens{257, 100}));
  EXPECT_EQ(tokenizer.Decode({0, 98, 257}), "aab");
  EXPECT_EQ(tokenizer.size(), 258);
  EXPECT_FALSE(tokenizer.is_plain());
  EXPECT_TRUE(Tokenizer().is_plain());
}

TEST(TokenizerTest, DecodingGivesAnyTextBack) {
  std::string text = "  Two blanks,\n\n\ttabs; 1234 and 12.5% of \"quotes\" don't  count ";
  for (int byte = 0; byte < 256; ++byte) text += static_cast<char>(byte);
  text += "\xc3\xa9t\xc3\xa9 ";
  for (const std::int64_t merges : {0, 3, 50}) {
    const Tokenizer tokenizer = LearnTokenizer(text + text, merges);
    EXPECT_EQ(tokenizer.Decode(tokenizer.Encode(text)), text) << merges;
    EXPECT_EQ(static_cast<std::int64_t>(tokenizer.merges().size()), merges);
  }
}

TEST(TokenizerTest, TheSameTextGivesTheSameTokenizer) {
  const std::string text = "the cat and the hat and the bat";
  EXPECT_EQ(LearnTokenizer(text, 4).Digest(), LearnTokenizer(text, 4).Digest());
  EXPECT_NE(LearnTokenizer(text, 4).Digest(), LearnTokenizer(text, 3).Digest());
  EXPECT_NE(Tokenizer({}, 1).Digest(), Tokenizer().Digest());
}

TEST(TokenizerTest, TokensThatAreNotThereHaveNoText) {
  const Tokenizer tokenizer({{97, 98}}, 2);
  for (const std::int64_t token : {-1, 0, 1, 259}) EXPECT_EQ(tokenizer.TextOf(token), "") << token;
  EXPECT_EQ(tokenizer.TextOf(258), "_`") << "of the bytes 95 and 96";
}

TEST(TokenizerTest, AMergeOfTokensThatAreNotThereIsAnError) {
  EXPECT_THROW(Tokenizer({{97, 256}}), std::invalid_argument);
  EXPECT_THROW(Tokenizer({{97, 98}}, /*reserved=*/98), std::invalid_argument);
}

TEST(SplitIntoWordsTest, OneBlankBelongsToTheWordBehindIt) {
  EXPECT_THAT(SplitIntoWords("It is 1999,  a year.\n  End "),
              ElementsAre("It", " is", " 1999", ",", " ", " a", " year", ".", "\n ", " End", " "));
  EXPECT_THAT(SplitIntoWords(""), IsEmpty());
}

}  // namespace
}  // namespace trainwreck
