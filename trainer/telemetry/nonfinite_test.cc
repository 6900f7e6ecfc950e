// Forward hooks, and what a run says of its first number that is not finite.
#include "trainer/telemetry/nonfinite.h"

#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/sqrt.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "trainer/build.h"
#include "trainer/data/loader.h"
#include "trainer/models/model.h"
#include "trainer/test_run.h"

namespace trainwreck {
namespace {

class Recorder : public ForwardHook {
 public:
  void OnOutput(const std::string& module, at::Tensor& output) override { seen.push_back(module); }
  std::vector<std::string> seen;
};

Batch SmallBatch(const TrainingRecipe& recipe) {
  const auto data = BuildDataset(recipe, /*held_out=*/false, /*seed=*/1);
  return Collate({data->Get(0), data->Get(1)});
}

TEST(ForwardHookTest, ModulesAnnounceInForwardOrder) {
  TrainingRecipe recipe = ParseRecipe(With(Gpt(), {{"model.layers", 1}}));
  const Batch batch = SmallBatch(recipe);
  const auto model = BuildModel(recipe, *BuildDataset(recipe, false, 1), 1);
  Recorder recorder;
  {
    HookScope scope(*model, &recorder);
    model->Loss(batch);
  }
  EXPECT_THAT(recorder.seen,
              testing::ElementsAre("embed", "blocks.0.norm1", "blocks.0.attn.qkv",
                                   "blocks.0.attn.mix", "blocks.0.attn.proj", "blocks.0.norm2",
                                   "blocks.0.mlp.fc", "blocks.0.mlp.gelu", "blocks.0.mlp.proj",
                                   "blocks.0", "norm", "head", "loss"));
  model->Loss(batch);
  EXPECT_EQ(recorder.seen.size(), 13u) << "the scope is over";
}

TEST(ForwardHookTest, AnOutputCanBeReplaced) {
  class Silencer : public ForwardHook {
    void OnOutput(const std::string& module, at::Tensor& output) override {
      if (module == "head") output = at::zeros_like(output);
    }
  };
  const TrainingRecipe recipe = ParseRecipe(Mlp());
  const auto model = BuildModel(recipe, *BuildDataset(recipe, false, 1), 1);
  Silencer silencer;
  HookScope scope(*model, &silencer);
  EXPECT_NEAR(model->Loss(SmallBatch(recipe)).item<double>(), std::log(10.0), 1e-6);
}

TEST(ForwardHookTest, NoHooksUnlessAsked) {
  const TrainingRecipe recipe = ParseRecipe(Mlp());
  const auto model = BuildModel(recipe, *BuildDataset(recipe, false, 1), 1);
  { HookScope scope(*model, nullptr); }
  EXPECT_FALSE(model->was_hooked());
}

using Change = std::function<void(int step, const std::string& module, at::Tensor& output)>;

// Changes outputs of the model, as an injector might, and leaves out updates with a gradient that
// is not finite, so that the run goes on.
class Meddler : public PartWrapper, public ForwardHook {
 public:
  explicit Meddler(Change change, bool guard = true) : change_(std::move(change)), guard_(guard) {}
  using PartWrapper::Wrap;

  std::shared_ptr<Model> Wrap(std::shared_ptr<Model> model) override {
    model->AddHook(*this);
    model_ = model;
    return model;
  }
  std::unique_ptr<Optimizer> Wrap(std::unique_ptr<Optimizer> optimizer) override {
    if (!guard_) return optimizer;
    return std::make_unique<Guarded>(std::move(optimizer), *model_);
  }
  std::unique_ptr<LoopHook> MakeHook() override { return std::make_unique<Counter>(step_); }
  void OnOutput(const std::string& module, at::Tensor& output) override {
    change_(step_, module, output);
  }

 private:
  class Counter : public LoopHook {
   public:
    explicit Counter(int& step) : step_(step) {}
    void OnStepBegin(int step) override { step_ = step; }

   private:
    int& step_;
  };
  class Guarded : public Optimizer {
   public:
    Guarded(std::unique_ptr<Optimizer> inner, Model& model)
        : inner_(std::move(inner)), model_(model) {}
    void ZeroGrad() override { inner_->ZeroGrad(); }
    void Step(double lr) override {
      for (const auto& parameter : model_.parameters()) {
        if (!parameter.grad().isfinite().all().item<bool>()) return;
      }
      inner_->Step(lr);
    }
    void Save(StateDict& state) const override { inner_->Save(state); }
    void Load(const StateDict& state) override { inner_->Load(state); }

   private:
    std::unique_ptr<Optimizer> inner_;
    Model& model_;
  };

  Change change_;
  bool guard_;
  int step_ = 0;
  std::shared_ptr<Model> model_;
};

Outcome RunWith(const Recipe& recipe, const Change& change, bool guard = true) {
  return RunOnce(recipe, {"param_digest"},
                 [=] { return std::make_unique<Meddler>(change, guard); });
}

// The one event, without what every event has.
Json FirstNonfinite(const Outcome& outcome) {
  const auto events = outcome.EventsOf("first_nonfinite");
  EXPECT_EQ(events.size(), 1u);
  if (events.empty()) return nullptr;
  Json event = events[0];
  for (const char* key : {"t", "event", "time", "rank"}) event.erase(key);
  return event;
}

void Overflow(int step, const std::string& module, at::Tensor& output) {
  if (step == 4 && module == "blocks.1.mlp.fc") output = output * 1e38 * 1e38;
}

// Forward finite, backward not: sqrt'(0) is infinite, and times zero NaN.
void SqrtOfZero(int step, const std::string& module, at::Tensor& output) {
  if (step == 4 && module == "layers.relu0") output = output + at::sqrt(output * 0);
}

TEST(NonfiniteTest, NamesTheFirstModuleThatOverflows) {
  const Json event = FirstNonfinite(RunWith(Gpt(), Overflow));
  EXPECT_EQ(event["step"], 4);
  EXPECT_EQ(event["stage"], "forward");
  EXPECT_EQ(event["module"], "blocks.1.mlp.fc");
  EXPECT_EQ(event["tensor"], "output");
  EXPECT_EQ(event["kind"], "inf");
  EXPECT_EQ(event["elements"], 4 * 32 * 4 * 32);
  EXPECT_GT(event["count"], 0);
}

TEST(NonfiniteTest, NamesTheBackwardOpWhereTheForwardPassWasFinite) {
  const Outcome outcome = RunWith(Mlp(), SqrtOfZero);
  EXPECT_TRUE(std::isfinite(outcome.Values("loss")[4]));
  EXPECT_FALSE(std::isfinite(outcome.Values("grad_norm")[4]));
  Json event = FirstNonfinite(outcome);
  // LibTorch numbers the variants of an op.
  EXPECT_THAT(event["backward_op"].get<std::string>(), testing::StartsWith("MulBackward"));
  event.erase("backward_op");
  EXPECT_EQ(event, Json({{"forward_stack", {"layers.relu0", "aten::mul"}},
                         {"step", 4},
                         {"stage", "backward"},
                         {"module", "layers.0"},
                         {"tensor", "layers.0.bias"},
                         {"kind", "nan"},
                         {"count", 64},
                         {"elements", 64}}));
}

// The calls are those of the micro-batch and of the layer at fault, whose ops others have, too.
TEST(NonfiniteTest, NamesTheForwardPassesModuleAndCalls) {
  const auto change = [](int step, const std::string& module, at::Tensor& output) {
    if (step != 4 || module != "blocks.1.mlp.gelu") return;
    // Finite itself; its derivative is 0 times infinity.
    output = output + at::linear(at::sqrt(output * 0), at::zeros({128, 128}));
  };
  for (const bool recomputes : {false, true}) {
    const Recipe recipe =
        With(Gpt(), {{"accumulation", 2}, {"model.activation_checkpointing", recomputes}});
    const Json event = FirstNonfinite(RunWith(recipe, change));
    EXPECT_EQ(event["stage"], "backward");
    EXPECT_THAT(event["backward_op"].get<std::string>(), testing::StartsWith("SqrtBackward"));
    EXPECT_EQ(event["forward_stack"], Json({"blocks.1.mlp.gelu", "aten::sqrt"})) << recomputes;
  }
}

// Where a sum has no fixed order, passes made again might not meet what is to be explained.
TEST(NonfiniteTest, PassesAreMadeAgainInAFixedOrder) {
  std::vector<bool> at_step_4;
  const auto change = [&](int step, const std::string& module, at::Tensor& output) {
    if (step == 4 && module == "layers.0") {
      at_step_4.push_back(at::globalContext().deterministicAlgorithms());
    }
    SqrtOfZero(step, module, output);
  };
  RunWith(Mlp(), change);
  EXPECT_THAT(at_step_4, testing::ElementsAre(false, true, true));
  EXPECT_FALSE(at::globalContext().deterministicAlgorithms());
  EXPECT_TRUE(at::globalContext().deterministicFillUninitializedMemory());
}

// Anomaly mode begins with the first op of the backward pass, behind whatever changed the loss.
TEST(NonfiniteTest, NamesTheBackwardOpOfWhatChangedTheLoss) {
  const auto change = [](int step, const std::string& module, at::Tensor& output) {
    if (step == 4 && module == "loss") output = output + at::sqrt(output * 0);
  };
  const Json event = FirstNonfinite(RunWith(Mlp(), change));
  EXPECT_EQ(event["stage"], "backward");
  EXPECT_THAT(event["backward_op"].get<std::string>(), testing::StartsWith("MulBackward"));
}

TEST(NonfiniteTest, ABatchIsNamedBeforeTheModulesItSpoils) {
  class NanInput : public PartWrapper {
   public:
    using PartWrapper::Wrap;
    std::unique_ptr<Dataset> Wrap(std::unique_ptr<Dataset> data) override {
      return std::make_unique<Spoiled>(std::move(data));
    }

   private:
    class Spoiled : public Dataset {
     public:
      explicit Spoiled(std::unique_ptr<Dataset> inner) : inner_(std::move(inner)) {}
      std::int64_t size() const override { return inner_->size(); }
      std::int64_t input_limit() const override { return inner_->input_limit(); }
      std::int64_t target_limit() const override { return inner_->target_limit(); }
      Sample Get(std::int64_t id) const override {
        Sample sample = inner_->Get(id);
        sample.input = sample.input.clone();
        if (id == 5) sample.input[2] = std::numeric_limits<float>::quiet_NaN();
        return sample;
      }

     private:
      std::unique_ptr<Dataset> inner_;
    };
  };
  const Json event =
      FirstNonfinite(RunOnce(Mlp(), {}, [] { return std::make_unique<NanInput>(); }));
  EXPECT_EQ(event["stage"], "data");
  EXPECT_EQ(event["module"], "batch");
  EXPECT_EQ(event["tensor"], "inputs");
  EXPECT_EQ(event["count"], 1);
  EXPECT_THAT(event["backward_op"].get<std::string>(), testing::EndsWith("Backward0"));
}

// Writes an infinity into a tensor at step 3: into a gradient after the backward pass, or into a
// parameter after the update.
class Spoil : public PartWrapper {
 public:
  enum class What { kGradient, kParameter };
  explicit Spoil(What what) : what_(what) {}
  using PartWrapper::Wrap;
  std::shared_ptr<Model> Wrap(std::shared_ptr<Model> model) override { return model_ = model; }
  std::unique_ptr<LoopHook> MakeHook() override { return std::make_unique<Hook>(*this); }

 private:
  class Hook : public LoopHook {
   public:
    explicit Hook(Spoil& spoil) : spoil_(spoil) {}
    void OnBackwardDone(int step) override {
      if (step == 3 && spoil_.what_ == What::kGradient) Fill(Bias().mutable_grad());
    }
    void OnStepEnd(int step) override {
      if (step == 3 && spoil_.what_ == What::kParameter) Fill(Bias());
    }

   private:
    at::Tensor Bias() { return spoil_.model_->named_parameters()["layers.1.bias"]; }
    static void Fill(at::Tensor tensor) {
      at::NoGradGuard no_grad;
      tensor.fill_(std::numeric_limits<float>::infinity());
    }
    Spoil& spoil_;
  };
  What what_;
  std::shared_ptr<Model> model_;
};

TEST(NonfiniteTest, AParameterIsNamedBeforeTheModulesItSpoils) {
  const Json event = FirstNonfinite(
      RunOnce(Mlp(), {}, [] { return std::make_unique<Spoil>(Spoil::What::kParameter); }));
  EXPECT_EQ(event["step"], 4);
  EXPECT_EQ(event["stage"], "parameters");
  EXPECT_EQ(event["module"], "layers.1");
  EXPECT_EQ(event["tensor"], "layers.1.bias");
  EXPECT_EQ(event["kind"], "inf");
}

TEST(NonfiniteTest, GradientsSpoiltAfterTheBackwardPassAreToldApart) {
  const Json event = FirstNonfinite(
      RunOnce(Mlp(), {}, [] { return std::make_unique<Spoil>(Spoil::What::kGradient); }));
  EXPECT_EQ(event["step"], 3);
  EXPECT_EQ(event["stage"], "after_backward");
  EXPECT_EQ(event["tensor"], "layers.1.bias");
  EXPECT_EQ(event["kind"], "inf");
}

// An overflow of gradients that the run gets over, as with a loss scaler, must not hide that of the
// forward pass that comes later.
TEST(NonfiniteTest, OneEventForTheBackwardPassAndOneForTheForwardPass) {
  const Outcome outcome =
      RunWith(Mlp(), [](int step, const std::string& module, at::Tensor& output) {
        if (step == 9 && module == "layers.1") output = output / 0.0;
        SqrtOfZero(step, module, output);
        SqrtOfZero(step - 1, module, output);
      });
  const auto events = outcome.EventsOf("first_nonfinite");
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0]["step"], 4);
  EXPECT_EQ(events[0]["stage"], "backward");
  EXPECT_EQ(events[1]["step"], 9);
  EXPECT_EQ(events[1]["stage"], "forward");
  EXPECT_EQ(events[1]["module"], "layers.1");
}

TEST(NonfiniteTest, TheDiagnosisChangesNoBitOfTheRun) {
  // Dropout draws from the generator in each pass, so a pass too many shows.
  const auto meddle = [](int step, const std::string& module, at::Tensor& output) {
    if (module == "blocks.0.mlp.gelu") output = at::dropout(output, 0.2, /*train=*/true);
    Overflow(step, module, output);
  };
  const Recipe recipe = With(Gpt(), {{"accumulation", 2}});
  const Outcome with = RunWith(recipe, meddle);
  const Outcome without = RunWith(With(recipe, {{"diagnose.nonfinite", false}}), meddle);
  EXPECT_EQ(with.EventsOf("first_nonfinite").size(), 1u);
  EXPECT_EQ(without.EventsOf("first_nonfinite").size(), 0u);
  ASSERT_TRUE(std::isfinite(with.Last("loss")));
  // NaN is not equal to itself; after the failing step all is finite.
  for (const char* signal : {"loss", "grad_norm", "param_digest"}) {
    auto a = with.Values(signal), b = without.Values(signal);
    EXPECT_TRUE(std::equal(a.begin() + 5, a.end(), b.begin() + 5, b.end())) << signal;
  }
}

TEST(NonfiniteTest, AFiniteRunIsNeverHooked) {
  class Keep : public PartWrapper {
   public:
    explicit Keep(std::shared_ptr<Model>& kept) : kept_(kept) {}
    using PartWrapper::Wrap;
    std::shared_ptr<Model> Wrap(std::shared_ptr<Model> model) override { return kept_ = model; }

   private:
    std::shared_ptr<Model>& kept_;
  };
  std::shared_ptr<Model> model;
  const auto keep = [&] { return std::make_unique<Keep>(model); };
  EXPECT_TRUE(RunOnce(Mlp(), {}, keep).EventsOf("first_nonfinite").empty());
  EXPECT_FALSE(model->was_hooked());
  EXPECT_FALSE(
      RunOnce(With(Mlp(), {{"optimizer.lr", 1e38}}), {}, keep).EventsOf("first_nonfinite").empty());
  EXPECT_TRUE(model->was_hooked());
}

}  // namespace
}  // namespace trainwreck
