// What the loop tells a device: the stages, when its clock is read, which batch comes next, and
// which passes are recorded and replayed. And what becomes of its sensors' readings.
#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trainer/build.h"
#include "trainer/devices/device.h"
#include "trainer/devices/recorded_passes.h"
#include "trainer/ranks/communicator.h"
#include "trainer/test_run.h"

namespace trainwreck {
namespace {

struct Noted {
  std::vector<std::string> ranges;
  int begun = 0, ended = 0, read = 0;
  int records = 0, replays = 0;
  std::vector<std::vector<std::int64_t>> ahead = {}, moved = {};  // ids of batches
  std::vector<DeviceHealth> health = {};                          // the readings, one a step
  DeviceHealth after_error = {};
  bool tells_of_xids = false;
  bool fails = false;  // whatever is moved to it, after the readings
};
Noted* noted = nullptr;  // null: there is no such device

// Does again what was recorded; a GPU would do so without the host.
class NotingWork : public RecordedWork {
 public:
  explicit NotingWork(std::function<void()> queue) : queue_(std::move(queue)) {}
  void Replay() override {
    ++noted->replays;
    at::AutoGradMode with_grad(true);
    queue_();
  }

 private:
  std::function<void()> queue_;
};

// The CPU, under the name of a GPU.
class NotingDevice : public Device {
 public:
  at::Device torch_device() const override { return cpu_->torch_device(); }
  std::string name() const override { return "noting"; }
  std::unique_ptr<Communicator> MakeCommunicator(const GroupOptions& options) override {
    return cpu_->MakeCommunicator(options);
  }
  Batch Move(const Batch& batch) const override {
    noted->moved.push_back(batch.ids);
    if (noted->fails && noted->health.empty()) throw std::runtime_error("the GPU is lost");
    return cpu_->Move(batch);
  }
  void CopyAhead(const Batch& batch) override { noted->ahead.push_back(batch.ids); }
  std::unique_ptr<RecordedWork> Record(const std::function<void()>& queue) override {
    ++noted->records;
    return std::make_unique<NotingWork>(queue);
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
  bool TellsOfXids() const override { return noted->tells_of_xids; }
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

TEST(DeviceCalls, AreTheStagesOfTheLoopInTheirOrder) {
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

TEST(DeviceCalls, ItsClockIsReadOnceAStepWhereAFormulaAsks) {
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

TEST(DeviceCalls, MicroBatchesThatComeNextAreCopiedAhead) {
  Noted all;
  noted = &all;
  const Outcome outcome = RunOnce(
      With(Mlp(),
           {{"device", "cuda"}, {"steps", 3}, {"accumulation", 2}, {"eval.at_epoch_end", false}}));
  noted = nullptr;
  ASSERT_EQ(outcome.code, 0);
  ASSERT_GE(all.moved.size(), 6u);  // the evaluation moves batches, too
  // Without workers only a step's own batches are there.
  EXPECT_THAT(all.ahead, testing::ElementsAre(all.moved[1], all.moved[3], all.moved[5]));
}

TEST(DeviceCalls, TheNextStepsBatchIsCopiedAheadOnceWorkersHaveIt) {
  Noted all;
  noted = &all;
  const Outcome outcome = RunOnce(With(
      Mlp(),
      {{"device", "cuda"}, {"steps", 40}, {"loader.workers", 2}, {"eval.at_epoch_end", false}}));
  noted = nullptr;
  ASSERT_EQ(outcome.code, 0);
  ASSERT_GE(all.moved.size(), 40u);
  EXPECT_FALSE(all.ahead.empty());
  auto trained_on = all.moved.begin();
  for (const std::vector<std::int64_t>& ids : all.ahead) {  // each before it is trained on
    trained_on = std::find(trained_on + 1, all.moved.end(), ids);
    ASSERT_NE(trained_on, all.moved.end());
  }
}

TEST(DeviceCalls, PassesThatAreMadeAgainCopyNothingAhead) {
  Noted all;
  noted = &all;
  const Outcome outcome = RunOnce(With(Mlp(), {{"device", "cuda"},
                                               {"steps", 3},
                                               {"accumulation", 2},
                                               {"audit.repeat_every", 1},
                                               {"eval.at_epoch_end", false}}));
  noted = nullptr;
  ASSERT_EQ(outcome.code, 0);
  EXPECT_EQ(all.ahead.size(), 3U) << "the second micro-batch of each step, once";
}

TEST(DeviceCalls, RecordedPassesTrainAsPlainOnesDo) {
  const std::vector<Recipe> changes = {
      {},
      {{"accumulation", 3}},
      {{"precision", "bf16"}},
      {{"scaler.kind", "dynamic"}, {"scaler.growth_interval", 2}, {"precision", "fp16"}},
      {{"model.dropout", 0.1}},
  };
  for (const Recipe& change : changes) {
    const Recipe recipe = With(With(Gpt(), {{"steps", 6}}), change);
    Noted all;
    noted = &all;
    const Outcome plain = RunOnce(With(recipe, {{"device", "cuda"}}));
    EXPECT_EQ(all.records, 0);
    const Outcome recorded = RunOnce(With(recipe, {{"device", "cuda"}, {"cuda_graphs", true}}));
    noted = nullptr;
    ASSERT_EQ(plain.code, 0);
    ASSERT_EQ(recorded.code, 0);
    const int passes = 6 * (change.contains("accumulation") ? 3 : 1);
    EXPECT_EQ(all.records, 1) << "one shape";
    EXPECT_EQ(all.replays, passes - RecordedPasses::kPassesBefore);
    EXPECT_EQ(recorded.EventsOf("passes_recorded").size(), 1u);
    EXPECT_EQ(BitsWithoutMemory(recorded), BitsWithoutMemory(plain)) << Json(change).dump();
  }
}

TEST(DeviceCalls, ActivationsAreReadFromWhatAReplayMade) {
  const Recipe recipe = With(Gpt(), {{"device", "cuda"}, {"steps", 6}, {"accumulation", 2}});
  const std::vector<std::string> record = {"act_mean{loss}", "act_norm{blocks.*}"};
  Noted all;
  noted = &all;
  const Outcome plain = RunOnce(recipe, record);
  const Outcome recorded = RunOnce(With(recipe, {{"cuda_graphs", true}}), record);
  noted = nullptr;
  ASSERT_EQ(recorded.code, 0);
  EXPECT_EQ(all.replays, 12 - RecordedPasses::kPassesBefore);
  EXPECT_NE(recorded.trace.Find("act_norm{blocks.1}", 0), nullptr);
  EXPECT_EQ(BitsWithoutMemory(recorded), BitsWithoutMemory(plain));
}

// The host has to see the passes of a step that it explains.
TEST(DeviceCalls, ANanIsExplainedByPlainPasses) {
  const Recipe recipe = With(Gpt(), {{"device", "cuda"},
                                     {"steps", 8},
                                     {"schedule.kind", "warmup_cosine"},
                                     {"schedule.restart_step", 4},
                                     {"schedule.restart_ratio", 1.0e30},
                                     {"diagnose.nonfinite", true}});
  Noted all;
  noted = &all;
  const Outcome plain = RunOnce(recipe);
  const Outcome recorded = RunOnce(With(recipe, {{"cuda_graphs", true}}));
  noted = nullptr;
  EXPECT_GT(all.replays, 0);
  const auto findings = [](const Outcome& outcome) {
    std::vector<Json> events = outcome.EventsOf("first_nonfinite");
    for (Json& event : events) event.erase("time");
    return events;
  };
  ASSERT_FALSE(findings(plain).empty());
  EXPECT_EQ(findings(recorded), findings(plain));
}

TEST(DeviceCalls, ADeviceThatRecordsNothingTrainsAsEver) {
  const Recipe recipe = With(Gpt(), {{"steps", 5}, {"accumulation", 2}});
  const Outcome plain = RunOnce(recipe);
  EXPECT_EQ(BitsWithoutMemory(RunOnce(With(recipe, {{"cuda_graphs", true}}))),
            BitsWithoutMemory(plain));
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
  const auto rounds = [](bool tf32) {
    RunOnce(With(Mlp(), {{"steps", 1}, {"precision.tf32", tf32}}));
    return at::globalContext().allowTF32CuBLAS();
  };
  EXPECT_TRUE(rounds(true));
  EXPECT_FALSE(rounds(false));
  EXPECT_THAT(allowed({{"precision.reduced_sums", true}}), testing::Each(true));
  EXPECT_THAT(allowed({{"memory.expandable_segments", true}}), testing::Each(false));
}

TEST(DeviceOpened, SaysTheSettingsOfAGpu) {
  unsetenv("PYTORCH_CUDA_ALLOC_CONF");
  unsetenv("PYTORCH_ALLOC_CONF");
  for (const bool is_set : {true, false}) {
    const Recipe recipe = {{"precision.tf32", is_set},
                           {"precision.reduced_sums", is_set},
                           {"memory.expandable_segments", is_set}};
    RunOnce(With(Mlp(), With({{"steps", 1}}, recipe)));
    EXPECT_EQ(SettingsOf(at::kCUDA, ParseRecipe(recipe)),
              Json({{"kind", "cuda"},
                    {"tf32", is_set},
                    {"reduced_sums", is_set},
                    {"allocator", is_set ? "expandable_segments:True" : ""}}));
  }
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

TEST(DeviceHealthTest, ADriverThatTellsOfNoCriticalErrorsIsToldFromAGpuWithoutAny) {
  for (const bool tells : {false, true}) {
    Noted all;
    all.tells_of_xids = tells;
    noted = &all;
    const Outcome outcome = RunOnce(With(Mlp(), {{"device", "cuda"}, {"steps", 1}}));
    noted = nullptr;
    ASSERT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.EventsOf("device_opened").at(0)["tells_of_xids"], tells);
  }
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
