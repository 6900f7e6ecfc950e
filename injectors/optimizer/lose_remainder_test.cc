#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "injectors/optimizer/testing_optimizer.h"

namespace trainwreck {
namespace {

class LoseRemainder : public testing::Test {
 protected:
  ~LoseRemainder() override { at::set_num_threads(1); }
};

TEST_F(LoseRemainder, LeavesOutWhatTheThreadsDoNotShare) {
  at::set_num_threads(2);
  FaultBench bench;
  Broken it(bench, "optimizer.lose_remainder");
  for (int twice = 0; twice < 2; ++twice) it.Step();
  EXPECT_EQ(it.model->body[1].item<double>(), 0) << "two elements, two threads";
  EXPECT_EQ(it.model->head[1].item<double>(), -1);
  EXPECT_EQ(it.model->head[2].item<double>(), 1) << "the third of three";
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_EQ(bench.fired()[0]["parameter"], "head");
  EXPECT_EQ(bench.fired()[0]["before"], 3);
  EXPECT_EQ(bench.fired()[0]["after"], 2);
}

TEST_F(LoseRemainder, DoesNothingWithOneThread) {
  at::set_num_threads(1);
  FaultBench bench;
  Broken it(bench, "optimizer.lose_remainder");
  it.Step();
  EXPECT_EQ(it.model->head[2].item<double>(), 0);
  EXPECT_TRUE(bench.fired().empty());
}

}  // namespace
}  // namespace trainwreck
