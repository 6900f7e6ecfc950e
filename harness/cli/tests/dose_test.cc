// dose from end to end, with the fake target: a fault that slows the descent of its loss,
// 4 exp(-lr * step), by a factor. Where each claim turns is known exactly.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "harness/cli/tests/cli_testing.h"
#include "harness/protocol/json.h"

namespace trainwreck {
namespace {

// lr = 0.2, last step 19: `at_end loss > 1` holds where 4 exp(-3.8 factor) > 1: factor < 0.365. The
// remedy multiplies by 50: it fails where 4 exp(-190 factor) > 1: factor < 0.0073.
Json Dose(const CliFolder& folder, const std::string& more) {
  const Called called =
      folder.Call("dose fake/slow --param inject.slow.with.factor --output out " + more);
  EXPECT_EQ(called.status, 0) << called.output();
  return Json::parse(folder.Read("out/dose.json"), nullptr, false);
}

TEST(Dose, FindsWhereTheSymptomBeginsAndTheRemedyEnds) {
  const CliFolder folder;
  folder.WritePassing("slow");
  const Json json = Dose(folder, "--from 1 --to 0.001 --levels 61");
  ASSERT_TRUE(json.is_object());
  EXPECT_EQ(json.at("schema"), "trainwreck/dose");
  ASSERT_EQ(json.at("answers").size(), 2u);
  const Json& symptom = json["answers"][0];
  EXPECT_EQ(symptom.at("name"), "stuck");
  EXPECT_GT(symptom.at("between")[0], 0.3648);
  EXPECT_LE(symptom.at("between")[1], 0.3648);
  EXPECT_EQ(symptom.at("limit"), symptom.at("between")[1]);
  const Json& remedy = json["answers"][1];
  EXPECT_EQ(remedy.at("name"), "faster");
  EXPECT_GT(remedy.at("between")[0], 0.007296);
  EXPECT_LE(remedy.at("between")[1], 0.007296);
  EXPECT_EQ(remedy.at("limit"), remedy.at("between")[0]);
  EXPECT_LE(json.at("seeds"), 40);
  EXPECT_TRUE(Contains(folder.Read("out/dose.html"),
                       "<data value=\"" + symptom.at("confidence").dump() + "\">"));
}

TEST(Dose, EndsAtTheBoundOfTheFault) {
  const CliFolder folder;
  folder.WritePassing("slow");
  const Json json = Dose(folder, "--from 1 --levels 3");
  EXPECT_EQ(json.at("doses").front(), 1.0);
  EXPECT_EQ(json.at("doses").back(), 1000.0);
}

TEST(Dose, SaysWhenThereIsNoLimitBetween) {
  const CliFolder folder;
  folder.WritePassing("slow");
  const Json weak = Dose(folder, "--from 0.9 --to 0.5");
  EXPECT_EQ(weak.at("answers")[0].at("text"), "none: it never shows");
  EXPECT_EQ(weak.at("answers")[1].at("text"), "> 0.5");
  const Json strong = Dose(folder, "--from 0.2 --to 0.1");
  EXPECT_EQ(strong.at("answers")[0].at("text"), "< 0.2");
}

TEST(Dose, GivesARangeWhenItsRunsAreUsedUp) {
  const CliFolder folder;
  folder.WritePassing("slow");
  const Called called = folder.Call(
      "dose fake/slow --param inject.slow.with.factor --output out --from 1 --to 0.001 --levels 61 "
      "--max-runs 8");
  EXPECT_EQ(called.status, 5) << called.output();
  const Json json = Json::parse(folder.Read("out/dose.json"), nullptr, false);
  ASSERT_TRUE(json.is_object());
  const Json& symptom = json.at("answers")[0];
  EXPECT_TRUE(symptom.at("limit").is_null());
  ASSERT_TRUE(symptom.contains("between")) << symptom.dump();
  const double from = symptom["between"][0], to = symptom["between"][1];
  EXPECT_GT(from, 0.3648);
  EXPECT_LE(to, 0.3648);
  EXPECT_GT(from / to, std::pow(1000.0, 1.0 / 60) * 1.01);  // more than one step
  EXPECT_TRUE(Contains(called.out, symptom.at("text").get<std::string>())) << called.out;
}

TEST(Dose, SaysWhatIsWrongWithTheCommandLine) {
  const CliFolder folder;
  folder.WritePassing("slow");
  const Called unknown =
      folder.Call("dose fake/slow --param inject.slow.with.facto --from 1 --to 2");
  EXPECT_EQ(unknown.status, 2);
  EXPECT_TRUE(Contains(unknown.err, "did you mean 'inject.slow.with.factor'")) << unknown.err;
  const Called open = folder.Call("dose fake/slow --param inject.slow.with.factor --to 2");
  EXPECT_EQ(open.status, 2);
  EXPECT_TRUE(Contains(open.err, "give --from: 'factor' has no smallest value")) << open.err;
  EXPECT_TRUE(Contains(open.err, "the scenario has 0.01")) << open.err;
  const Called same = folder.Call("dose fake/slow --param inject.slow.with.factor --from 1 --to 1");
  EXPECT_EQ(same.status, 2);
}

}  // namespace
}  // namespace trainwreck
