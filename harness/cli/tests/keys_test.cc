// keys from end to end, with a target that forgets some of its options.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "harness/cli/tests/cli_testing.h"
#include "harness/protocol/json.h"

namespace trainwreck {
namespace {

std::string Forgetful() {
  return " --target '" + std::filesystem::absolute("harness/keys/forgetful_target").string() + "'";
}

constexpr char kExpected[] =
    "apiVersion: trainwreck/v1\n"
    "kind: IgnoredKeys\n"
    "ignored:\n"
    "  - {keys: optimizer.clip_norm, reason: it was never written}\n"
    "  - {keys: schedule.warmup, in: resume, reason: the checkpoint has its own}\n"
    "  - {keys: loss.smoothing, in: accumulation, reason: not defined there}\n";

TEST(Keys, NamesTheKeysThatAreIgnoredAndWhere) {
  const CliFolder folder;
  const Called called = folder.Call("keys -v --json keys.json" + Forgetful());
  EXPECT_EQ(called.status, 1) << called.output();
  EXPECT_TRUE(Contains(called.out, "two runs of the unchanged recipe gave the same bits"));
  const Json json = Json::parse(folder.Read("keys.json"));
  EXPECT_EQ(json.at("schema"), "trainwreck/keys");
  std::string ignored, momentum, heads;
  for (const Json& key : json.at("keys")) {
    const std::string name = key.at("key"), context = key.at("context");
    if (key.at("state") == "IGNORED") ignored += name + " " + context + "\n";
    if (name == "optimizer.momentum" && context == "plain") momentum = key.at("text");
    if (name == "model.heads" && context == "plain") heads = key.at("state");
  }
  EXPECT_EQ(ignored,
            "optimizer.clip_norm plain\n"
            "optimizer.clip_norm resume\nschedule.warmup resume\n"
            "optimizer.clip_norm ranks\n"
            "loss.smoothing accumulation\noptimizer.clip_norm accumulation\n");
  EXPECT_EQ(momentum, "as 1.8 under optimizer.kind=sgd: loss of rank 0");
  EXPECT_EQ(heads, "refused");
}

TEST(Keys, ADeclarationIsBelievedWhereItHolds) {
  const CliFolder folder;
  folder.Write("expected.yaml", kExpected);
  const Called held = folder.Call("keys --expected expected.yaml" + Forgetful());
  EXPECT_EQ(held.status, 0) << held.output();
  EXPECT_FALSE(Contains(held.out, "IGNORED")) << held.out;
  folder.Write("lying.yaml", std::string(kExpected) + "  - {keys: optimizer.lr, reason: a lie}\n");
  const Called lying = folder.Call("keys --context plain --expected lying.yaml" + Forgetful());
  EXPECT_EQ(lying.status, 1) << lying.output();
  EXPECT_TRUE(Contains(lying.out, "NOT AS DECLARED  declared to change nothing (a lie), but: acts"))
      << lying.out;
  folder.Write("wrong.yaml", std::string(kExpected) + "  - {keys: optimizer.rl, reason: a slip}\n");
  const Called wrong = folder.Call("keys --expected wrong.yaml" + Forgetful());
  EXPECT_EQ(wrong.status, 3) << wrong.output();
  EXPECT_TRUE(Contains(wrong.err, "did you mean 'optimizer.lr'")) << wrong.err;
}

TEST(Keys, PatternsAndContextsRestrict) {
  const CliFolder folder;
  const Called called =
      folder.Call("keys 'optimizer.l*' loss.smoothing --context accumulation -v" + Forgetful());
  EXPECT_EQ(called.status, 1) << called.output();
  EXPECT_TRUE(Contains(called.out, "loss.smoothing  accumulation  IGNORED")) << called.out;
  EXPECT_TRUE(Contains(called.out, "optimizer.lr    accumulation  acts")) << called.out;
  EXPECT_FALSE(Contains(called.out, "clip_norm")) << called.out;
  EXPECT_EQ(folder.Call("keys 'optimiser.*'" + Forgetful()).status, 2);
  EXPECT_EQ(folder.Call("keys --context afterwards" + Forgetful()).status, 2);
}

TEST(Keys, ATargetWithoutEqualRunsIsNotJudged) {
  const CliFolder folder;
  const Called called = folder.Call("keys" + Forgetful(), "FORGETFUL_DRIFTS=1");
  EXPECT_EQ(called.status, 5) << called.output();
  EXPECT_TRUE(Contains(called.err, "two equal runs differ in loss of rank 0")) << called.err;
}

TEST(Keys, ABaseRunThatFailsIsNoJudgement) {
  const CliFolder folder;
  const Called called = folder.Call("keys --set model.heads=2" + Forgetful());
  EXPECT_EQ(called.status, 7) << called.output();
  EXPECT_TRUE(Contains(called.err, "heads: must be 4")) << called.err;
}

}  // namespace
}  // namespace trainwreck
