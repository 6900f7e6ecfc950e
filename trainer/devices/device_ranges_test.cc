// What a device is told of the loop's stages, when its clock is read, and what becomes of its
// sensors' readings.
#include <ATen/Context.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "trainer/devices/device.h"
#include "trainer/ranks/communicator.h"
#include "trainer/test_run.h"

namespace trainwreck {
namespace {

struct Noted {
  std::vector<std::string> ranges;
  int begun = 0, ended = 0, read = 0;
  std::vector<DeviceHealth> health = {};  // the readings, one a step
  DeviceHealth after_error = {};
  bool fails = false;  // whatever is moved to it, after the readings
};
Noted* noted = nullptr;  // null: there is no such device

// The CPU, under the name of a GPU.
class NotingDevice : public Device {
 public:
  at::Device torch_device() const override { return cpu_->torch_device(); }
  std::string name() const override { return "noting"; }
  std::unique_ptr<Communicator> MakeCommunicator(const GroupOptions& options) override {
    return cpu_->MakeCommunicator(options);
  }
  Batch Move(const Batch& batch) const override {
    if (noted->fails && noted->health.empty()) throw std::runtime_error("the GPU is lost");
    return cpu_->Move(batch);
  }
  void SaveRng(StateDict& state) const override { cpu_->SaveRng(state); }
  void LoadRng(const StateDict& state) override { cpu_->LoadRng(state); }
  std::optional<MemoryUse> Memory() const override { return cpu_->Memory(); }
  void ResetMemoryPeak() override { cpu_->ResetMemoryPeak(); }
  void LimitMemory(std::int64_t bytes) override { cpu_->LimitMemory(bytes); }
  std::optional<DeviceHealth> Health() override {
    if (noted->health.empty()) return std::nullopt;
    const DeviceHealth health = noted->health.front();
    noted->health.erase(noted->health.begin());
    return health;
  }
  std::optional<DeviceHealth> HealthAfterError() override { return noted->after_error; }
  void BeginRange(const char* name) override { noted->ranges.emplace_back(name); }
  void BeginTiming() override { ++noted->begun; }
  void EndTiming() override { ++noted->ended; }
  std::optional<double> TimedSeconds() override {
    ++noted->read;
    return 0.25;
  }

 private:
  std::unique_ptr<Device> cpu_ = OpenDevice(DeviceChoice::kCpu, {});
};

const RegisterDeviceKind registration({
    .choice = DeviceChoice::kCuda,
    .backend = "gloo",
    .list =
        [] {
          std::vector<DeviceInfo> devices;
          if (noted != nullptr) devices.push_back({.kind = "cuda", .name = "noting"});
          return devices;
        },
    .open = [](const DevicePlace&) { return std::make_unique<NotingDevice>(); },
});

TEST(DeviceRanges, AreTheStagesOfTheLoopInTheirOrder) {
  Noted all;
  noted = &all;
  const Outcome outcome =
      RunOnce(With(Mlp(), {{"device", "cuda"}, {"steps", 2}, {"eval.at_epoch_end", false}}));
  noted = nullptr;
  ASSERT_EQ(outcome.code, 0);
  std::vector<std::string> training;
  for (const std::string& range : all.ranges) {
    if (range != "reduce" && range != "evaluate") training.push_back(range);
  }
  EXPECT_THAT(training, testing::ElementsAre("data", "forward", "backward", "update", "data",
                                             "forward", "backward", "update"));
  EXPECT_EQ(all.begun + all.ended + all.read, 0) << "nobody asked for the device's time";
  EXPECT_EQ(outcome.trace.Find("device_step_s", 0), nullptr);
}

TEST(DeviceRanges, ItsClockIsReadOnceAStepWhereAFormulaAsks) {
  Noted all;
  noted = &all;
  const Outcome outcome =
      RunOnce(With(Mlp(), {{"device", "cuda"}, {"steps", 3}}), {"device_step_s"});
  noted = nullptr;
  ASSERT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.Values("device_step_s"), testing::ElementsAre(0.25, 0.25, 0.25));
  EXPECT_THAT((std::vector<int>{all.begun, all.ended, all.read}), testing::Each(3));
  EXPECT_EQ(RunOnce(Mlp(), {"device_step_s"}).trace.Find("device_step_s", 0), nullptr)
      << "the CPU has no clock of its own";
}

TEST(DeviceOpened, ReducedSumsAreAllowedOnlyWhereTheRecipeAllowsThem) {
  const auto allowed = [](const Recipe& changes) {
    const Outcome outcome = RunOnce(With(Mlp(), With({{"steps", 1}}, changes)));
    EXPECT_EQ(outcome.EventsOf("device_opened").at(0)["reduced_sums"], false) << "it is the CPU";
    EXPECT_EQ(outcome.EventsOf("device_opened").at(0)["allocator"], "");
    const at::Context& torch = at::globalContext();
    const auto is = at::CuBLASReductionOption::AllowReducedPrecisionWithSplitK;
    return std::vector<bool>{torch.allowBF16ReductionCuBLAS() == is,
                             torch.allowFP16ReductionCuBLAS() == is};
  };
  EXPECT_THAT(allowed({{"precision.reduced_sums", true}}), testing::Each(true));
  EXPECT_THAT(allowed({{"memory.expandable_segments", true}}), testing::Each(false));
}

TEST(DeviceHealthTest, IsInTheRecordsOfTheStepsWhereItWasRead) {
  Noted all;
  all.health = {{.power_w = 412.5,
                 .corrected_errors = 17,
                 .remapped_rows = RemappedRows{.correctable = 5, .uncorrectable = 2},
                 .throttled = std::vector<std::string>{}},
                {.throttled = std::vector<std::string>{"sw_thermal"}}};
  noted = &all;
  const Outcome outcome = RunOnce(With(Mlp(), {{"device", "cuda"}, {"steps", 3}}));
  noted = nullptr;
  ASSERT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.Values("device_power_w"), testing::ElementsAre(412.5));
  EXPECT_THAT(outcome.Values("device_corrected_errors"), testing::ElementsAre(17));
  EXPECT_THAT(outcome.Values("device_remapped_rows"), testing::ElementsAre(7));
  EXPECT_THAT(outcome.Values("device_throttled"), testing::ElementsAre(0, 1));
  ASSERT_EQ(outcome.EventsOf("device_throttled").size(), 1U);
  EXPECT_EQ(outcome.EventsOf("device_throttled")[0]["step"], 1);
  EXPECT_TRUE(outcome.EventsOf("device_xid").empty());
}

// The error of a call does not say that the GPU is at fault; the driver does, some time before or
// behind it.
TEST(DeviceHealthTest, CriticalErrorsAreSaidByTheErrorWithWhichARunEnds) {
  Noted all;
  all.fails = true;
  all.health = {{}, {.xids = {{48, "double bit ECC error"}}}};
  all.after_error = {.xids = {{79, "GPU has fallen off the bus"}}};
  noted = &all;
  const Outcome outcome = RunOnce(With(Mlp(), {{"device", "cuda"}, {"steps", 5}}));
  noted = nullptr;
  EXPECT_EQ(outcome.code, 1);
  const auto xids = outcome.EventsOf("device_xid");
  ASSERT_EQ(xids.size(), 2U);
  EXPECT_EQ(xids[0]["step"], 1);
  EXPECT_EQ(xids[1]["step"], 2);
  EXPECT_EQ(outcome.EventsOf("exception").at(0)["what"],
            "the GPU is lost; the driver told of the GPU: Xid 48 (double bit ECC error), Xid 79 "
            "(GPU has fallen off the bus)");
}

TEST(DeviceHealthTest, AnErrorBeforeTheFirstStepSaysThemToo) {
  Noted all;
  all.fails = true;
  all.after_error = {.xids = {{62, ""}}};
  noted = &all;
  const Outcome outcome = RunOnce(With(Mlp(), {{"device", "cuda"}}));
  noted = nullptr;
  EXPECT_EQ(outcome.EventsOf("exception").at(0)["what"],
            "the GPU is lost; the driver told of the GPU: Xid 62");
  EXPECT_EQ(outcome.EventsOf("device_xid").size(), 1U);
}

}  // namespace
}  // namespace trainwreck
