// Whole runs of the trainer against a training loop in double: the same initial weights and the
// same samples, and then the formulas alone. Loss, norm, rate and every parameter at every step;
// micro-batches with unequal numbers of targets that count; runs that were stopped and resumed.
#include <gtest/gtest.h>

#include <cmath>

#include "harness/protocol/trace_reader.h"
#include "trainer/build.h"
#include "trainer/models/model.h"
#include "trainer/ranks/forked_ranks.h"
#include "trainer/references/models.h"
#include "trainer/references/tensors.h"
#include "trainer/references/updates.h"

namespace trainwreck {
namespace {

// In a step; the roundings of all steps before are carried on.
using reference::kInFp32;
using reference::Parameters;

// Weight of the target at `position` of a sample.
using TargetWeight = double (*)(std::int64_t id, std::int64_t position);

// What a run started with, saw and made of it.
struct Recording {
  TargetWeight weight;
  Parameters initial;
  std::map<std::int64_t, Sample> samples;
  std::vector<std::vector<std::int64_t>> ids;  // of each step, all micro-batches
  std::vector<Parameters> after;               // of each step
};

class WeightedData : public DatasetAround {
 public:
  WeightedData(std::unique_ptr<Dataset> inner, Recording& recording)
      : DatasetAround(std::move(inner)), recording_(recording) {}
  Sample Get(std::int64_t id) const override {
    Sample sample = inner().Get(id);
    sample.weight = sample.weight.clone();
    auto* weights = sample.weight.mutable_data_ptr<float>();
    for (std::int64_t t = 0; t < sample.weight.numel(); ++t) {
      weights[t] = static_cast<float>(recording_.weight(id, t));
    }
    recording_.samples[id] = sample;
    return sample;
  }

 private:
  Recording& recording_;
};

class RecordedSampler : public Sampler {
 public:
  RecordedSampler(std::unique_ptr<Sampler> inner, Recording& recording)
      : inner_(std::move(inner)), recording_(recording) {}
  std::vector<std::int64_t> Next() override {
    std::vector<std::int64_t> ids = inner_->Next();
    std::vector<std::int64_t>& all = recording_.ids.back();
    all.insert(all.end(), ids.begin(), ids.end());
    return ids;
  }
  bool is_shadow() const override { return inner_->is_shadow(); }
  std::int64_t epoch() const override { return inner_->epoch(); }
  void Save(StateDict& state) const override { inner_->Save(state); }
  void Load(const StateDict& state) override { inner_->Load(state); }

 private:
  std::unique_ptr<Sampler> inner_;
  Recording& recording_;
};

class Recorder : public PartWrapper {
 public:
  explicit Recorder(Recording& recording) : recording_(recording) {}
  using PartWrapper::Wrap;
  std::unique_ptr<Dataset> Wrap(std::unique_ptr<Dataset> part) override {
    return std::make_unique<WeightedData>(std::move(part), recording_);
  }
  std::unique_ptr<Sampler> Wrap(std::unique_ptr<Sampler> part) override {
    return std::make_unique<RecordedSampler>(std::move(part), recording_);
  }
  std::shared_ptr<Model> Wrap(std::shared_ptr<Model> part) override {
    model_ = part;
    return part;
  }
  std::unique_ptr<LoopHook> MakeHook() override {
    return std::make_unique<Hook>(recording_, ParametersOf(*model_));
  }

 private:
  class Hook : public LoopHook {
   public:
    Hook(Recording& recording, NamedTensors parameters)
        : recording_(recording), parameters_(std::move(parameters)) {}
    void OnStart() override {
      if (recording_.after.empty()) recording_.initial = reference::ValuesOf(parameters_);
    }
    void OnStepBegin(int) override { recording_.ids.emplace_back(); }
    void OnStepEnd(int) override { recording_.after.push_back(reference::ValuesOf(parameters_)); }

   private:
    Recording& recording_;
    NamedTensors parameters_;
  };

  Recording& recording_;
  std::shared_ptr<Model> model_;
};

// With `stop`, a second process' worth of parts goes on from the checkpoint of that many steps.
RunTrace Train(const Recipe& recipe, std::optional<int> stop, Recording& recording) {
  ScratchFolder folder;
  Plan plan;
  plan.run = "test";
  plan.seed = 23;
  plan.recipe = recipe;
  plan.checkpoint_dir = folder.File("checkpoints");
  plan.until = stop;
  const auto run = [&] {
    EXPECT_EQ(Train(plan, 0, 1, folder.path(),
                    [&](const Plan&, int, int, const Clock&, EventSink&) {
                      Wrappers wrappers;
                      wrappers.push_back(std::make_unique<Recorder>(recording));
                      return wrappers;
                    }),
              0);
  };
  run();
  if (stop) {
    plan.until = std::nullopt;
    plan.resume = true;
    plan.attempt = 1;
    run();
  }
  TraceReader reader(folder.path(), 1, 1000);
  reader.Poll(/*last=*/true);
  EXPECT_TRUE(reader.problems().empty()) << reader.problems().front();
  return reader.trace();
}

std::vector<double> ValuesOf(const RunTrace& trace, const std::string& signal) {
  const Series* series = trace.Find(signal, 0);
  return series == nullptr ? std::vector<double>() : series->values;
}

// All samples of a step as one batch.
std::vector<reference::Example> ExamplesOf(const Recording& recording, std::size_t step) {
  std::vector<reference::Example> examples;
  for (const std::int64_t id : recording.ids[step]) {
    const Sample& sample = recording.samples.at(id);
    const bool tokens = sample.target.dim() > 0;
    if (tokens || examples.empty()) examples.emplace_back();
    reference::Example& example = examples.back();
    const reference::Matrix weights = reference::MatrixOf(sample.weight);
    const reference::Matrix targets = reference::MatrixOf(sample.target);
    const reference::Matrix input = reference::MatrixOf(sample.input);
    for (std::size_t t = 0; t < targets.values.size(); ++t) {
      example.targets.classes.push_back(static_cast<int>(targets.values[t]));
      example.targets.weights.push_back(weights.values[t]);
    }
    if (tokens) {
      for (const double token : input.values) example.tokens.push_back(static_cast<int>(token));
    } else {
      reference::Matrix& rows = example.features;
      rows.cols = input.cols;
      rows.values.insert(rows.values.end(), input.values.begin(), input.values.end());
      ++rows.rows;
    }
  }
  return examples;
}

struct Step {
  double loss = 0, norm = 0, rate = 0;
  bool clipped = false;
};

// One step in double: the mean over all targets of the step, its gradient, clipping, the update.
class ReferenceRun {
 public:
  ReferenceRun(const TrainingRecipe& recipe, const Recording& recording, std::optional<int> stop)
      : recipe_(recipe), recording_(recording), stop_(stop), values_(recording.initial) {
    for (const auto& [name, matrix] : values_) elements_[name].resize(matrix.values.size());
  }

  const Parameters& values() const { return values_; }

  Step Next() {
    const auto examples = ExamplesOf(recording_, static_cast<std::size_t>(step_));
    const auto loss = [&] { return reference::Loss(recipe_.model, values_, examples); };
    Step step{.loss = loss()};
    Parameters gradient = reference::Gradient(loss, values_);
    std::vector<double> all;
    const std::string& trainable = recipe_.model.trainable;  // "*" or "PREFIX*"
    const std::string prefix = trainable.substr(0, trainable.find('*'));
    std::erase_if(gradient, [&](const auto& item) { return !item.first.starts_with(prefix); });
    for (const auto& [name, matrix] : gradient) {
      all.insert(all.end(), matrix.values.begin(), matrix.values.end());
    }
    step.norm = reference::Norm(all);
    const OptimizerRecipe& rule = recipe_.optimizer;
    const double factor = rule.clip_norm > 0 ? reference::ClipFactor(step.norm, rule.clip_norm) : 1;
    step.clipped = factor < 1;
    step.rate = reference::Rate(recipe_.schedule, rule.lr, recipe_.steps, step_);
    if (stop_ && step_ >= *stop_) {
      step.rate = reference::RewarmedRate(step.rate, step_, *stop_, recipe_.resume_rewarm_steps);
    }
    for (const auto& [name, matrix] : gradient) {
      for (std::size_t i = 0; i < matrix.values.size(); ++i) {
        Update(step.rate, rule.no_decay.empty() || !name.ends_with(".bias"),
               factor * matrix.values[i], elements_[name][i], values_.at(name).values[i]);
      }
    }
    ++step_;
    return step;
  }

 private:
  void Update(double rate, bool decays, double gradient, reference::Element& element,
              double& value) const {
    OptimizerRecipe rule = recipe_.optimizer;
    if (!decays) rule.weight_decay = 0;
    element.value = value;
    if (rule.kind == OptimizerKind::kSgd) {
      reference::SgdStep(rule, rate, gradient, element);
    } else {
      reference::AdamWStep(rule, rate, step_ + 1, gradient, element);
    }
    value = element.value;
  }

  const TrainingRecipe& recipe_;
  const Recording& recording_;
  std::optional<int> stop_;
  Parameters values_;
  std::map<std::string, std::vector<reference::Element>> elements_;
  std::int64_t step_ = 0;
};

struct RunCase {
  std::string name;
  Recipe recipe;
  TargetWeight weight;
  std::optional<int> stop;
};

Recipe With(Recipe recipe, const Recipe& changes) {
  for (const auto& [key, value] : changes) recipe[key] = value;
  return recipe;
}

// Smooth activations: difference quotients need derivatives.
Recipe Mlp() {
  return {{"steps", 20},          {"data.samples", 8},
          {"data.batch_size", 8}, {"data.features", 3},
          {"data.classes", 3},    {"model.layers", 2},
          {"model.width", 4},     {"eval.at_epoch_end", false},
          {"optimizer.lr", 0.1},  {"model.activation", "tanh"}};
}

Recipe Tokens(const std::string& kind) {
  return {{"steps", 12},
          {"data.kind", "markov"},
          {"data.samples", 8},
          {"data.batch_size", 2},
          {"data.vocab", 8},
          {"data.seq_len", 5},
          {"model.kind", kind},
          {"model.layers", 1},
          {"model.width", 4},
          {"model.heads", 2},
          {"model.activation", "tanh"},
          {"eval.at_epoch_end", false},
          {"optimizer.lr", 0.1}};
}

double Alike(std::int64_t, std::int64_t) { return 1; }
// A quarter, 1, 2 or 3 for each sample.
double OfSample(std::int64_t id, std::int64_t) { return id % 4 == 0 ? 0.25 : id % 4; }
// The first one, two, three ... targets count.
double Masked(std::int64_t id, std::int64_t position) { return position <= id % 5 ? 1 : 0; }
// Samples without any target among them: whole micro-batches have none.
double SomeEmpty(std::int64_t id, std::int64_t) { return id % 3 == 0 ? 1 : 0; }

std::vector<RunCase> Runs() {
  // Micro-batches of 3, 3 and 2 samples.
  const Recipe accumulated = With(Mlp(), {{"data.batch_size", 3}, {"accumulation", 3}});
  // Steps of 3 and of 2 micro-batches in turn: an epoch has 5.
  const Recipe uneven = {{"data.samples", 10}, {"accumulation", 3}};
  const Recipe adamw = {{"optimizer.kind", "adamw"},
                        {"optimizer.eps", 1e-3},
                        {"optimizer.weight_decay", 0.1},
                        {"optimizer.lr", 0.02}};
  const Recipe cosine = {{"schedule.kind", "warmup_cosine"}, {"schedule.warmup_steps", 5}};
  return {
      {"sgd", Mlp(), Alike},
      {"weights", With(accumulated, {{"optimizer.weight_decay", 0.05}}), OfSample},
      {"adamw, clipped, cosine, resumed",
       With(With(With(accumulated, adamw), cosine), {{"optimizer.clip_norm", 0.3}}), OfSample, 9},
      {"sgd, clipped, restart, resumed, rewarmed",
       With(With(accumulated, cosine), {{"optimizer.clip_norm", 0.2},
                                        {"schedule.restart_step", 12},
                                        {"schedule.restart_ratio", 0.5},
                                        {"resume.rewarm_steps", 4}}),
       OfSample, 10},
      {"biases do not decay, resumed",
       With(With(accumulated, adamw), {{"optimizer.no_decay", "*.bias"}}), Alike, 9},
      {"biases do not decay, sgd",
       With(accumulated, {{"optimizer.no_decay", "*.bias"}, {"optimizer.weight_decay", 0.2}}),
       Alike},
      {"linear, scaled",
       With(accumulated, {{"schedule.kind", "warmup_linear"},
                          {"schedule.warmup_steps", 3},
                          {"scaler.kind", "static"},
                          {"scaler.init_scale", 1000}}),
       OfSample},
      {"one layer trains", With(accumulated, {{"model.trainable", "head.*"}}), Alike},
      {"masked tokens", With(Tokens("rnn"), uneven), Masked, 5},
      {"masked tokens, adamw", With(With(Tokens("rnn"), uneven), adamw), Masked},
      {"masked tokens with z-loss", With(With(Tokens("rnn"), uneven), {{"loss.z_loss", 0.1}}),
       Masked},
      {"micro-batches without a target", With(Tokens("rnn"), {{"accumulation", 4}}), SomeEmpty},
      {"micro-batches and steps without a target",
       With(Tokens("rnn"),
            {{"data.batch_size", 1}, {"accumulation", 2}, {"loss.guard_denominator", true}}),
       SomeEmpty},  // three of eight samples have targets: one step in four has none
      {"mean of each sequence",
       With(With(Tokens("rnn"), uneven), {{"loss.per_sequence", true}, {"data.samples", 9}}),
       Masked},
      {"mean of each sequence, some empty",
       With(Tokens("rnn"),
            {{"accumulation", 2}, {"loss.per_sequence", true}, {"loss.guard_denominator", true}}),
       SomeEmpty},
      {"gpt", With(With(Tokens("gpt"), uneven), {{"steps", 6}, {"loss.label_smoothing", 0.1}}),
       Masked, 3},
      {"gpt with one table, adamw",
       With(With(With(Tokens("gpt"), uneven), adamw),
            {{"steps", 6}, {"model.tied_embeddings", true}}),
       Masked, 3},
  };
}

void Check(const RunCase& run) {
  const TrainingRecipe recipe = ParseRecipe(run.recipe);
  Recording recording{.weight = run.weight};
  const RunTrace trace = Train(run.recipe, run.stop, recording);
  const auto losses = ValuesOf(trace, "loss"), norms = ValuesOf(trace, "grad_norm");
  const auto rates = ValuesOf(trace, "lr"), clipped = ValuesOf(trace, "clipped");
  const auto steps = static_cast<std::size_t>(recipe.steps);
  ASSERT_EQ(recording.after.size(), steps);
  ASSERT_EQ(losses.size(), steps);
  ReferenceRun truth(recipe, recording, run.stop);
  for (std::size_t step = 0; step < steps; ++step) {
    SCOPED_TRACE("step " + std::to_string(step));
    const double tolerance = kInFp32 * static_cast<double>(step + 1);
    const Step expected = truth.Next();
    ASSERT_NEAR(losses[step], expected.loss, tolerance * (1 + expected.loss));
    ASSERT_NEAR(norms[step], expected.norm, tolerance * (1 + expected.norm));
    ASSERT_NEAR(rates[step], expected.rate, 1e-15);
    ASSERT_EQ(clipped[step], expected.clipped);
    ASSERT_LT(reference::Apart(recording.after[step], truth.values()), tolerance);
  }
}

TEST(RunReferenceTest, RunsEqualALoopInDouble) {
  for (const RunCase& run : Runs()) {
    SCOPED_TRACE(run.name);
    Check(run);
  }
}

// A power of two moves the exponents alone, so where nothing overflows no bit of the run changes.
TEST(RunReferenceTest, AScaleThatIsAPowerOfTwoChangesNoBit) {
  const Recipe clipped = {{"optimizer.clip_norm", 0.3}, {"accumulation", 3}};
  const Recipe adamw = {{"optimizer.kind", "adamw"}, {"optimizer.lr", 0.01}};
  for (const Recipe& recipe : {With(Mlp(), clipped), With(Tokens("gpt"), adamw),
                               With(With(Tokens("gpt"), clipped), {{"precision", "bf16"}})}) {
    Recording plain{.weight = Masked};
    Train(recipe, std::nullopt, plain);
    for (const Recipe& scaler : {Recipe{{"scaler.kind", "static"}, {"scaler.init_scale", 0x1p-10}},
                                 Recipe{{"scaler.kind", "static"}, {"scaler.init_scale", 65536}},
                                 Recipe{{"scaler.kind", "dynamic"},
                                        {"scaler.init_scale", 8},
                                        {"scaler.growth_interval", 2}}}) {
      Recording scaled{.weight = Masked};
      Train(With(recipe, scaler), std::nullopt, scaled);
      ASSERT_EQ(scaled.after.size(), plain.after.size());
      for (std::size_t step = 0; step < plain.after.size(); ++step) {
        ASSERT_EQ(reference::Apart(scaled.after[step], plain.after[step]), 0) << step;
      }
    }
  }
}

// A step that overflowed changes nothing but the scale: the parameters stay, and the next update
// has the rate that this one would have had.
TEST(RunReferenceTest, AnOverflowLeavesAllAsItIs) {
  const Recipe recipe = With(Tokens("gpt"), {{"precision", "fp16"},
                                             {"steps", 40},
                                             {"diagnose.nonfinite", false},
                                             {"schedule.kind", "warmup_linear"},
                                             {"schedule.warmup_steps", 8},
                                             {"scaler.kind", "dynamic"},
                                             {"scaler.init_scale", 0x1p30},
                                             {"scaler.growth_interval", 4}});
  const TrainingRecipe parsed = ParseRecipe(recipe);
  for (const std::optional<int> stop : {std::optional<int>(), std::optional<int>(21)}) {
    Recording recording{.weight = Alike};
    const RunTrace trace = Train(recipe, stop, recording);
    const auto scales = ValuesOf(trace, "loss_scale"), overflows = ValuesOf(trace, "overflow");
    const auto rates = ValuesOf(trace, "lr");
    ASSERT_EQ(overflows.size(), 40u);
    reference::LossScale scale{0x1p30};
    std::int64_t updates = 0;
    for (std::size_t step = 0; step < 40; ++step) {
      SCOPED_TRACE(step);
      ASSERT_EQ(scales[step], scale.scale);
      ASSERT_NEAR(rates[step],
                  reference::Rate(parsed.schedule, parsed.optimizer.lr, parsed.steps, updates),
                  1e-15);
      const Parameters& before = step == 0 ? recording.initial : recording.after[step - 1];
      const bool overflowed = overflows[step] == 1;
      ASSERT_EQ(reference::Apart(recording.after[step], before) == 0, overflowed);
      if (!overflowed) ++updates;
      reference::FollowOverflow(parsed.scaler, overflowed, scale);
    }
    EXPECT_GT(updates, 10);
    EXPECT_LT(updates, 35);
  }
}

}  // namespace
}  // namespace trainwreck
