#include "harness/launch/restarts.h"

#include <gtest/gtest.h>

namespace trainwreck {
namespace {

TEST(Restarts, WithoutAWindowAllCountAndNothingIsWaitedFor) {
  Restarts restarts({.max_restarts = 2});
  EXPECT_TRUE(restarts.May(0));
  EXPECT_EQ(restarts.WaitAt(0), 0);
  restarts.Note(1);
  EXPECT_TRUE(restarts.May(1));
  restarts.Note(2);
  EXPECT_FALSE(restarts.May(2));
  EXPECT_FALSE(restarts.May(1e6));
  EXPECT_EQ(restarts.WaitAt(2), 0);
  EXPECT_FALSE(Restarts({.max_restarts = 0}).May(0));
}

TEST(Restarts, TheWaitDoublesUpToItsCeiling) {
  Restarts restarts({.max_restarts = 100, .backoff_seconds = 0.5});
  for (const double wait : {0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0}) {
    EXPECT_EQ(restarts.WaitAt(0), wait);
    restarts.Note(0);
  }
  for (int i = 0; i < 5000; ++i) restarts.Note(0);
  EXPECT_EQ(restarts.WaitAt(0), kMostBackoffSeconds);
}

TEST(Restarts, OnlyThoseWithinTheWindowCount) {
  Restarts restarts({.max_restarts = 2, .backoff_seconds = 1, .window_seconds = 10});
  restarts.Note(0);
  restarts.Note(6);
  EXPECT_FALSE(restarts.May(6));
  EXPECT_FALSE(restarts.May(10));
  EXPECT_TRUE(restarts.May(10.5));
  EXPECT_EQ(restarts.WaitAt(6), 4);
  EXPECT_EQ(restarts.WaitAt(10.5), 2);
  EXPECT_EQ(restarts.WaitAt(17), 1);
  EXPECT_EQ(restarts.made(), 2);
}

}  // namespace
}  // namespace trainwreck
