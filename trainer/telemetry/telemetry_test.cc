// What a run records of its tensors, what that costs when nobody asks, and the evidence of a
// failing step.
#include "trainer/telemetry/telemetry.h"

#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "trainer/checkpoints/checkpoint.h"
#include "trainer/models/model.h"
#include "trainer/ranks/forked_ranks.h"
#include "trainer/telemetry/evidence.h"
#include "trainer/telemetry/step_signals.h"
#include "trainer/tensor_views.h"
#include "trainer/test_run.h"

namespace trainwreck {
namespace {

// What a family records of one tensor.
std::map<std::string, double> Recorded(const std::vector<std::string>& record,
                                       const std::vector<at::Tensor>& outputs) {
  const AskedSignals asked(record);
  FamilyRecorder recorder("act", asked);
  ActivationReader reader(recorder);
  for (at::Tensor output : outputs) reader.OnOutput("m.0", output);
  std::map<std::string, double> values;
  recorder.Flush([&](const std::string& key, double value) { values[key] = value; });
  return values;
}

TEST(TensorSignalsTest, AreWhatTheirNamesSay) {
  const at::Tensor output = at::tensor({3.0f, -4.0f, 0.0f, -0.0f, 0.99f, 0.5f, kNan, -kInf});
  const std::vector<std::string> record = {"act_norm{m.*}",
                                           "act_mean{m.*}",
                                           "act_std{m.*}",
                                           "act_max{m.*}",
                                           "act_nonfinite{m.*}",
                                           "act_zero_share{m.*}",
                                           "act_saturated_share{m.*}"};
  const auto values = Recorded(record, {output});
  EXPECT_EQ(values.size(), 7u);
  EXPECT_TRUE(std::isnan(values.at("act_norm{m.0}")));
  EXPECT_NEAR(values.at("act_mean{m.0}"), 0.49 / 6, 1e-7);
  EXPECT_EQ(values.at("act_max{m.0}"), 4);
  EXPECT_EQ(values.at("act_nonfinite{m.0}"), 2);
  EXPECT_EQ(values.at("act_zero_share{m.0}"), 0.25);
  EXPECT_EQ(values.at("act_saturated_share{m.0}"), 4.0 / 8) << "3, -4, 0.99 and -inf";
}

TEST(TensorSignalsTest, SoftmaxEntropyIsTheMeanOverRows) {
  const at::Tensor even = at::tensor({1.0f, 1.0f, 1.0f, 1.0f}).view({1, 4});
  const at::Tensor sure = at::tensor({0.0f, 90.0f, 0.0f, 0.0f}).view({1, 4});
  const std::vector<std::string> record = {"act_softmax_entropy{m.*}"};
  EXPECT_NEAR(Recorded(record, {even}).at("act_softmax_entropy{m.0}"), std::log(4.0), 1e-6);
  EXPECT_NEAR(Recorded(record, {sure}).at("act_softmax_entropy{m.0}"), 0, 1e-6);
  EXPECT_NEAR(Recorded(record, {even, sure}).at("act_softmax_entropy{m.0}"), std::log(4.0) / 2,
              1e-6);
}

// The way of devices without a kernel for changes, on the CPU.
TEST(TensorViewsTest, ChangesByDifferenceAreThoseOfTheKernel) {
  const std::vector<at::Tensor> before = {at::tensor({1.0f, 2.0f, 3.0f}),
                                          at::tensor({0.5f, 1e-40f}), at::tensor({4.0f})};
  const std::vector<at::Tensor> now = {at::tensor({1.0f, 2.5f, -3.0f}), at::tensor({0.5f, 0.0f}),
                                       at::tensor({kInf})};
  const auto wanted = ChangesOf(now, before);
  const auto found = ChangesByDifference(now, before);
  ASSERT_EQ(found.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(found[i].changed, wanted[i].changed) << i;
    EXPECT_DOUBLE_EQ(found[i].change_squares, wanted[i].change_squares) << i;
    EXPECT_DOUBLE_EQ(found[i].now_squares, wanted[i].now_squares) << i;
  }
  EXPECT_EQ(found[0].changed, 2);
  EXPECT_EQ(found[1].changed, 1) << "a subnormal step is a step";
  EXPECT_TRUE(std::isinf(found[2].change_squares));
}

TEST(TensorViewsTest, CorruptionReachesTensorsThatAreNotContiguous) {
  const at::Tensor matrix = at::tensor({1.0f, 2.0f, 3.0f, 4.0f}).view({2, 2});
  at::Tensor column = matrix.select(1, 1);
  const auto report =
      Corrupt(column, {.kind = kernels::Corruption::Kind::kSetValue, .first = 1, .value = 9.0});
  EXPECT_EQ(report.changed, 1);
  EXPECT_EQ(matrix[1][1].item<float>(), 9);
  EXPECT_EQ(matrix[0][1].item<float>(), 2);
}

TEST(TensorSignalsTest, MicroBatchesCountTogether) {
  const auto values = Recorded({"act_norm{*}", "act_mean{*}", "act_max{*}"},
                               {at::tensor({3.0f}), at::tensor({-4.0f})});
  EXPECT_EQ(values.at("act_norm{m.0}"), 5);
  EXPECT_EQ(values.at("act_mean{m.0}"), -0.5);
  EXPECT_EQ(values.at("act_max{m.0}"), 4);
}

TEST(TensorSignalsTest, UnitSpreadIsTheLargestDifferenceWithinARow) {
  const at::Tensor rows = at::tensor({1.0f, 1.5f, 1.0f, -7.0f, -7.0f, -7.25f}).view({2, 3});
  EXPECT_EQ(Recorded({"act_unit_spread{*}"}, {rows}).at("act_unit_spread{m.0}"), 0.5);
  const at::Tensor alike = at::tensor({1.0f, 1.0f, -7.0f, -7.0f}).view({2, 2});
  EXPECT_EQ(Recorded({"act_unit_spread{*}"}, {alike}).at("act_unit_spread{m.0}"), 0);
}

TEST(TensorSignalsTest, WithoutAGlobAllTensorsCountTogether) {
  EXPECT_EQ(Recorded({"act_max"}, {at::tensor({3.0f})}),
            (std::map<std::string, double>{{"act_max", 3.0}}));
}

TEST(TensorSignalsTest, OnlyWhatIsAskedIsActive) {
  const auto active = [](const char* family, const std::vector<std::string>& record) {
    const AskedSignals asked(record);
    return FamilyRecorder(family, asked).active();
  };
  EXPECT_FALSE(active("act", {"loss", "grad_norm", "grad_max{*}", "param_digest"}));
  EXPECT_TRUE(active("act", {"act_max{*}"}));
  EXPECT_TRUE(active("grad", {"grad_norm{*}"}));
  EXPECT_FALSE(active("grad", {"grad_norm"})) << "is there in any case";
  EXPECT_FALSE(active("update", {"update_norm{*}"})) << "the update is compared in any case";
  EXPECT_TRUE(active("update", {"update_max"}));
}

class KeepModel : public PartWrapper {
 public:
  explicit KeepModel(std::shared_ptr<Model>& kept) : kept_(kept) {}
  using PartWrapper::Wrap;
  std::shared_ptr<Model> Wrap(std::shared_ptr<Model> model) override { return kept_ = model; }

 private:
  std::shared_ptr<Model>& kept_;
};

TEST(StepSignalsTest, InputsAreEqualByTheirBytesAndCountOnceForEachLaterSample) {
  const at::Tensor inputs = at::tensor({1.0f, 2.0f, 1.0f, 2.0f, 1.0f, 3.0f, 1.0f, 2.0f});
  const at::Tensor ones = at::ones({4});
  EXPECT_EQ(EqualInputs({{0, 1, 2, 3}, inputs.view({4, 2}), ones, ones}), 2);
  EXPECT_EQ(EqualInputs({{0, 0, 2, 3}, inputs.view({4, 2}), ones, ones}), 1) << "one drawn twice";
  EXPECT_EQ(EqualInputs({{0, 1}, inputs.view({4, 2}), ones, ones}), std::nullopt) << "packed";
}

TEST(StepSignalsTest, TargetsAreMisplacedWhereTheyAreNotTheNextToken) {
  const at::Tensor inputs = at::tensor({1, 2, 3, 4, 5, 6}, at::kLong).view({2, 3});
  const at::Tensor targets = at::tensor({2, 9, 4, 5, 9, 7}, at::kLong).view({2, 3});
  at::Tensor weights = at::ones({2, 3});
  EXPECT_EQ(MisplacedTargets({{0, 1}, inputs, targets, weights}), 2);
  weights[1][1] = 0;
  EXPECT_EQ(MisplacedTargets({{0, 1}, inputs, targets, weights}), 1);
  const at::Tensor features = at::ones({2, 3});
  EXPECT_EQ(MisplacedTargets({{0, 1}, features, targets, weights}), std::nullopt);
}

TEST(TelemetryTest, ARunThatNobodyAsksAboutHasNoHookAndOnlyTheUsualSignals) {
  std::shared_ptr<Model> model;
  const auto keep = [&] { return std::make_unique<KeepModel>(model); };
  const Outcome plain = RunOnce(Mlp(), {"loss", "grad_norm"}, keep);
  EXPECT_FALSE(model->was_hooked());
  for (const auto& [key, series] : plain.trace.series) {
    EXPECT_EQ(key.first.find('{'), std::string::npos) << key.first;
    EXPECT_FALSE(key.first.starts_with("act_")) << key.first;
  }
  const Outcome asked = RunOnce(Mlp(), {"act_max{head}"}, keep);
  EXPECT_TRUE(model->was_hooked());
  EXPECT_EQ(asked.Values("act_max{head}").size(), 20u);
  EXPECT_EQ(asked.Last("param_digest"), plain.Last("param_digest"));
}

TEST(TelemetryTest, FamiliesOfARunAgreeWithEachOther) {
  const Outcome outcome =
      RunOnce(With(Gpt(), {{"accumulation", 2}}),
              {"grad_norm{*}", "grad_max{*}", "grad_max", "grad_nonfinite",
               "param_max{head.weight}", "param_norm{head.weight}", "param_std{head.weight}",
               "update_max{head.weight}", "update_norm{head.weight}", "act_nonfinite{*}",
               "act_zero_share{blocks.0.mlp.gelu}", "param_digest{head.*}", "param_digest"});
  double largest = 0;
  for (const auto& [key, series] : outcome.trace.series) {
    if (key.first.starts_with("grad_max{")) largest = std::max(largest, series.values[3]);
  }
  EXPECT_EQ(outcome.Values("grad_max")[3], largest);
  EXPECT_GT(largest, 0);
  EXPECT_LE(outcome.Last("update_max{head.weight}"), outcome.Last("update_norm{head.weight}"));
  EXPECT_LT(outcome.Last("param_std{head.weight}"), outcome.Last("param_max{head.weight}"));
  EXPECT_EQ(outcome.Last("grad_nonfinite"), 0);
  EXPECT_EQ(outcome.Values("act_nonfinite{loss}").size(), 12u);
  EXPECT_EQ(outcome.Values("param_digest{head.weight}").size(), 12u);
  EXPECT_NE(outcome.Values("param_digest{head.weight}")[0],
            outcome.Values("param_digest{head.weight}")[1]);
  EXPECT_EQ(outcome.Values("param_digest").size(), 12u);
  EXPECT_TRUE(outcome.Values("param_digest{embed.weight}").empty()) << "not asked for";
}

// An output that overflows while the loss stays finite: seen when activations are asked for.
TEST(TelemetryTest, AnOverflowThatTheLossDoesNotShowIsDiagnosedWhenAskedFor) {
  class Overflow : public PartWrapper, public ForwardHook {
   public:
    using PartWrapper::Wrap;
    std::shared_ptr<Model> Wrap(std::shared_ptr<Model> model) override {
      model->AddHook(*this);
      return model;
    }
    void OnOutput(const std::string& module, at::Tensor& output) override {
      if (module == "layers.0") output = output - kInf;  // the relu makes zeros of it
    }
  };
  const auto overflow = [] { return std::make_unique<Overflow>(); };
  EXPECT_TRUE(RunOnce(Mlp(), {}, overflow).EventsOf("first_nonfinite").empty());
  const Outcome asked = RunOnce(Mlp(), {"act_nonfinite{layers.*}"}, overflow);
  EXPECT_TRUE(std::isfinite(asked.Values("loss")[0]));
  EXPECT_EQ(asked.Values("act_nonfinite{layers.0}")[0], 8 * 64);
  ASSERT_EQ(asked.EventsOf("first_nonfinite").size(), 1u);
  EXPECT_EQ(asked.EventsOf("first_nonfinite")[0]["module"], "layers.0");
}

class Events : public EventSink {
 public:
  void Write(const std::string& name, Json fields) override {
    fields["name"] = name;
    all.push_back(std::move(fields));
  }
  std::vector<Json> all;
};

std::int64_t BytesIn(const std::string& folder) {
  std::int64_t bytes = 0;
  for (const auto& file : std::filesystem::recursive_directory_iterator(folder)) {
    if (file.is_regular_file()) bytes += file.file_size();
  }
  return bytes;
}

// A batch of 1 MB and 200 parameters.
struct Failure {
  Failure() {
    batches.push_back(
        {.ids = {17, 4}, .inputs = at::tensor({kNan}).expand({2, 131072}).contiguous()});
    for (int i = 0; i < 200; ++i)
      parameters.emplace_back("p" + std::to_string(i), at::tensor({1.0f}));
    gradients.resize(200);
  }
  void Save(EvidenceFolder& folder) {
    folder.Save({.step = 7,
                 .finding = {.stage = NonfiniteStage::kData, .module = "batch", .tensor = "inputs"},
                 .loss = kNan,
                 .lr = 0.5,
                 .batches = batches,
                 .parameters = parameters,
                 .gradients = gradients,
                 .rng = {{"rng.torch", at::tensor({1, 2, 3})}, {"rng.cuda", at::tensor({4, 5})}},
                 .state = state});
  }
  std::vector<Batch> batches;
  NamedTensors parameters;
  std::vector<kernels::TensorStats> gradients;
  StateDict state = {{"model.p0", at::tensor({6, 7})}};
};

TEST(EvidenceTest, KeepsBatchStatisticsAndGenerator) {
  ScratchFolder scratch;
  Events events;
  EvidenceFolder folder(
      {.path = scratch.File("evidence-rank0"), .rank = 1, .world_size = 2, .max_mb = 4}, events);
  EXPECT_TRUE(folder.is_open());
  Failure failure;
  failure.Save(folder);
  EXPECT_FALSE(folder.is_open());
  failure.Save(folder);
  ASSERT_EQ(events.all.size(), 1u) << "once";
  EXPECT_EQ(events.all[0]["left_out"], 0);
  EXPECT_EQ(events.all[0]["state"], true);
  EXPECT_EQ(events.all[0]["bytes"], BytesIn(scratch.File("evidence-rank0")));
  const Json step = Json::parse(std::ifstream(scratch.File("evidence-rank0/step.json")));
  EXPECT_EQ(step["samples"], Json({{17, 4}}));
  EXPECT_EQ(step["lr"], 0.5);
  EXPECT_EQ(step["loss"], "nan");
  EXPECT_EQ(step["parameters"].size(), 200u);
  EXPECT_EQ(step["parameters"]["p3"]["max"], 1.0);
  const StateDict tensors =
      FileCheckpointStore({.dir = scratch.File("evidence-rank0")}).Load(/*steps_done=*/7);
  EXPECT_TRUE(tensors.at("batch.0.inputs").isnan().all().item<bool>());
  EXPECT_EQ(tensors.at("rng.torch").numel(), 3);
  EXPECT_EQ(tensors.at("rng.cuda").numel(), 2);
  const std::string state = scratch.File("evidence-rank0/state");
  EXPECT_TRUE(at::equal(FileCheckpointStore({.dir = state, .rank = 1, .world_size = 2})
                            .Load(/*steps_done=*/7)
                            .at("model.p0"),
                        failure.state.at("model.p0")));
  EXPECT_TRUE(FileCheckpointStore({.dir = state, .rank = 1, .world_size = 2}).List().empty())
      << "rank 0's file belongs to it";
}

TEST(EvidenceTest, StaysUnderItsBound) {
  for (const double max_mb : {0.9, 0.05, 0.01, 0.003}) {
    SCOPED_TRACE(max_mb);
    ScratchFolder scratch;
    Events events;
    EvidenceFolder folder({.path = scratch.File("evidence"), .max_mb = max_mb}, events);
    Failure().Save(folder);
    ASSERT_EQ(events.all.size(), 1u);
    EXPECT_LE(BytesIn(scratch.File("evidence")), max_mb * 1e6);
    EXPECT_GT(events.all[0]["left_out"], 0);
    EXPECT_EQ(events.all[0]["state"], std::filesystem::exists(scratch.File("evidence/state")));
    const Json step = Json::parse(std::ifstream(scratch.File("evidence/step.json")));
    EXPECT_FALSE(step["left_out"].empty());
    EXPECT_EQ(step["samples"], Json({{17, 4}}));
  }
}

TEST(EvidenceTest, CanBeSwitchedOff) {
  ScratchFolder scratch;
  Events events;
  EvidenceFolder folder({.path = scratch.File("evidence"), .max_mb = 0}, events);
  EXPECT_FALSE(folder.is_open());
  Failure().Save(folder);
  EXPECT_TRUE(events.all.empty());
  EXPECT_FALSE(std::filesystem::exists(scratch.File("evidence")));
}

}  // namespace
}  // namespace trainwreck
