#include "harness/targets/calibration_file.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>

namespace trainwreck {
namespace calibration_file_test {

std::string PathOf(const std::string& name) {
  const char* tmp = std::getenv("TEST_TMPDIR");
  return std::string(tmp != nullptr ? tmp : "/tmp") + "/" + name;
}

TargetSpec Spec(const std::string& recipe, const std::string& command = "[train, \"--lr={lr}\"]") {
  const std::string path = PathOf("calibrated.yaml");
  std::ofstream(path)
      << "apiVersion: trainwreck/v1\nkind: Targets\ntargets:\n  mine:\n    command: " << command
      << "\n    adapter: python\n    recipe: " << recipe << "\n";
  const TargetFile file = LoadTargetFile(path);
  EXPECT_TRUE(file.errors.empty());
  return file.targets.front();
}

CalibrationFile Read(const std::string& text) {
  const std::string path = PathOf("calibration.yaml");
  std::ofstream(path) << text;
  return LoadCalibrationFile(path);
}

constexpr char kRecipe[] = "{steps: 30, lr: 0.1, name: \"yes: 1\"}";

TEST(CalibrationFile, IsReadAsItWasWritten) {
  const TargetSpec spec = Spec(kRecipe);
  CalibrationFile file;
  file.targets["mine"] = AsMeasured(spec);
  file.targets["mine"].strengths["a/b"] = {16, {8, 32}};
  file.targets["mine"].strengths["a/c"] = {1e-30, {2e-30, 5e-31}};
  const CalibrationFile read = Read(CalibrationText(file));
  ASSERT_TRUE(read.errors.empty()) << Format(read.errors.front());
  EXPECT_EQ(CalibrationText(read), CalibrationText(file));
  const Calibration calibration = CalibrationOf(read, spec);
  EXPECT_EQ(calibration.strengths.at("a/b"), 16);
  EXPECT_EQ(calibration.strengths.at("a/c"), 1e-30);
  EXPECT_EQ(calibration.remark, "");
}

TEST(CalibrationFile, SaysWhatHasChangedSince) {
  CalibrationFile file;
  file.targets["mine"] = AsMeasured(Spec(kRecipe));
  const auto remark = [&](const TargetSpec& now) { return CalibrationOf(file, now).remark; };
  EXPECT_EQ(remark(Spec("{steps: 30, lr: 0.3, name: \"yes: 1\"}")),
            "stale, when it was measured lr was 0.1");
  EXPECT_EQ(remark(Spec("{steps: 30, lr: 0.1, wd: 0}")),
            "stale, when it was measured name was yes: 1, there was no wd");
  EXPECT_EQ(remark(Spec(kRecipe, "[other, \"--lr={lr}\"]")),
            "stale, when it was measured the command was another one");
}

TEST(CalibrationFile, MayBeMissing) {
  const CalibrationFile file = LoadCalibrationFile(PathOf("nowhere.yaml"));
  EXPECT_TRUE(file.targets.empty());
  EXPECT_TRUE(file.errors.empty());
  EXPECT_TRUE(CalibrationOf(file, Spec(kRecipe)).strengths.empty());
}

TEST(CalibrationFile, MustBeSound) {
  const std::string head = "apiVersion: trainwreck/v1\nkind: Calibration\n";
  for (const std::string& bad :
       {std::string("x"), head, head + "targets: {a: 1}\n",
        head + "targets: {a: {command: b, recipe: {lr: 1}, strengths: {s: 3}}}\n",
        head + "targets: {a: {command: b, recipe: {}, strengths: {s: {strength: 3}}}}\n",
        head + "targets: {a: {command: b, recipe: {}, strengths: {s: {strength: x, passed: [1, "
               "2]}}}}\n",
        std::string("apiVersion: trainwreck/v2\nkind: Calibration\ntargets: {a: {command: b, "
                    "recipe: {}, strengths: {}}}\n")}) {
    EXPECT_FALSE(Read(bad).errors.empty()) << bad;
  }
}

}  // namespace calibration_file_test
}  // namespace trainwreck
