// checkup and lr-range from end to end, with the fake target, whose loss is 4 exp(-lr * step): a
// recipe that learns, a rate that is too low, a process that dies.
#include <gtest/gtest.h>

#include <string>

#include "harness/cli/tests/cli_testing.h"
#include "harness/protocol/json.h"

namespace trainwreck {
namespace {

void WriteSuite(const CliFolder& folder) {
  folder.WritePassing("slow");
  folder.Write("scenarios/fake/dies.yaml",
               "apiVersion: trainwreck/v1\n"
               "kind: Scenario\n"
               "name: fake/dies\n"
               "title: Dies after three steps\n"
               "recipe: {steps: 20, optimizer.lr: 0.15}\n"
               "inject:\n"
               "  dies: {fault: fake.misbehave, with: {mode: crashes}}\n"
               "symptoms:\n"
               "  killed: exited(rank=0, signal=6)\n"
               "remedies:\n"
               "  restart: {set: {supervisor.max_restarts: 1}}\n"
               "decoys:\n"
               "  lower_lr: {scale: {optimizer.lr: 0.5}}\n"
               "seeds: 2\n");
}

TEST(Checkup, NamesTheFaultWithEvidenceAndWhatToDo) {
  const CliFolder folder;
  WriteSuite(folder);
  const Called slow =
      folder.Call("checkup fake/slow --arm fault --report slow.json --html slow.html");
  EXPECT_EQ(slow.status, 1) << slow.output();
  EXPECT_TRUE(Contains(slow.err, "learning what 4 faults and healthy recipes look like"));
  EXPECT_TRUE(Contains(slow.out, "# family: fake")) << slow.out;
  EXPECT_TRUE(Contains(slow.out, "1. fake/slow")) << slow.out;
  EXPECT_TRUE(Contains(slow.out, "true   as given: at_end loss > 1")) << slow.out;
  EXPECT_TRUE(Contains(slow.out, "next:      faster (optimizer.lr x 50)")) << slow.out;
  EXPECT_TRUE(Contains(slow.out, "not first: slightly_faster (optimizer.lr x 1.5)")) << slow.out;
  EXPECT_TRUE(Contains(slow.out, "see:       trainwreck run 'fake/slow'")) << slow.out;
  const Json json = Json::parse(folder.Read("slow.json"));
  EXPECT_EQ(json.at("schema"), "trainwreck/checkup");
  EXPECT_EQ(json.at("healthy"), false);
  EXPECT_EQ(json.at("named")[0].at("row"), "fake/slow");
  EXPECT_TRUE(Contains(folder.Read("slow.html"),
                       "<data value=\"" + json.at("named")[0].at("bits").dump() + "\">"));
  EXPECT_EQ(folder.Call("checkup --score --html x.html").status, 2);
  EXPECT_EQ(json.at("final_losses").size(), 3u)
      << "as given, LR / 10 and the same again: the target has no more";

  const Called dies = folder.Call("checkup fake/dies --arm fault --seeds 2");
  EXPECT_EQ(dies.status, 1);
  EXPECT_TRUE(Contains(dies.out, "1. fake/dies")) << dies.out;
  EXPECT_FALSE(Contains(dies.err, "learning")) << "learnt once: " << dies.err;
}

// The clues tell, not the name: the same fault in a scenario that nobody has learnt from.
TEST(Checkup, KnowsAFaultInARecipeThatItHasNotSeen) {
  const CliFolder folder;
  WriteSuite(folder);
  folder.WritePassing("mine", "tags: [negative]\n");
  const Called mine = folder.Call("checkup fake/mine --arm fault --set optimizer.lr=0.12");
  EXPECT_EQ(mine.status, 1) << mine.output();
  EXPECT_TRUE(Contains(mine.out, "1. fake/slow")) << mine.out;
}

TEST(Checkup, FindsNothingInAHealthyRecipe) {
  const CliFolder folder;
  WriteSuite(folder);
  const Called called = folder.Call("checkup fake/slow --set optimizer.lr=0.17");
  EXPECT_EQ(called.status, 0) << called.output();
  EXPECT_TRUE(Contains(called.out, "# nothing found")) << called.out;
  EXPECT_FALSE(Contains(called.out, "next:")) << called.out;
}

TEST(Checkup, LearnsOnlyWhatIsNewOrChanged) {
  const CliFolder folder;
  WriteSuite(folder);
  EXPECT_TRUE(Contains(folder.Call("checkup fake/slow").err, "learning"));
  EXPECT_FALSE(Contains(folder.Call("checkup fake/slow").err, "learning"));
  folder.WritePassing("more");
  EXPECT_TRUE(Contains(folder.Call("checkup fake/slow").err, "learning what 2 faults"));
  folder.WritePassing("more", "quality: at_end loss < 9\n");
  EXPECT_TRUE(Contains(folder.Call("checkup fake/slow").err, "learning what"));
  EXPECT_FALSE(Contains(folder.Call("checkup fake/slow").err, "learning"));
}

TEST(Checkup, CountsItsRightAnswers) {
  const CliFolder folder;
  WriteSuite(folder);
  const Called called = folder.Call("checkup --score --seeds 2 --report score.json");
  EXPECT_EQ(called.status, 0) << called.output();
  EXPECT_TRUE(Contains(called.out, "4/4 (100%)  4/4 (100%)")) << called.out;
  EXPECT_TRUE(Contains(called.out, "false alarms in 0/4 (0%)")) << called.out;
  const Json json = Json::parse(folder.Read("score.json"));
  ASSERT_EQ(json.at("checkups").size(), 8u);
  for (const Json& one : json["checkups"]) {
    EXPECT_GE(one.at("seed"), 2) << "not the seeds that were learnt from";
  }
  // Rates so low that control does not learn either: wolf, and rightly so.
  const Called low = folder.Call("checkup --score --set optimizer.lr=0.002");
  EXPECT_TRUE(Contains(low.out, "false alarms in 2/2 (100%)")) << low.out;
}

TEST(Checkup, SaysWhatIsWrongWithTheCommandLine) {
  const CliFolder folder;
  WriteSuite(folder);
  EXPECT_EQ(folder.Call("checkup").status, 2);
  EXPECT_EQ(folder.Call("checkup fake/slow --arm remedy").status, 2);
  const Called two = folder.Call("checkup 'fake/*'");
  EXPECT_EQ(two.status, 2);
  EXPECT_TRUE(Contains(two.err, "2 cases are selected; name one recipe")) << two.err;
}

TEST(Checkup, SaysWhenThereIsNothingToCompareWith) {
  const CliFolder folder;
  folder.WritePassing("mine", "tags: [negative]\n");
  const Called none = folder.Call("checkup fake/mine");
  EXPECT_EQ(none.status, 3) << none.output();
  EXPECT_TRUE(Contains(none.err, "nothing to compare with")) << none.err;
}

TEST(LrRange, FindsThePlateauAndJudgesTheRecipesRate) {
  const CliFolder folder;
  WriteSuite(folder);
  // The last fifth ends below 0.4, a tenth of the way, from a rate of 0.13 on.
  const Called good =
      folder.Call("lr-range fake/slow --rates 21 --to 20 --report range.json --html range.html");
  EXPECT_EQ(good.status, 0) << good.output();
  const Json json = Json::parse(folder.Read("range.json"));
  EXPECT_EQ(json.at("schema"), "trainwreck/lr-range");
  EXPECT_TRUE(
      Contains(folder.Read("range.html"), "<data value=\"" + json.at("suggested").dump() + "\">"));
  EXPECT_EQ(json.at("points").size(), 21u);
  EXPECT_GT(json.at("plateau")[0], 0.1);
  EXPECT_LT(json.at("plateau")[0], 0.2);
  EXPECT_EQ(json.at("largest_stable"), json.at("points")[20].at("rate")) << "it never diverges";
  const Called slow = folder.Call("lr-range fake/slow --arm fault");
  EXPECT_EQ(slow.status, 1) << slow.output();
  EXPECT_TRUE(Contains(slow.out, "0.002, is too low")) << slow.out;
  EXPECT_TRUE(Contains(slow.out, "next:      optimizer.lr = ")) << slow.out;
  // Ends that were not given move: this rate is 100,000 times too low, and its grid with it.
  const Called far =
      folder.Call("lr-range fake/slow --arm fault --set optimizer.lr=0.0002 --seeds 1");
  EXPECT_EQ(far.status, 1) << far.output();
  EXPECT_TRUE(Contains(far.out, "2e-06, is too low")) << far.out;
  const Called none = folder.Call("lr-range fake/slow --from 1e-9 --to 1e-7");
  EXPECT_EQ(none.status, 5) << none.output();
  EXPECT_TRUE(Contains(none.out, "no rate learns")) << none.out;
}

TEST(LrRange, CallsARunThatDiesDivergedAndNoRateGood) {
  const CliFolder folder;
  WriteSuite(folder);
  const Called dies = folder.Call("lr-range fake/dies --arm fault --rates 4");
  EXPECT_EQ(dies.status, 5) << dies.output();
  EXPECT_TRUE(Contains(dies.out, "diverged")) << dies.out;
}

TEST(LrRange, SaysWhatIsWrongWithTheCommandLine) {
  const CliFolder folder;
  WriteSuite(folder);
  EXPECT_EQ(folder.Call("lr-range").status, 2);
  const Called swapped = folder.Call("lr-range fake/slow --from 1 --to 0.1");
  EXPECT_EQ(swapped.status, 2);
  EXPECT_TRUE(Contains(swapped.err, "--from must be above 0 and below --to")) << swapped.err;
}

}  // namespace
}  // namespace trainwreck
