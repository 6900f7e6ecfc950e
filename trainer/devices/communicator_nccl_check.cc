// Tests of the NCCL communicator, at every world size that this machine's GPUs allow. A program of
// its own rather than a Bazel test: it needs GPUs, and all of LibTorch's libraries to start
// (ci/gpu_check.sh runs it). This process makes no CUDA call; ranks are its forks.
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <sstream>
#include <thread>

#include "harness/protocol/json.h"
#include "trainer/devices/device.h"
#include "trainer/ranks/bucket.h"
#include "trainer/ranks/forked_ranks.h"

namespace trainwreck {
namespace {

int CountGpus() {
  static const int count = [] {
    const auto ends = RunForked(1, [](int) { return std::to_string(ListDevices().size() - 1); });
    return ends[0].exit_code == 0 ? std::stoi(ends[0].output) : 0;
  }();
  return count;
}

// A rank on its own GPU.
struct Rank {
  Rank(const ScratchFolder& folder, int rank, int world_size, double timeout_s = 20)
      : device(OpenDevice(DeviceChoice::kCuda, {.rank = rank, .world_size = world_size})),
        communicator(device->MakeCommunicator({.rank = rank,
                                               .world_size = world_size,
                                               .rendezvous_file = folder.File("rendezvous"),
                                               .timeout_s = timeout_s,
                                               .dump_dir = folder.path()})) {}
  // Whole numbers, whose sum is exact in any order.
  at::Tensor Numbers(std::int64_t n) const {
    return at::arange(n, at::TensorOptions(at::kFloat).device(device->torch_device())) *
           (communicator->rank() + 1);
  }
  std::unique_ptr<Device> device;
  std::unique_ptr<Communicator> communicator;
};

std::string Text(const at::Tensor& tensor) {
  std::ostringstream text;
  const at::Tensor flat = tensor.cpu().reshape({-1}).to(at::kDouble);
  for (std::int64_t i = 0; i < flat.numel(); ++i) text << flat[i].item<double>() << ' ';
  return text.str();
}

class Nccl : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (CountGpus() < GetParam()) {
      GTEST_SKIP() << "needs " << GetParam() << " GPUs, this machine has " << CountGpus();
    }
  }
  void ExpectAllReturn(const std::function<std::string(int)>& body, const std::string& output) {
    const auto ends = RunForked(GetParam(), body, /*limit_s=*/120);
    for (std::size_t rank = 0; rank < ends.size(); ++rank) {
      EXPECT_EQ(ends[rank].exit_code, 0) << "rank " << rank << ": " << ends[rank].output;
      EXPECT_EQ(ends[rank].output, output) << "rank " << rank;
    }
  }
  ScratchFolder folder_;
};
INSTANTIATE_TEST_SUITE_P(Ranks, Nccl, testing::Values(1, 2, 3, 4, 5, 6, 7, 8));

TEST_P(Nccl, AllReducesSumMaxAndMin) {
  const int n = GetParam();
  const double all = n * (n + 1) / 2.0;
  std::ostringstream expected;
  expected << "0 " << all << ' ' << 2 * all << " | 0 " << n << ' ' << 2 * n << " | 0 1 2 ";
  ExpectAllReturn(
      [&](int rank) {
        Rank self(folder_, rank, n);
        at::Tensor sum = self.Numbers(3), max = self.Numbers(3), min = self.Numbers(3);
        self.communicator->AllReduce(sum, Reduction::kSum);
        self.communicator->AllReduce(max, Reduction::kMax);
        self.communicator->AllReduce(min, Reduction::kMin);
        self.communicator->Barrier();
        return Text(sum) + "| " + Text(max) + "| " + Text(min);
      },
      expected.str());
}

TEST_P(Nccl, BroadcastsAndCarriesTensorsOfTheCpu) {
  const int n = GetParam();
  ExpectAllReturn(
      [&](int rank) {
        Rank self(folder_, rank, n);
        at::Tensor from_last = self.Numbers(2);
        self.communicator->Broadcast(from_last, n - 1);
        at::Tensor flag = at::full({}, rank, at::kLong);  // as the loop's agreements are
        self.communicator->AllReduce(flag, Reduction::kMax);
        self.communicator->Barrier();
        return Text(from_last) + (flag.is_cpu() ? Text(flag) : "moved");
      },
      "0 " + std::to_string(n) + " " + std::to_string(n - 1) + " ");
}

TEST_P(Nccl, ReducesGradientsInBuckets) {
  const int n = GetParam();
  ExpectAllReturn(
      [&](int rank) {
        Rank self(folder_, rank, n);
        std::vector<at::Tensor> gradients = {self.Numbers(3), self.Numbers(100001)};
        AllReduceMean(*self.communicator, gradients, /*bucket_bytes=*/1000, /*active=*/n);
        self.communicator->Barrier();
        const double mean = (n + 1) / 2.0;
        return Text(gradients[1][100000]) == Text(at::full({}, 100000 * mean)) ? "mean" : "other";
      },
      "mean");
}

TEST_P(Nccl, AStalledPeerIsAnErrorOfTheCallAndLeavesAFlightRecorder) {
  const int n = GetParam();
  if (n < 2) GTEST_SKIP() << "a stall takes two ranks";
  const auto ends = RunForked(
      n,
      [&](int rank) {
        Rank self(folder_, rank, n, /*timeout_s=*/3);
        self.communicator->Barrier();
        if (rank == n - 1) std::this_thread::sleep_for(std::chrono::seconds(10));
        if (rank == n - 1) return std::string("slept");
        at::Tensor tensor = self.Numbers(3);
        self.communicator->AllReduce(tensor, Reduction::kSum);
        return std::string("went on");
      },
      /*limit_s=*/60);
  EXPECT_EQ(ends[0].exit_code, 1);
  EXPECT_NE(ends[0].output.find("all_reduce (call 1 of rank 0 of " + std::to_string(n) + ")"),
            std::string::npos)
      << ends[0].output;
  EXPECT_LT(ends[0].seconds, 30);
  std::ifstream recorder(folder_.File("flight-recorder-rank0.json"));
  const Json json = Json::parse(recorder, nullptr, /*allow_exceptions=*/false);
  ASSERT_FALSE(json.is_discarded());
  EXPECT_FALSE(json["entries"].empty());
  EXPECT_NE(json["entries"].back()["state"], "completed");
}

TEST_P(Nccl, ARankThatNeverComesIsNamed) {
  const int n = GetParam();
  if (n < 2) GTEST_SKIP() << "needs a rank that does not come";
  const auto ends = RunForked(
      n - 1,
      [&](int rank) {
        Rank self(folder_, rank, n, /*timeout_s=*/1);
        return std::string("met");
      },
      /*limit_s=*/60);
  EXPECT_EQ(ends[0].exit_code, 1);
  EXPECT_NE(ends[0].output.find("these ranks have not come: " + std::to_string(n - 1)),
            std::string::npos)
      << ends[0].output;
}

// Not of the communicator, but of what it runs on: nothing else of the device needs a program of
// its own.
TEST(CudaDevice, ResumesItsGenerator) {
  if (CountGpus() < 1) GTEST_SKIP() << "needs a GPU";
  const auto ends = RunForked(
      1,
      [](int) {
        const auto device = OpenDevice(DeviceChoice::kCuda, {});
        const auto draw = [&] {
          at::Tensor numbers =
              at::full({8}, 0.0, at::TensorOptions(at::kFloat).device(device->torch_device()));
          return Text(numbers.normal_());
        };
        draw();
        StateDict state;
        device->SaveRng(state);
        const std::string expected = draw();
        device->LoadRng(state);
        return std::string(draw() == expected ? "same" : "other");
      },
      /*limit_s=*/60);
  EXPECT_EQ(ends[0].output, "same");
}

TEST(CudaDevice, MovesBatchesAndCountsMemory) {
  if (CountGpus() < 1) GTEST_SKIP() << "needs a GPU";
  const auto ends = RunForked(
      1,
      [](int) {
        const auto device = OpenDevice(DeviceChoice::kCuda, {});
        const std::int64_t before = device->Memory().value().allocated_bytes;
        Batch batch;
        batch.ids = {1, 2};
        batch.inputs = at::arange(1 << 20, at::kFloat).reshape({2, -1});
        const Batch moved = device->Move(batch);
        const bool counted = device->Memory()->allocated_bytes - before >= 4 << 20;
        const bool same = moved.inputs.cpu().equal(batch.inputs);
        return std::string(moved.inputs.is_cuda() && !moved.targets.defined() ? "moved"
                                                                              : "stayed") +
               (counted ? " counted" : "") + (same ? " same" : "");
      },
      /*limit_s=*/60);
  EXPECT_EQ(ends[0].output, "moved counted same");
}

}  // namespace
}  // namespace trainwreck
