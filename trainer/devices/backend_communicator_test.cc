// The life of a group of ranks, with a backend in place of NCCL.
#include "trainer/devices/backend_communicator.h"

#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <fstream>
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

class FakeWork : public c10d::Work {
 public:
  explicit FakeWork(std::exception_ptr error) {
    if (error) exception_ = error;
  }
  bool isCompleted() override { return true; }
  bool wait(std::chrono::milliseconds /*timeout*/) override { return true; }
};

// What a test wants of the backend, and what became of it.
struct Fate {
  std::string fails = {};          // every call but the first, which connects
  bool connection_blocks = false;  // for ten seconds
  bool shutdown_throws = false;
  int calls = 0;
  std::atomic<int> shut_down = 0, destroyed = 0;
};

class FakeBackend : public c10d::Backend {
 public:
  explicit FakeBackend(std::shared_ptr<Fate> fate) : Backend(0, 2), fate_(std::move(fate)) {}
  ~FakeBackend() override { ++fate_->destroyed; }
  Works allreduce(std::vector<at::Tensor>& /*tensors*/, const c10d::AllreduceOptions&) override {
    const bool fails = fate_->calls++ > 0 && !fate_->fails.empty();
    return c10::make_intrusive<FakeWork>(
        fails ? std::make_exception_ptr(std::runtime_error(fate_->fails)) : nullptr);
  }
  void eagerConnectSingleDevice(at::Device /*device*/) override {
    if (fate_->connection_blocks) std::this_thread::sleep_for(std::chrono::seconds(10));
  }
  void shutdown() override {
    ++fate_->shut_down;
    if (fate_->shutdown_throws) throw std::runtime_error("a peer is gone");
  }

 private:
  std::shared_ptr<Fate> fate_;
};

class BackendCommunicatorTest : public testing::Test {
 protected:
  std::unique_ptr<Communicator> Make(double timeout_s = 20) {
    return std::make_unique<BackendCommunicator>(
        GroupOptions{
            .rank = 0, .world_size = 2, .timeout_s = timeout_s, .dump_dir = folder_.path()},
        at::kCPU, c10::make_intrusive<FakeBackend>(fate),
        BackendRecords{.warning = [] { return std::string("the cable is out"); },
                       .calls = [] { return std::string("{}"); }});
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
  bool HasDump() const { return std::ifstream(folder_.File("flight-recorder-rank0.json")).good(); }

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
  // The thread that connected it may hold it for a moment longer.
  for (int i = 0; i < 5000 && fate->destroyed == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(fate->destroyed, 1);
  EXPECT_FALSE(HasDump());
}

// Its destructor would abort it, and wait for a minute.
TEST_F(BackendCommunicatorTest, AGroupThatHasFailedIsLeftAlone) {
  fate->fails = "remote process exited";
  auto communicator = Make();
  const std::string error = ErrorOfCall(*communicator);
  EXPECT_THAT(error, HasSubstr("all_reduce (call 0 of rank 0 of 2)"));
  EXPECT_THAT(error, HasSubstr("remote process exited (the cable is out)"));
  EXPECT_TRUE(HasDump());
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
