// The file of declared keys, and what becomes of a search with it.
#include "harness/keys/expected.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "harness/keys/report.h"

namespace trainwreck {
namespace expected_test {

TargetDescription Target() {
  TargetDescription target;
  for (const char* name : {"model.init", "optimizer.lr", "parallel.timeout_s"}) {
    ParamInfo key;
    key.name = name;
    target.recipe.push_back(key);
  }
  return target;
}

ExpectedFile Load(const std::string& ignored) {
  const std::string path = std::string(std::getenv("TEST_TMPDIR")) + "/expected.yaml";
  std::ofstream(path) << "apiVersion: trainwreck/v1\nkind: IgnoredKeys\nignored:\n" << ignored;
  return LoadExpected(path, Target());
}

TEST(ExpectedKeys, AnEntryIsForItsKeysInItsContexts) {
  const ExpectedFile file = Load(
      "  - {keys: [model.init, optimizer.lr], in: resume, reason: from the checkpoint}\n"
      "  - {keys: parallel.timeout_s, reason: nothing waits}\n");
  EXPECT_TRUE(file.errors.empty());
  ASSERT_EQ(file.entries.size(), 3u);
  EXPECT_EQ(file.entries[1].key, "optimizer.lr");
  EXPECT_EQ(file.entries[1].contexts, std::set<KeyContext>{KeyContext::kResume});
  EXPECT_EQ(file.entries[2].contexts.size(), 4u) << "all of them";
}

TEST(ExpectedKeys, MistakesAreToldWithTheirPlace) {
  const ExpectedFile file = Load(
      "  - {keys: model.int, reason: x}\n"
      "  - {keys: model.init, in: resumed, reason: x}\n"
      "  - {keys: model.init}\n"
      "  - {keys: model.init, reason: x, because: y}\n");
  ASSERT_EQ(file.errors.size(), 4u);
  EXPECT_EQ(file.errors[0].message, "the target has no recipe key 'model.int'");
  EXPECT_NE(file.errors[0].hint.find("model.init"), std::string::npos);
  EXPECT_EQ(file.errors[0].position.line, 4);
  EXPECT_EQ(file.errors[1].message, "no context is called 'resumed'");
  EXPECT_NE(file.errors[2].message.find("reason"), std::string::npos);
  EXPECT_NE(file.errors[3].message.find("because"), std::string::npos);
  EXPECT_THROW(LoadExpected("/nowhere", Target()), std::runtime_error);
}

KeyReading Acting(const Recipe& condition = {}) {
  KeyReading reading;
  reading.acts = Witness{condition, 2, "loss of rank 0"};
  return reading;
}

KeyReading Silent() {
  KeyReading reading;
  reading.tried = 3;
  return reading;
}

KeyReading Refused() {
  KeyReading reading;
  reading.refusal = "must be 4";
  return reading;
}

KeyState StateOf(const KeysReport& report, KeyContext context) {
  for (const KeyFinding& finding : report.findings) {
    if (finding.context == context) return finding.state;
  }
  return KeyState::kLeftOut;
}

// One key in two contexts.
KeysReport Conclude(const KeyReading& plain, const KeyReading& resumed,
                    const std::vector<ExpectedIgnored>& expected = {}) {
  SearchedContext first, second;
  first.search.keys["k"] = plain;
  second.context = KeyContext::kResume;
  second.search.keys["k"] = resumed;
  return ConcludeKeys({first, second}, first.search, expected);
}

TEST(ConcludeKeys, AKeyThatActsPlainlyMustActInEachContext) {
  EXPECT_FALSE(Conclude(Acting(), Acting()).Fails());
  const KeysReport forgotten = Conclude(Acting(), Silent());
  EXPECT_TRUE(forgotten.Fails());
  EXPECT_EQ(StateOf(forgotten, KeyContext::kResume), KeyState::kIgnored);
  EXPECT_TRUE(Conclude(Silent(), Silent()).Fails());
}

// resume.rewarm_steps does nothing without a resume, rightly.
TEST(ConcludeKeys, AKeyOfAnotherContextIsNotIgnored) {
  const KeysReport report = Conclude(Silent(), Acting());
  EXPECT_FALSE(report.Fails());
  EXPECT_EQ(StateOf(report, KeyContext::kPlain), KeyState::kElsewhere);
}

TEST(ConcludeKeys, ARefusedKeyIsNotIgnored) {
  const KeysReport report = Conclude(Refused(), Acting());
  EXPECT_FALSE(report.Fails());
  EXPECT_EQ(StateOf(report, KeyContext::kPlain), KeyState::kRefused);
}

TEST(ConcludeKeys, ADeclarationMustHold) {
  const std::vector<ExpectedIgnored> declared = {{"k", {KeyContext::kResume}, "saved"}};
  const KeysReport held = Conclude(Acting(), Silent(), declared);
  EXPECT_FALSE(held.Fails());
  EXPECT_EQ(StateOf(held, KeyContext::kResume), KeyState::kDeclared);
  for (const KeyReading& reading : {Acting(), Refused()}) {
    const KeysReport stale = Conclude(Acting(), reading, declared);
    EXPECT_TRUE(stale.Fails());
    EXPECT_EQ(StateOf(stale, KeyContext::kResume), KeyState::kStale);
  }
  EXPECT_TRUE(Conclude(Silent(), Silent(), declared).Fails()) << "declared after a resume only";
  const std::vector<ExpectedIgnored> needless = {{"k", {KeyContext::kPlain}, "of a resume"}};
  EXPECT_TRUE(Conclude(Silent(), Acting(), needless).Fails());
}

TEST(ConcludeKeys, TheReportSaysWhereAKeyActs) {
  const Json json = ToJson(Conclude(Acting({{"kind", "sgd"}}), Silent()));
  EXPECT_EQ(json.at("schema"), "trainwreck/keys");
  EXPECT_EQ(json.at("fails"), true);
  EXPECT_EQ(json.at("keys")[0].at("text"), "as 2 under kind=sgd: loss of rank 0");
  EXPECT_EQ(json.at("keys")[1].at("state"), "IGNORED");
}

}  // namespace expected_test
}  // namespace trainwreck
