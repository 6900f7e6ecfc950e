// This program's epoll_wait (communicator_gloo.cc), as Gloo's loop calls it.
#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

#include "trainer/ranks/communicator.h"

namespace trainwreck {
namespace {

constexpr int kTimes = 2000;

// A pipe with a byte in it that nobody reads.
class Pending {
 public:
  Pending() {
    EXPECT_EQ(pipe(ends_), 0);
    EXPECT_EQ(write(ends_[1], "x", 1), 1);
    epoll_event event{.events = EPOLLIN, .data = {}};
    EXPECT_EQ(epoll_ctl(epoll_, EPOLL_CTL_ADD, ends_[0], &event), 0);
  }
  ~Pending() {
    for (int fd : {ends_[0], ends_[1], epoll_}) close(fd);
  }
  Pending(const Pending&) = delete;
  Pending& operator=(const Pending&) = delete;

  void Ask() const {
    epoll_event event;
    EXPECT_EQ(epoll_wait(epoll_, &event, 1, /*timeout=*/-1), 1);
  }

 private:
  int ends_[2] = {-1, -1};
  int epoll_ = epoll_create1(0);
};

// How often this thread has given its core up.
long Naps() {
  rusage usage;
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw;
}

// The rest of the program must be linked as in the trainer.
auto* const kGloo = &MakeGlooCommunicator;

TEST(EpollWait, NapsWhereAThreadAsksAgainAtOnce) {
  ASSERT_NE(kGloo, nullptr);
  const Pending pending;
  const long before = Naps();
  for (int i = 0; i < kTimes; ++i) pending.Ask();
  EXPECT_GT(Naps() - before, kTimes / 4);
}

TEST(EpollWait, DoesNotNapWhereEachEventIsWork) {
  const Pending pending;
  const long before = Naps();
  for (int i = 0; i < kTimes; ++i) {
    pending.Ask();
    const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(20);
    while (std::chrono::steady_clock::now() < end) {
    }
  }
  EXPECT_LT(Naps() - before, kTimes / 20);
}

TEST(EpollWait, ReturnsErrorsAndTimeoutsAsTheLibrarysDoes) {
  epoll_event event;
  EXPECT_EQ(epoll_wait(-1, &event, 1, 0), -1);
  EXPECT_EQ(errno, EBADF);
  const int epoll = epoll_create1(0);
  EXPECT_EQ(epoll_wait(epoll, &event, 1, 0), 0);
  close(epoll);
}

}  // namespace
}  // namespace trainwreck
