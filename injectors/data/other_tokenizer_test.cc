#include <gtest/gtest.h>

#include <stdexcept>

#include "injectors/testing.h"
#include "trainer/data/tokenizer.h"

namespace trainwreck {
namespace {

const std::string kText = "ab ab ab ab ab ab\ncd cd cd cd\n";

std::shared_ptr<const Tokenizer> OtherOf(Injector& fault, std::int64_t merges) {
  return fault.Wrap(std::make_shared<Tokenizer>(LearnTokenizer(kText, merges)), kText);
}

TEST(OtherTokenizer, LearnsFromTheLastPartOfTheText) {
  FaultBench bench;
  const auto fault = bench.Make("data.other_tokenizer", {{"share", 0.4}});
  const auto other = OtherOf(*fault, 1);
  EXPECT_EQ(LearnTokenizer(kText, 1).TextOf(256), "ab");
  EXPECT_EQ(other->TextOf(256), "cd");
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_EQ(bench.fired()[0]["before"][0], 256);
  EXPECT_EQ(bench.fired()[0]["after"][0], 'a');
  EXPECT_EQ(bench.fired()[0]["digest_after"], other->Digest());
  EXPECT_NE(bench.fired()[0]["digest_before"], other->Digest());
}

TEST(OtherTokenizer, ATokenInFrontMovesAllOthers) {
  FaultBench bench;
  const auto fault = bench.Make("data.other_tokenizer", {{"version", "token_in_front"}});
  const Tokenizer before = LearnTokenizer(kText, 3);
  const auto other = OtherOf(*fault, 3);
  EXPECT_EQ(other->size(), before.size());
  EXPECT_EQ(other->TextOf(0), "");
  for (std::int64_t token = 0; token < before.size() - 1; ++token) {
    EXPECT_EQ(other->TextOf(token + 1), before.TextOf(token)) << token;
  }
}

TEST(OtherTokenizer, LeavesOtherPhasesAlone) {
  FaultBench bench;
  const auto fault = bench.Make("data.other_tokenizer", {}, {.phase = "finetune"});
  EXPECT_EQ(OtherOf(*fault, 2)->Digest(), LearnTokenizer(kText, 2).Digest());
  EXPECT_TRUE(bench.fired().empty());
  bench.clock.phase = "finetune";
  EXPECT_NE(OtherOf(*fault, 2)->Digest(), LearnTokenizer(kText, 2).Digest());
}

TEST(OtherTokenizer, RefusesVersionsOfAnotherSize) {
  FaultBench bench;
  EXPECT_THROW(OtherOf(*bench.Make("data.other_tokenizer", {{"version", "token_in_front"}}), 0),
               std::runtime_error);
  EXPECT_THROW(OtherOf(*bench.Make("data.other_tokenizer", {{"share", 0.1}}), 3),
               std::runtime_error);
}

}  // namespace
}  // namespace trainwreck
