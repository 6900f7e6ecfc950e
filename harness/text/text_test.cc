#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "harness/text/glob.h"
#include "harness/text/nearest.h"

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

}  // namespace
}  // namespace trainwreck
