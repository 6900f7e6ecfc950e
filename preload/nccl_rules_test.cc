#include "preload/nccl_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainwreck::preload {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(NcclRules, AreRead) {
  const auto rules = ParseNcclRules(
      "op=all_reduce call=12 ranks=1,3 do=delay ms=300 id=late; do=retype datatype=9 calls=0;");
  ASSERT_EQ(rules.size(), 2U);
  EXPECT_EQ(rules[0].id, "late");
  EXPECT_EQ(rules[0].action, NcclAction::kDelay);
  EXPECT_FALSE(rules[0].any_op);
  EXPECT_EQ(rules[0].op, NcclOp::kAllReduce);
  EXPECT_EQ(rules[0].first_call, 12);
  EXPECT_THAT(rules[0].ranks, ElementsAre(1, 3));
  EXPECT_EQ(rules[0].delay_ms, 300);
  EXPECT_TRUE(rules[1].any_op);
  EXPECT_EQ(rules[1].datatype, 9);
  EXPECT_TRUE(ParseNcclRules("").empty());
}

TEST(NcclRules, RefuseWhatTheyCannotRead) {
  const std::pair<const char*, const char*> wrong[] = {
      {"op=all_reduce", "does not say what to do"},
      {"do=explode", "no such do"},
      {"do=delay op=reduce_all", "no such op"},
      {"do=delay ms=fast", "whole number"},
      {"do=delay ms=-1", "whole number"},
      {"do=error code=0", "from 1"},
      {"do=retype datatype=99", "whole number"},
      {"do=delay seconds=1", "no such field"},
      {"do=delay 300", "no key=value"},
      {"do=delay ranks=", "none"},
      {"do=drop op=group_end", "can be delayed"},
  };
  for (const auto& [text, why] : wrong) {
    try {
      ParseNcclRules(text);
      ADD_FAILURE() << text;
    } catch (const NcclRuleError& error) {
      EXPECT_THAT(error.what(), HasSubstr(why)) << text;
    }
  }
}

// The calls, of so many, that the rule acts on.
std::vector<long> ActedOn(const char* text, NcclOp op, int rank, int calls) {
  NcclRules rules(ParseNcclRules(text));
  std::vector<long> acted;
  for (int i = 0; i < calls; ++i) {
    for (const auto& match : rules.Count(op, rank)) acted.push_back(match.call);
  }
  return acted;
}

TEST(NcclRules, ActOnTheirCallsAlone) {
  EXPECT_THAT(ActedOn("do=drop call=2 calls=2", NcclOp::kSend, 0, 6), ElementsAre(2, 3));
  EXPECT_THAT(ActedOn("do=drop call=4 calls=0", NcclOp::kSend, 0, 6), ElementsAre(4, 5));
  EXPECT_THAT(ActedOn("do=drop op=recv", NcclOp::kSend, 0, 6), ElementsAre());
  EXPECT_THAT(ActedOn("do=drop ranks=1", NcclOp::kSend, 0, 6), ElementsAre());
  EXPECT_THAT(ActedOn("do=drop ranks=1", NcclOp::kSend, 1, 6), ElementsAre(0));
  EXPECT_THAT(ActedOn("do=delay", NcclOp::kGroupEnd, 0, 6), ElementsAre()) << "moves no data";
}

TEST(NcclRules, CountByTheirOwnOp) {
  NcclRules rules(ParseNcclRules("do=drop op=send call=1; do=drop call=2"));
  EXPECT_TRUE(rules.Count(NcclOp::kSend, 0).empty());
  EXPECT_TRUE(rules.Count(NcclOp::kRecv, 0).empty());
  EXPECT_EQ(rules.Count(NcclOp::kSend, 0).size(), 2U);
}

}  // namespace
}  // namespace trainwreck::preload
