#include "trainer/devices/cpu_memory.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "trainer/ranks/forked_ranks.h"

namespace trainwreck {
namespace {

class CpuMemoryTest : public testing::Test {
 protected:
  CpuMemoryTest() {
    CountCpuMemory();
    LimitCpuMemory(0);
    before_ = CpuMemory().allocated_bytes;
    ResetCpuMemoryPeak();
  }
  ~CpuMemoryTest() override { LimitCpuMemory(0); }

  std::int64_t allocated() const { return CpuMemory().allocated_bytes - before_; }
  std::int64_t before() const { return before_; }
  std::int64_t peak() const { return CpuMemory().peak_bytes - before_; }

  // Room for `bytes` more than there were when the test began.
  void Limit(std::int64_t bytes) { LimitCpuMemory(before_ + bytes); }
  static at::Tensor Bytes(std::int64_t count) { return at::empty({count}, at::kByte); }

 private:
  std::int64_t before_;
};

TEST_F(CpuMemoryTest, CountsWhatTensorsHoldToTheByte) {
  {
    const at::Tensor floats = at::empty({3, 7});
    EXPECT_EQ(allocated(), 84);
    const at::Tensor view = floats.view({21}).narrow(0, 1, 5);
    EXPECT_EQ(allocated(), 84) << "a view has no storage of its own";
    const at::Tensor byte = Bytes(1);
    EXPECT_EQ(allocated(), 85);
    const at::Tensor nothing = at::empty({0});
    EXPECT_EQ(allocated(), 85);
  }
  EXPECT_EQ(allocated(), 0);
  EXPECT_EQ(peak(), 85);
}

TEST_F(CpuMemoryTest, ThePeakIsThatSinceTheLastReset) {
  const at::Tensor kept = Bytes(1000);
  Bytes(5000);
  EXPECT_EQ(peak(), 6000);
  ResetCpuMemoryPeak();
  EXPECT_EQ(peak(), 1000);
  Bytes(10);
  EXPECT_EQ(peak(), 1010);
}

TEST_F(CpuMemoryTest, FollowsStoragesThatAreResized) {
  at::Tensor tensor = at::ones({4});
  tensor.resize_({1000});
  EXPECT_EQ(allocated(), 4000);
  EXPECT_EQ(tensor[3].item<float>(), 1) << "what was there has moved with it";
  EXPECT_EQ(peak(), 4016);
}

TEST_F(CpuMemoryTest, BlocksAreAlignedAsLibTorchsOwn) {
  for (std::int64_t count : {1, 63, 64, 65, 4096, 100000}) {
    const at::Tensor tensor = Bytes(count);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor.data_ptr()) % 64, 0u) << count;
    tensor.fill_(255);  // up to the last byte
  }
  void* raw = c10::GetCPUAllocator()->raw_allocate(100);
  EXPECT_EQ(allocated(), 100);
  c10::GetCPUAllocator()->raw_deallocate(raw);
  EXPECT_EQ(allocated(), 0);
}

TEST_F(CpuMemoryTest, TheLimitIsExact) {
  Limit(1000);
  const at::Tensor first = Bytes(600);
  const at::Tensor second = Bytes(400);
  EXPECT_THROW(Bytes(1), c10::OutOfMemoryError);
  EXPECT_EQ(allocated(), 1000) << "a refusal takes nothing";
  EXPECT_EQ(peak(), 1000);
  Limit(1001);
  EXPECT_NO_THROW(Bytes(1));
  EXPECT_THROW(Bytes(2), c10::OutOfMemoryError);
}

TEST_F(CpuMemoryTest, ARefusalSaysHowMuchWasMissing) {
  const at::Tensor kept = Bytes(600);
  Limit(1000);
  const std::int64_t before = CpuMemory().allocated_bytes - 600;
  try {
    Bytes(401);
    FAIL() << "401 bytes where 400 are left";
  } catch (const c10::OutOfMemoryError& error) {
    EXPECT_NE(std::string(error.what()).find("Tried to allocate 401 B"), std::string::npos)
        << error.what();
  }
  ASSERT_TRUE(LastCpuRefusal().has_value());
  EXPECT_EQ(LastCpuRefusal()->requested_bytes, 401);
  EXPECT_EQ(LastCpuRefusal()->allocated_bytes, before + 600);
  EXPECT_EQ(LastCpuRefusal()->limit_bytes, before + 1000);
}

TEST_F(CpuMemoryTest, ALimitBelowWhatIsThereStopsTheNextAllocation) {
  at::Tensor kept = Bytes(600);
  Limit(100);
  EXPECT_THROW(Bytes(1), c10::OutOfMemoryError);
  kept.reset();
  EXPECT_NO_THROW(Bytes(100));
}

TEST_F(CpuMemoryTest, AnOperatorThatDoesNotFitFailsAndTheNextOneWorks) {
  const at::Tensor a = at::ones({64, 64});
  Limit(64 * 64 * 4 + 100);
  EXPECT_THROW(at::matmul(a, a), c10::OutOfMemoryError);
  EXPECT_EQ(allocated(), 64 * 64 * 4);
  Limit(2 * 64 * 64 * 4 + 100);
  EXPECT_EQ(at::matmul(a, a).sum().item<float>(), 64 * 64 * 64);
}

TEST_F(CpuMemoryTest, KnowsWhoseThePeakWas) {
  const auto grew = [](const MemoryByOwner& now, const MemoryByOwner& before, MemoryOwner owner) {
    return BytesOf(now, owner) - BytesOf(before, owner);
  };
  const MemoryByOwner before = CpuMemory().peak_by_owner;
  at::Tensor parameters;
  {
    MemoryScope scope(MemoryOwner::kParameters);
    parameters = Bytes(300);
    MemoryScope inner(MemoryOwner::kActivations);
    Bytes(700);
  }
  Bytes(10);
  const MemoryByOwner peak = CpuMemory().peak_by_owner;
  EXPECT_EQ(grew(peak, before, MemoryOwner::kParameters), 300);
  EXPECT_EQ(grew(peak, before, MemoryOwner::kActivations), 700);
  EXPECT_EQ(grew(peak, before, MemoryOwner::kOther), 0) << "allocated after the peak";
  ResetCpuMemoryPeak();
  EXPECT_EQ(grew(CpuMemory().peak_by_owner, before, MemoryOwner::kActivations), 0);
  parameters.reset();  // outside the scope: what counts is who allocated it
  ResetCpuMemoryPeak();
  EXPECT_EQ(grew(CpuMemory().peak_by_owner, before, MemoryOwner::kParameters), 0);
}

TEST_F(CpuMemoryTest, ARefusalSaysWhoseTheMemoryWas) {
  MemoryScope scope(MemoryOwner::kGradients);
  const at::Tensor most = Bytes(100000);
  Limit(100001);
  try {
    Bytes(2);
    FAIL() << "2 bytes where 1 is left";
  } catch (const c10::OutOfMemoryError& error) {
    EXPECT_NE(std::string(error.what()).find("% gradients"), std::string::npos) << error.what();
  }
  EXPECT_EQ(BytesOf(LastCpuRefusal()->by_owner, MemoryOwner::kGradients), 100000);
}

TEST_F(CpuMemoryTest, WhatAMeasurementTakesIsInNoCount) {
  at::Tensor measured, more;
  Limit(100);
  {
    const UncountedMemory none;
    MemoryScope scope(MemoryOwner::kActivations);
    measured = Bytes(1000);
    const UncountedMemory within;
    more = Bytes(1000);
  }
  EXPECT_EQ(allocated(), 0);
  EXPECT_EQ(peak(), 0);
  const at::Tensor counted = Bytes(100);
  EXPECT_THROW(Bytes(1), c10::OutOfMemoryError);
  measured.reset();  // whoever frees it
  EXPECT_EQ(allocated(), 100);
  const UncountedMemory none;
  more.reset();
  EXPECT_EQ(allocated(), 100);
}

TEST_F(CpuMemoryTest, AMomentIsWhereItRoseAndThenFell) {
  const auto moments = [&] {
    std::vector<std::int64_t> of_test = CpuMemory().moments;
    for (std::int64_t& bytes : of_test) bytes -= before();
    return of_test;
  };
  const auto ends = RunForked(1, [&](int) {  // it is followed for the rest of the process
    FollowCpuMemory();
    at::Tensor a = Bytes(10), b = Bytes(20);
    b.reset();
    a.reset();
    Bytes(5);
    const at::Tensor c = Bytes(7);
    const bool all = moments() == std::vector<std::int64_t>({30, 5, 7});
    ResetCpuMemoryPeak();
    return std::string(all ? "all" : "others") + (CpuMemory().moments.size() <= 1 ? " reset" : "");
  });
  EXPECT_EQ(ends.at(0).output, "all reset");
  Bytes(10);
  EXPECT_TRUE(moments().empty()) << "nobody asked";
}

TEST_F(CpuMemoryTest, AForkGoesOnFromItsParentsCount) {
  const at::Tensor kept = Bytes(1000);
  Limit(1500);
  const auto ends = RunForked(1, [&](int) {
    const at::Tensor more = Bytes(500);
    const std::int64_t child = allocated();
    try {
      Bytes(1);
    } catch (const c10::OutOfMemoryError&) {
      return std::to_string(child);
    }
    return std::string("no limit");
  });
  EXPECT_EQ(ends.at(0).output, "1500");
  EXPECT_EQ(allocated(), 1000) << "the child's tensors are its own";
}

TEST_F(CpuMemoryTest, ThreadsLoseNothing) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([] {
      for (int j = 0; j < 2000; ++j) Bytes(1 + j % 7);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(allocated(), 0);
  EXPECT_LE(peak(), 4 * 7);
}

}  // namespace
}  // namespace trainwreck
