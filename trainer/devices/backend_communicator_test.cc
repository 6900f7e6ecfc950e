// The life of a group of ranks, with a backend in place of NCCL.
#include "trainer/devices/backend_communicator.h"

#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "trainer/ranks/forked_ranks.h"

namespace trainwreck {
namespace {

using testing::HasSubstr;
using Works = c10::intrusive_ptr<c10d::Work>;

// What a test wants of the backend, and what became of it.
struct Fate {
  std::string fails = {};                     // every call but the first, which connects
  std::atomic<bool> never_completes = false;  // likewise, while it is set
  bool first_never_completes = false;
  bool connection_blocks = false;  // for ten seconds
  bool shutdown_throws = false;
  bool shutdown_blocks = false;  // for ten seconds
  int calls = 0;
  std::atomic<int> shut_down = 0, destroyed = 0;
};

class FakeWork : public c10d::Work {
 public:
  FakeWork(std::shared_ptr<Fate> fate, bool is_first)
      : fate_(std::move(fate)), is_first_(is_first) {
    if (is_first_ || fate_->fails.empty()) return;
    exception_ = std::make_exception_ptr(std::runtime_error(fate_->fails));
  }
  bool isCompleted() override {
    return !(is_first_ ? fate_->first_never_completes : fate_->never_completes.load());
  }
  bool wait(std::chrono::milliseconds /*timeout*/) override { return true; }

 private:
  const std::shared_ptr<Fate> fate_;
  const bool is_first_;
};

class FakeBackend : public c10d::Backend {
 public:
  explicit FakeBackend(std::shared_ptr<Fate> fate) : Backend(0, 2), fate_(std::move(fate)) {}
  ~FakeBackend() override { ++fate_->destroyed; }
  Works allreduce(std::vector<at::Tensor>& /*tensors*/, const c10d::AllreduceOptions&) override {
    return c10::make_intrusive<FakeWork>(fate_, fate_->calls++ == 0);
  }
  void eagerConnectSingleDevice(at::Device /*device*/) override {
    if (fate_->connection_blocks) std::this_thread::sleep_for(std::chrono::seconds(10));
  }
  void shutdown() override {
    ++fate_->shut_down;
    if (fate_->shutdown_blocks) std::this_thread::sleep_for(std::chrono::seconds(10));
    if (fate_->shutdown_throws) throw std::runtime_error("a peer is gone");
  }

 private:
  std::shared_ptr<Fate> fate_;
};

constexpr char kCalls[] = R"({"entries": [{"profiling_name": "nccl:all_reduce"}]})";

double SecondsOf(const std::function<void()>& call) {
  const auto began = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

class BackendCommunicatorTest : public testing::Test {
 protected:
  std::unique_ptr<Communicator> Make(double timeout_s = 20) {
    return std::make_unique<BackendCommunicator>(
        GroupOptions{
            .rank = 0, .world_size = 2, .timeout_s = timeout_s, .dump_dir = folder_.path()},
        at::kCPU, c10::make_intrusive<FakeBackend>(fate),
        BackendRecords{.warning = [] { return std::string("the cable is out"); },
                       .calls = [] { return std::string(kCalls); }});
  }
  std::string ErrorOfCall(Communicator& communicator) {
    at::Tensor tensor = at::ones({3});
    try {
      communicator.AllReduce(tensor, Reduction::kSum);
    } catch (const std::exception& error) {
      return error.what();
    }
    return "";
  }
  std::string Dump() const {
    std::ifstream file(folder_.File("flight-recorder-rank0.json"));
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

  std::shared_ptr<Fate> fate = std::make_shared<Fate>();

 private:
  ScratchFolder folder_;
};

TEST_F(BackendCommunicatorTest, AHealthyGroupIsShutDownAndGoes) {
  auto communicator = Make();
  EXPECT_EQ(ErrorOfCall(*communicator), "");
  communicator->Barrier();
  communicator.reset();
  EXPECT_EQ(fate->shut_down, 1);
  EXPECT_EQ(fate->destroyed, 1) << "by this thread, not by one that nobody waits for";
  EXPECT_EQ(Dump(), "");
}

// Its destructor would abort it, and wait for a minute.
TEST_F(BackendCommunicatorTest, AGroupThatHasFailedIsLeftAlone) {
  fate->fails = "remote process exited";
  auto communicator = Make();
  const std::string error = ErrorOfCall(*communicator);
  EXPECT_THAT(error, HasSubstr("all_reduce (call 0 of rank 0 of 2)"));
  EXPECT_THAT(error, HasSubstr("remote process exited (the cable is out)"));
  EXPECT_EQ(Dump(), kCalls);
  communicator.reset();
  EXPECT_EQ(fate->shut_down, 0);
  EXPECT_EQ(fate->destroyed, 0);
}

TEST_F(BackendCommunicatorTest, SoIsOneThatDoesNotShutDown) {
  fate->shutdown_throws = true;
  auto communicator = Make();
  EXPECT_NO_THROW(communicator.reset());
  EXPECT_EQ(fate->shut_down, 1);
  EXPECT_EQ(fate->destroyed, 0);
}

TEST_F(BackendCommunicatorTest, ACallThatNeverCompletesFailsAfterTheTimeout) {
  fate->never_completes = true;
  auto communicator = Make(/*timeout_s=*/0.2);
  std::string error;
  EXPECT_LT(SecondsOf([&] { error = ErrorOfCall(*communicator); }), 5);
  EXPECT_THAT(error, HasSubstr("all_reduce (call 0 of rank 0 of 2)"));
  EXPECT_THAT(error, HasSubstr("timed out after 0.2 s: a peer is gone, stalled or makes another "
                               "call (the cable is out)"));
  EXPECT_EQ(Dump(), kCalls) << "what it waited for";
  EXPECT_LT(SecondsOf([&] { communicator.reset(); }), 5);
  EXPECT_EQ(fate->shut_down, 0);
  EXPECT_EQ(fate->destroyed, 0);
}

// A supervisor may stop this process before its own time is over.
TEST_F(BackendCommunicatorTest, ACallThatWaitsForLongIsWrittenDownWhileItWaits) {
  fate->never_completes = true;
  auto communicator = Make(/*timeout_s=*/20);
  std::string error;
  std::thread waits([&] { error = ErrorOfCall(*communicator); });
  for (int i = 0; i < 15000 && Dump() != kCalls; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(Dump(), kCalls);
  fate->never_completes = false;
  waits.join();
  EXPECT_EQ(error, "") << "it was only late";
  EXPECT_EQ(Dump(), "");
}

TEST_F(BackendCommunicatorTest, AConnectionThatNeverCompletesFailsAfterTheTimeout) {
  fate->first_never_completes = true;
  try {
    Make(/*timeout_s=*/0.2);
    FAIL() << "it never completes";
  } catch (const std::exception& error) {
    EXPECT_THAT(error.what(), HasSubstr("timed out after 0.2 s"));
    EXPECT_THAT(error.what(), HasSubstr("(the cable is out)"));
  }
  EXPECT_EQ(fate->destroyed, 0);
}

TEST_F(BackendCommunicatorTest, AShutdownThatBlocksIsLeftAfterTheTimeout) {
  fate->shutdown_blocks = true;
  auto communicator = Make(/*timeout_s=*/0.2);
  EXPECT_EQ(ErrorOfCall(*communicator), "");
  testing::internal::CaptureStderr();
  EXPECT_LT(SecondsOf([&] { communicator.reset(); }), 5);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("the group of ranks does not shut down: it still blocks after 0.2 s"));
  EXPECT_EQ(fate->shut_down, 1);
  EXPECT_EQ(fate->destroyed, 0);
}

TEST_F(BackendCommunicatorTest, AConnectionThatBlocksIsAnErrorAfterTheTimeout) {
  fate->connection_blocks = true;
  try {
    Make(/*timeout_s=*/0.1);
    FAIL() << "it blocks for ten seconds";
  } catch (const std::exception& error) {
    EXPECT_THAT(error.what(), HasSubstr("it still blocks after 0.1 s (the cable is out)"));
  }
  EXPECT_EQ(fate->destroyed, 0);
}

}  // namespace
}  // namespace trainwreck
