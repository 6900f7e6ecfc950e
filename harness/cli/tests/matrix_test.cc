// matrix from end to end, with the fake target, whose loss is 4 exp(-lr * step).
#include <gtest/gtest.h>

#include <string>

#include "harness/cli/tests/cli_testing.h"
#include "harness/protocol/json.h"

namespace trainwreck {
namespace {

// A second scenario beside WritePassing's: a process that ends after three steps.
void WriteQuitting(const CliFolder& folder, const std::string& symptom) {
  folder.Write("scenarios/fake/quits.yaml",
               "apiVersion: trainwreck/v1\n"
               "kind: Scenario\n"
               "name: fake/quits\n"
               "title: Ends early\n"
               "recipe: {steps: 20, optimizer.lr: 0.2}\n"
               "inject:\n"
               "  quits: {fault: fake.misbehave, with: {mode: exits_7}}\n"
               "symptoms:\n"
               "  gone: " +
                   symptom +
                   "\n"
                   "no_remedy: the fake target has none\n"
                   "seeds: 2\n");
}

TEST(MatrixVerb, ReadsAllSymptomsOverAllCasesAndSaysWhatItFound) {
  const CliFolder folder;
  folder.WritePassing("slow");
  WriteQuitting(folder, "exited(rank=0, code=7)");
  const Called called = folder.Call("matrix --output out --control-seeds 4");
  EXPECT_EQ(called.status, 0) << called.output();
  EXPECT_TRUE(Contains(called.out, "0 of 8 control runs show a symptom")) << called.out;
  EXPECT_TRUE(Contains(called.out, "no symptom separates: 0")) << called.out;
  const Json json = Json::parse(folder.Read("out/matrix.json"));
  ASSERT_EQ(json.at("symptoms").size(), 2u);
  const Json& gone =
      json["symptoms"][0].at("name") == "gone" ? json["symptoms"][0] : json["symptoms"][1];
  for (const Json& cell : gone.at("cells")) {
    const bool own = cell.at("case") == "fake/quits";
    EXPECT_EQ(cell.at("fault"), own ? Json({2, 0, 0}) : Json({0, 2, 0}));
    EXPECT_EQ(cell.at("control"), Json({0, 4, 0}));
  }
  EXPECT_TRUE(Contains(folder.Read("out/matrix.html"), "fake/slow"));
  EXPECT_FALSE(folder.Has("out/fake")) << "runs are kept only when asked for";
}

TEST(MatrixVerb, FailsWhereASymptomHoldsInAControlOfAnotherScenario) {
  const CliFolder folder;
  folder.WritePassing("slow");
  WriteQuitting(folder, "exited(rank=0, code=7) or at_end loss < 1");  // as slow's control has it
  const Called called = folder.Call("matrix fake/slow fake/quits --output out");
  EXPECT_EQ(called.status, 1) << called.output();
  EXPECT_TRUE(Contains(called.out,
                       "FALSE POSITIVE  fake/quits:gone holds in 2/2 control runs of "
                       "fake/slow"))
      << called.out;
}

TEST(MatrixVerb, ReadsRunsThatWereKeptWithoutRunningAnything) {
  const CliFolder folder;
  folder.WritePassing("slow");
  WriteQuitting(folder, "exited(rank=0, code=7)");
  const Called first = folder.Call("matrix --output out --keep");
  ASSERT_EQ(first.status, 0) << first.output();
  const std::string json = folder.Read("out/matrix.json");
  const Called again = folder.Call("matrix --from out --output again");
  EXPECT_EQ(again.status, 0) << again.output();
  EXPECT_EQ(folder.Read("again/matrix.json"), json);
  EXPECT_FALSE(folder.Has("again/fake"));
  // Another formula over the same runs.
  WriteQuitting(folder, "at_end loss < 1");
  EXPECT_EQ(folder.Call("matrix --from out --output again").status, 1);
  EXPECT_EQ(folder.Call("matrix --from nowhere").status, 2);
}

TEST(MatrixVerb, LeavesOutWhatIsMeantToFailUnlessItIsNamed) {
  const CliFolder folder;
  folder.WritePassing("slow");
  folder.WritePassing("planted", "tags: [negative]\n");
  EXPECT_FALSE(Contains(folder.Call("matrix --seeds 1").out, "fake/planted"));
  EXPECT_TRUE(Contains(folder.Call("matrix fake/planted --seeds 1").out, "fake/planted"));
  EXPECT_EQ(folder.Call("matrix -k nothing-of-this-name").status, 4);
}

}  // namespace
}  // namespace trainwreck
