// seeds from end to end, with the fake target, whose noise over five seeds is -0.02 to 0.02 in
// steps of 0.01.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "harness/cli/tests/cli_testing.h"
#include "harness/protocol/json.h"

namespace trainwreck {
namespace {

constexpr char kNoisy[] =
    "seeds fake/slow --seeds 5 --last 1 --set fake.mode=noisy --report r.json ";

Json Report(const CliFolder& folder) {
  return Json::parse(folder.Read("r.json"), nullptr, /*allow_exceptions=*/false);
}

TEST(Seeds, OfOneRecipeSaysItsSpreadAndWhatItCosts) {
  const CliFolder folder;
  folder.WritePassing("slow");
  const Called called = folder.Call(kNoisy);
  EXPECT_EQ(called.status, 0) << called.output();
  const Json json = Report(folder);
  ASSERT_TRUE(json.is_object());
  EXPECT_EQ(json.at("schema"), "trainwreck/seeds");
  EXPECT_EQ(json.at("recipes").size(), 1u);
  EXPECT_NEAR(json["recipes"][0]["spread"]["value"].get<double>(), 0.01 * std::sqrt(2.5), 1e-9);
  EXPECT_EQ(json.at("needed").size(), 6u);
  EXPECT_TRUE(Contains(called.out, "5 seeds of each find a difference of")) << called.out;
}

TEST(Seeds, OfTwoRecipesSaysWhetherTheyDiffer) {
  const CliFolder folder;
  folder.WritePassing("slow");
  const Called apart = folder.Call(std::string(kNoisy) + "--against optimizer.lr=0.1");
  EXPECT_EQ(apart.status, 0) << apart.output();
  EXPECT_TRUE(Contains(apart.out, "they differ")) << apart.out;
  const Called alike = folder.Call(std::string(kNoisy) + "--against optimizer.lr=0.21");
  EXPECT_EQ(alike.status, 5) << alike.output();
  EXPECT_TRUE(Contains(alike.out, "these seeds do not tell them apart")) << alike.out;
  EXPECT_GT(Report(folder)["needed"][0]["seeds"].get<int>(), 5);
}

TEST(Seeds, MayCompareTheRecipeWithItsFault) {
  const CliFolder folder;
  folder.WritePassing("slow");
  const Called called = folder.Call(std::string(kNoisy) + "--against-arm fault");
  EXPECT_EQ(called.status, 0) << called.output();
  EXPECT_GT(Report(folder)["difference"]["interval"][0].get<double>(), 0);
}

TEST(Seeds, RefusesWhatIsNoRecipe) {
  const CliFolder folder;
  folder.WritePassing("slow");
  const Called called = folder.Call("seeds fake/slow --against optimizer.lrr=0.1");
  EXPECT_NE(called.status, 0);
  EXPECT_TRUE(Contains(called.err, "optimizer.lr")) << called.err;
}

}  // namespace
}  // namespace trainwreck
