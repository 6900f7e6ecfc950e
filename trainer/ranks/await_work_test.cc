#include "trainer/ranks/await_work.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>

namespace trainwreck {
namespace {

using std::chrono::milliseconds;

// A collective that ends after so many looks at it, or never; with an error, or without.
class FakeWork : public c10d::Work {
 public:
  explicit FakeWork(int looks, std::exception_ptr error = nullptr) : looks_(looks) {
    if (error) exception_ = error;
  }
  bool isCompleted() override { return looks_ >= 0 && looks_-- == 0; }
  bool wait(milliseconds /*timeout*/) override { return was_waited_for = true; }

  bool was_waited_for = false;

 private:
  int looks_;
};

std::string ErrorOf(const std::function<void()>& act) {
  try {
    act();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

TEST(AwaitWork, OrdersTheStreamsWhenTheWorkIsDone) {
  FakeWork work(3);
  int suspects = 0;
  EXPECT_FALSE(AwaitWork(work, 60, milliseconds(60'000), [&] { ++suspects; }));
  EXPECT_TRUE(work.was_waited_for);
  EXPECT_EQ(suspects, 0);
}

TEST(AwaitWork, ThrowsTheErrorOfTheWorkAndWaitsForNothing) {
  FakeWork work(1, std::make_exception_ptr(std::runtime_error("ncclRemoteError")));
  EXPECT_EQ(ErrorOf([&] { AwaitWork(work, 60, milliseconds(60'000), [] {}); }), "ncclRemoteError");
  EXPECT_FALSE(work.was_waited_for);
}

TEST(AwaitWork, SuspectsOnceAndThenGivesUp) {
  FakeWork work(-1);
  int suspects = 0;
  EXPECT_EQ(ErrorOf([&] { AwaitWork(work, 0.05, milliseconds(1), [&] { ++suspects; }); }),
            "timed out after 0.05 s: a peer is gone, stalled or makes another call");
  EXPECT_EQ(suspects, 1);
  EXPECT_FALSE(work.was_waited_for);
}

TEST(AwaitWork, SaysThatWorkWhichCameWasSuspected) {
  FakeWork work(200);
  EXPECT_TRUE(AwaitWork(work, 60, milliseconds(0), [] {}));
}

TEST(BoundedCall, ReturnsOrThrowsAsTheCallDoes) {
  bool was_made = false;
  BoundedCall(60, [&] { was_made = true; });
  EXPECT_TRUE(was_made);
  EXPECT_EQ(ErrorOf([] { BoundedCall(60, [] { throw std::runtime_error("no device"); }); }),
            "no device");
}

TEST(BoundedCall, LeavesACallThatBlocks) {
  const auto end = std::make_shared<std::atomic<bool>>(false);
  const std::string error = ErrorOf([&] { BoundedCall(0.05, [end] { end->wait(false); }); });
  EXPECT_EQ(error, "it still blocks after 0.05 s");
  *end = true;
  end->notify_all();
}

}  // namespace
}  // namespace trainwreck
