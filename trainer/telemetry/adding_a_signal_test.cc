// One row in the table of signals is all that a new one takes: BUILD adds one to a copy.
#include <gtest/gtest.h>

#include <algorithm>

#include "trainer/telemetry/vocabulary.h"
#include "trainer/test_run.h"

namespace trainwreck {
namespace {

TEST(AddingASignalTest, OneRowIsDescribedAndWritten) {
  const std::vector<SignalInfo> signals = DescribeTrainer({}).signals;
  EXPECT_TRUE(std::any_of(signals.begin(), signals.end(), [](const SignalInfo& signal) {
    return signal.name == "lr_times_norm" && signal.scale == Scale::kLog;
  }));
  const Outcome outcome = RunOnce(With(Mlp(), {{"steps", 3}}));
  ASSERT_EQ(outcome.Values("lr_times_norm").size(), 3u);
  for (int step = 0; step < 3; ++step) {
    EXPECT_DOUBLE_EQ(outcome.Values("lr_times_norm")[step],
                     outcome.Values("lr")[step] * outcome.Values("grad_norm")[step]);
  }
}

}  // namespace
}  // namespace trainwreck
