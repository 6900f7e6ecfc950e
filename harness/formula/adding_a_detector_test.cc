// One entry in the table of detectors is all that a new one takes: BUILD adds `rises` to a copy.
#include <gtest/gtest.h>

#include "harness/formula/test_support.h"

namespace trainwreck::formula::testing {
namespace {

TEST(AddingADetectorTest, OneEntryIsReadCheckedAndEvaluated) {
  const TestRun run = TestRun(4).With("loss", {1, 1, 4, 5});
  const Reading reading = Read("eventually rises(loss, by=2)", run);
  EXPECT_EQ(reading.truth, Truth::kTrue);
  EXPECT_EQ(reading.margins[static_cast<int>(Unit::kOctave)]->lo, 1) << "4 is 2 * 2 * 1";
  EXPECT_EQ(Read("eventually rises(loss, by=5)", run).truth, Truth::kFalse);
}

TEST(AddingADetectorTest, ItsParametersAreCheckedAndItsNameIsSuggested) {
  const Vocabulary vocabulary = TestVocabulary(4);
  EXPECT_EQ(Errors("eventually rises(loss, by=0)", vocabulary), "23-27: by must be positive\n");
  EXPECT_NE(Errors("eventually rise(loss, by=2)", vocabulary).find("did you mean 'rises'?"),
            std::string::npos);
}

}  // namespace
}  // namespace trainwreck::formula::testing
