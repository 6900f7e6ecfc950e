// Streams of a device that only notes what is asked of it: which work begins behind which.
#include "trainer/ranks/side_stream.h"

#include <ATen/ops/from_blob.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/library.h>

#include <string>
#include <thread>
#include <utility>

#include "trainer/ranks/overlapped_reduction.h"

namespace trainwreck {
namespace {

constexpr auto kType = c10::DeviceType::PrivateUse1;
constexpr c10::StreamId kSide = 7;

std::vector<std::string> noted;

// A thread's own stream is 0. An event has the stream and the number of what it stands behind.
class NotingDevice : public c10::impl::DeviceGuardImplInterface {
 public:
  using Device = c10::Device;
  using Stream = c10::Stream;
  c10::DeviceType type() const override { return kType; }
  Device exchangeDevice(Device) const override { return getDevice(); }
  Device getDevice() const override { return {kType, 0}; }
  void setDevice(Device) const override {}
  void uncheckedSetDevice(Device) const noexcept override {}
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
  Stream getStream(Device device) const override {
    return Stream(Stream::UNSAFE, device, current_);
  }
  Stream getStreamFromGlobalPool(Device device, bool) const override {
    return Stream(Stream::UNSAFE, device, kSide);
  }
  Stream exchangeStream(Stream stream) const override {
    return Stream(Stream::UNSAFE, stream.device(), std::exchange(current_, stream.id()));
  }
  void record(void** event, const Stream& stream, c10::DeviceIndex, c10::EventFlag) const override {
    if (*event == nullptr) *event = new std::string;
    *static_cast<std::string*>(*event) = std::to_string(stream.id());
    noted.push_back("mark " + std::to_string(stream.id()));
  }
  void block(void* event, const Stream& stream) const override {
    noted.push_back(std::to_string(stream.id()) + " behind " + *static_cast<std::string*>(event));
  }
  void destroyEvent(void* event, c10::DeviceIndex) const noexcept override {
    delete static_cast<std::string*>(event);
  }

 private:
  static thread_local c10::StreamId current_;
};
thread_local c10::StreamId NotingDevice::current_ = 0;

C10_REGISTER_GUARD_IMPL(PrivateUse1, NotingDevice)

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("record_stream", [](at::Tensor&, c10::Stream stream) {
    noted.push_back("kept for " + std::to_string(stream.id()));
  });
}

// That nobody computes with.
at::Tensor OnDevice(std::vector<float>& data) {
  const c10::Device device(kType, 0);
  return at::for_blob(data.data(), {static_cast<std::int64_t>(data.size())})
      .options(at::TensorOptions(device).dtype(at::kFloat))
      .target_device(device)
      .make_tensor();
}

std::string Current() { return std::to_string(NotingDevice().getStream({kType, 0}).id()); }

TEST(SideStream, WorkBeginsBehindItsMarkAndIsAwaitedAtTheEnd) {
  noted.clear();
  SideStream stream({kType, 0});
  const SideStream::Mark mark = stream.Here();
  std::thread([&] {
    stream.Run(mark, {}, [] { noted.push_back("work on " + Current()); });
    noted.push_back("then " + Current());
  }).join();
  stream.Join();
  EXPECT_THAT(noted, testing::ElementsAre("mark 0", "7 behind 0", "work on 7", "mark 7", "then 0",
                                          "0 behind 7"));
}

// Behind the backward pass, and before the update.
TEST(SideStream, IsThatOfReductionsBesideTheBackwardPass) {
  std::vector<float> values(4), numbers(4);
  at::Tensor parameter = OnDevice(values);
  parameter.mutable_grad() = OnDevice(numbers);
  OverlappedReduction reduction({{"weight", parameter}}, 16, {.reduce = [](const auto&, double) {
                                  noted.push_back("reduced on " + Current());
                                }});
  noted.clear();
  reduction.Begin(1, 1.0, 2.0);
  reduction.Finish();
  noted.push_back("then " + Current());
  EXPECT_THAT(noted, testing::ElementsAre("mark 0", "7 behind 0", "kept for 7", "reduced on 7",
                                          "mark 7", "0 behind 7", "then 0"));
}

TEST(SideStream, OfTheCpuOnlyWorks) {
  noted.clear();
  SideStream stream(c10::kCPU);
  EXPECT_EQ(stream.Here(), nullptr);
  bool has_worked = false;
  stream.Run(stream.Here(), {at::Tensor()}, [&] { has_worked = true; });
  stream.Join();
  EXPECT_TRUE(has_worked);
  EXPECT_TRUE(noted.empty());
}

}  // namespace
}  // namespace trainwreck
