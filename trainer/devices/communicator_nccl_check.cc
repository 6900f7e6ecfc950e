// Tests of the NCCL communicator, at every world size that this machine's GPUs allow. A program of
// its own rather than a Bazel test: it needs GPUs, and all of LibTorch's libraries to start
// (ci/gpu_check.sh runs it). This process makes no CUDA call; ranks are its forks.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linear.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

#include "harness/protocol/json.h"
#include "trainer/devices/broken_nccl.h"
#include "trainer/devices/count_gpus.h"
#include "trainer/devices/device.h"
#include "trainer/devices/recorded_passes.h"
#include "trainer/ranks/bucket.h"
#include "trainer/ranks/forked_ranks.h"

namespace trainwreck {
namespace {

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

TEST(CudaDevice, TakesTheCopyThatWasMadeAheadUnlessTheBatchHasChanged) {
  if (CountGpus() < 1) GTEST_SKIP() << "needs a GPU";
  const auto ends = RunForked(
      1,
      [](int) {
        const auto device = OpenDevice(DeviceChoice::kCuda, {});
        std::vector<Batch> batches;
        for (int i = 0; i < 3; ++i) {
          batches.push_back({.ids = {i},
                             .inputs = at::full({1 << 22}, i, at::kFloat),
                             .targets = at::full({5}, i, at::kLong),
                             .weights = at::full({5}, 1.0, at::kFloat)});
          device->CopyAhead(batches.back());
        }
        batches[1].targets.fill_(7);
        std::string values;
        for (const Batch& batch : batches) {
          const Batch moved = device->Move(batch);
          const bool all_equal = moved.inputs.cpu().equal(batch.inputs);
          values += Text(moved.targets[4]) + (all_equal && moved.ids == batch.ids ? "" : "other ");
        }
        return values + Text(device->Move(batches[0]).targets[0]);
      },
      /*limit_s=*/60);
  EXPECT_EQ(ends[0].output, "0 7 2 0 ") << "exit " << ends[0].exit_code;
}

// A layer and dropout, whose numbers come from the device's generator.
struct Toy {
  explicit Toy(at::Device where)
      : weight(at::arange(64.0, at::kFloat).reshape({8, 8}).div(64).to(where)),
        unused(at::full({2}, 1.0, at::TensorOptions(at::kFloat).device(where))) {
    weight.set_requires_grad(true);
    unused.set_requires_grad(true);
  }
  at::Tensor Passes(const Batch& batch, const at::Tensor& seed) const {
    const at::Tensor y = at::dropout(at::linear(batch.inputs, weight), 0.25, /*train=*/true);
    const at::Tensor loss = (y * y * batch.weights.unsqueeze(-1)).mean();
    loss.backward(seed);
    return loss.detach();
  }
  at::Tensor weight, unused;
};

class NotedEvents : public EventSink {
 public:
  int count = 0;

 protected:
  void Write(const std::string&, Json) override { ++count; }
};

TEST(CudaDevice, ReplaysPassesWithTheBitsOfPlainOnes) {
  if (CountGpus() < 1) GTEST_SKIP() << "needs a GPU";
  const auto ends = RunForked(
      1,
      [](int) {
        const auto device = OpenDevice(DeviceChoice::kCuda, {});
        const at::Device where = device->torch_device();
        StateDict generator;
        device->SaveRng(generator);
        const auto train = [&](bool is_recorded) {
          device->LoadRng(generator);
          Toy toy(where);
          NotedEvents events;
          RecordedPasses recorded(*device, {{"weight", toy.weight}, {"unused", toy.unused}}, events,
                                  [&](const Batch& batch, const at::Tensor& seed, ForwardHook*) {
                                    return toy.Passes(batch, seed);
                                  });
          std::string text;
          for (int pass = 0; pass < 12; ++pass) {
            const int rows = pass % 4 == 3 ? 3 : 5;  // two shapes
            const Batch batch = {.ids = {pass},
                                 .inputs = at::full({rows, 8}, 0.1 * pass, at::kFloat),
                                 .weights = at::full({rows}, 1.0, at::kFloat)};
            const at::Tensor seed = at::full({}, 1.0 + pass);
            const at::Tensor loss = is_recorded ? recorded.Make(batch, seed)
                                                : toy.Passes(device->Move(batch), seed.to(where));
            text += Text(loss) + Text(toy.weight.grad().sum());
            if (pass % 3 == 2) toy.weight.mutable_grad().reset();  // else gradients add up
          }
          const bool as_planned = events.count == (is_recorded ? 2 : 0);
          return text + (toy.unused.grad().defined() ? "used" : "") + (as_planned ? "" : "records");
        };
        const std::string plain = train(false), replayed = train(true);
        return plain == replayed ? "same" : plain + "| " + replayed;
      },
      /*limit_s=*/60);
  EXPECT_EQ(ends[0].output, "same") << "exit " << ends[0].exit_code;
}

// A number that the host needs in between.
TEST(CudaDevice, PassesThatWaitAreNoRecord) {
  if (CountGpus() < 1) GTEST_SKIP() << "needs a GPU";
  const auto ends = RunForked(
      1,
      [](int) {
        const auto device = OpenDevice(DeviceChoice::kCuda, {});
        const at::Tensor number = at::full({}, 2.0, device->torch_device());
        device->Record([&] { number.add(number.item<double>()); });
        return std::string("recorded");
      },
      /*limit_s=*/60);
  EXPECT_NE(ends[0].exit_code, 0);
  EXPECT_NE(ends[0].output.find("cuda_graphs"), std::string::npos) << ends[0].output;
}

}  // namespace

std::string NcclShim() {
  const char* const path = std::getenv("GPU_CHECK_NCCL_SHIM");
  return path == nullptr ? "" : path;
}

std::string WhyNothingIsBroken() {
  if (CountGpus() < 1) return "needs a GPU";
  return NcclShim().empty() ? "needs a shared libnccl.so.2, and GPU_CHECK_NCCL_SHIM" : "";
}

OneRank OpenOneRank(const GroupOptions& options) {
  auto device = OpenDevice(DeviceChoice::kCuda, {.rank = 0, .world_size = 1});
  auto communicator = device->MakeCommunicator(options);
  return {.device = std::move(device), .communicator = std::move(communicator)};
}

}  // namespace trainwreck
