#include "harness/cli/verbs/templates.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "harness/protocol/recipe_view.h"

namespace trainwreck {
namespace {

// The parts of a scenario that depend on the target; YAML below the key, or empty.
struct ScenarioText {
  const char* guide;  // where to read more
  const char* recipe = "";
  int seeds = 3;
  const char* inject;
  const char* healthy;
  const char* symptoms;
  const char* remedies;
  const char* decoys = "";
  const char* quality = "";
};

constexpr ScenarioText kReference = {
    .guide = R"YAML(docs/guide/scenario.md describes every key,
# docs/reference/formulas.md the language of the checks;
# `trainwreck list faults|signals|recipe` lists names.
)YAML",
    .recipe = R"YAML(
  model: {kind: gpt, layers: 2, width: 32}
  data: {kind: markov, vocab: 32, seq_len: 32, batch_size: 8}
  optimizer: {kind: sgd, momentum: 0.9, lr: 0.1}
  schedule: {kind: warmup_cosine, warmup_steps: 10}
  steps: 60
)YAML",
    .seeds = 5,
    .inject = R"YAML(
  hot_lr: {fault: recipe.high_lr, with: {factor: 15}}
)YAML",
    .healthy = R"YAML(
  learns: mean(loss[-10:]) < 0.9 * mean(loss[:5])
)YAML",
    .symptoms = R"YAML(
  blows_up: eventually nonfinite(loss)
)YAML",
    .remedies = R"YAML(
  lower_lr: {scale: {optimizer.lr: 0.1}}
)YAML",
    .decoys = R"YAML(
  weight_decay: {set: {optimizer.weight_decay: 0.01}}
)YAML",
    .quality = " mean(loss[-10:]) <= 1.25 * control.mean(loss[-10:])\n",
};

constexpr const char* kGuideOfOwn =
    R"YAML(`trainwreck list faults|signals|recipe` lists
# names, `trainwreck explain NAME` says what they mean.
)YAML";

// For a program of somebody's own, whose rate is known.
constexpr ScenarioText kRate = {
    .guide = kGuideOfOwn,
    .inject = R"YAML(
  hot_lr: {fault: recipe.high_lr, with: {factor: 1000}}
)YAML",
    .healthy = R"YAML(
  learns: mean(loss[-10:]) < 0.9 * mean(loss[:3])
)YAML",
    .symptoms = R"YAML(
  # less than half of the way down
  no_good: >-
    exited(rank=0) and not ended(rank=0, why=completed) or ended_early() or eventually
    nonfinite(loss) or mean(loss[-10:]) > 0.5 * (control.mean(loss[:3]) + control.mean(loss[-10:]))
)YAML",
    .remedies = R"YAML(
  lower_lr: {scale: {role.learning_rate: 0.0007}}
)YAML",
    .quality =
        " mean(loss[-10:]) <= 0.3 * control.mean(loss[:3]) + 0.7 * control.mean(loss[-10:])\n",
};

// For any program.
constexpr ScenarioText kKilled = {
    .guide = kGuideOfOwn,
    .inject = R"YAML(
  killed: {fault: process.crash_rank, with: {how: sigkill}, at: 2, attempt: 0}
)YAML",
    .healthy = R"YAML(
  completes: ended(rank=0, why=completed)
)YAML",
    .symptoms = R"YAML(
  is_lost: not ended(rank=0, why=completed)
)YAML",
    .remedies = R"YAML(
  supervisor: {set: {supervisor.max_restarts: 1}}
)YAML",
};

constexpr const char* kFault =
    R"TEXT(// @SITE@.@NAME@: say in one sentence what goes wrong in real life.
#include <memory>
#include <utility>

#include "injectors/injector.h"

namespace trainwreck {
namespace {

// What `trainwreck explain @SITE@.@NAME@` prints, and what scenarios are checked against.
FaultInfo Info() {
  return {.name = "@SITE@.@NAME@",
          .doc = "Multiplies the learning rate of the steps that the trigger chooses.",
          .params = {{.name = "factor",
                      .type = ValueType::kNumber,
                      .default_value = 10.0,
                      .min = 0.0,
                      .unit = "times",
                      .doc = "What the learning rate is multiplied by."}},
          .evidence = "each time: the learning rate before and after"};
}

// Wraps one part of the loop (trainer/parts.h has them all); the rest stays plain.
class WrappedOptimizer : public Optimizer {
 public:
  WrappedOptimizer(std::unique_ptr<Optimizer> plain, Injector& injector, double factor)
      : plain_(std::move(plain)), injector_(injector), factor_(factor) {}

  void ZeroGrad() override { plain_->ZeroGrad(); }
  void Step(double lr) override {
    if (!injector_.Acts()) {
      plain_->Step(lr);
      return;
    }
    injector_.Fired({{"before", lr}, {"after", lr * factor_}});  // no act without evidence
    plain_->Step(lr * factor_);
  }
  void Save(StateDict& state) const override { plain_->Save(state); }
  void Load(const StateDict& state) override { plain_->Load(state); }

 private:
  std::unique_ptr<Optimizer> plain_;
  Injector& injector_;
  double factor_;
};

class @CLASS@ : public Injector {
 public:
  using Injector::Injector;
  using Injector::Wrap;

  std::unique_ptr<Optimizer> Wrap(std::unique_ptr<Optimizer> part) override {
    const double factor = param("factor").get<double>();
    return std::make_unique<WrappedOptimizer>(std::move(part), *this, factor);
  }
};

REGISTER_FAULT(Info, @CLASS@);

}  // namespace
}  // namespace trainwreck
)TEXT";

constexpr const char* kFaultTest = R"TEXT(#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "injectors/testing.h"

namespace trainwreck {
namespace {

class RecordingOptimizer : public Optimizer {
 public:
  explicit RecordingOptimizer(std::vector<double>& rates) : rates_(rates) {}
  void ZeroGrad() override {}
  void Step(double lr) override { rates_.push_back(lr); }
  void Save(StateDict& state) const override {}
  void Load(const StateDict& state) override {}

 private:
  std::vector<double>& rates_;
};

TEST(@CLASS@, ActsWhereTheTriggerSaysAndLeavesEvidence) {
  FaultBench bench;
  Trigger trigger;
  trigger.at = 1;
  auto injector = bench.Make("@SITE@.@NAME@", {{"factor", 4.0}}, trigger);
  std::vector<double> rates;
  std::unique_ptr<Optimizer> plain = std::make_unique<RecordingOptimizer>(rates);
  auto wrapped = static_cast<PartWrapper&>(*injector).Wrap(std::move(plain));
  for (int step = 0; step < 3; ++step) {
    bench.clock.step = step;
    wrapped->Step(0.5);
  }
  EXPECT_EQ(rates, (std::vector<double>{0.5, 2.0, 0.5}));
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_EQ(bench.fired()[0]["before"], 0.5);
  EXPECT_EQ(bench.fired()[0]["after"], 2.0);
}

}  // namespace
}  // namespace trainwreck
)TEXT";

constexpr const char* kRecipeFault =
    R"YAML(# Say in one sentence what goes wrong in real life. docs/guide/scenario.md describes every key;
# `trainwreck list recipe` has what can be changed.
apiVersion: trainwreck/v1
kind: Fault
name: @NAME@
summary: Multiplies @KEY@.
parameters:
  factor: {type: number, default: 10, min: 0, unit: times, doc: What @KEY@ is multiplied by.}
scale: {@KEY@: $factor}
)YAML";

std::string Replace(std::string text, const std::string& mark, const std::string& by) {
  for (std::size_t at = text.find(mark); at != std::string::npos;
       at = text.find(mark, at + by.size())) {
    text.replace(at, mark.size(), by);
  }
  return text;
}

std::string Compose(const ScenarioText& parts) {
  std::string text = "# What goes wrong, how it shows, what cures it. ";
  text += parts.guide;
  text += R"YAML(#
#   trainwreck validate @NAME@
#   trainwreck run @NAME@ --dry-run
#   trainwreck run @NAME@ -v
apiVersion: trainwreck/v1
kind: Scenario
title: One sentence that says what breaks
tags: [new]
)YAML";
  const auto add = [&](const char* comment, const char* key, std::string_view part) {
    if (!part.empty()) text.append("\n# ").append(comment).append("\n").append(key).append(part);
  };
  add("The healthy run, over the target's defaults. Small models break in the same ways, in "
      "seconds.",
      "recipe:", parts.recipe);
  text += "seeds: " + std::to_string(parts.seeds) + "\n";
  const bool has_recipe = *parts.recipe != '\0';
  add(has_recipe ? "The fault. It stays in while a remedy is tested."
                 : "The fault. It stays in while a remedy is tested. Without a recipe, the "
                   "target's defaults hold.",
      "inject:", parts.inject);
  add("Holds in control and with every remedy that does not waive it.", "healthy:", parts.healthy);
  add("Hold in the fault arm and with every decoy; not in control, not with a remedy.",
      "symptoms:", parts.symptoms);
  add("What cures it (kind: correct), or only limits the damage (kind: mitigate).",
      "remedies:", parts.remedies);
  add("What people try first and does not help.", "decoys:", parts.decoys);
  add("How close to control a remedy must end.", "quality:", parts.quality);
  return text;
}

// stale_moments -> StaleMoments
std::string ClassName(const std::string& name) {
  std::string result;
  bool starts = true;
  for (char c : name) {
    if (c == '_') {
      starts = true;
      continue;
    }
    result += starts ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    starts = false;
  }
  return result;
}

}  // namespace

std::string ScenarioSkeleton(const std::string& name, const TargetDescription& target) {
  const auto has_key = [&](const char* key) {
    return std::any_of(target.recipe.begin(), target.recipe.end(),
                       [&](const ParamInfo& one) { return one.name == key; });
  };
  const bool is_reference = has_key("model.kind") && has_key("optimizer.kind");
  const bool has_rate = KeyWithRole(target, KeyRole::kLearningRate) != nullptr &&
                        target.FindSignal("loss") != nullptr;
  return Replace(Compose(is_reference ? kReference : has_rate ? kRate : kKilled), "@NAME@", name);
}

std::string RecipeFaultSkeleton(const std::string& name, const std::string& key) {
  return Replace(Replace(kRecipeFault, "@NAME@", name), "@KEY@", key);
}

FaultSkeleton MakeFaultSkeleton(const std::string& site, const std::string& name) {
  auto fill = [&](const char* text) {
    return Replace(Replace(Replace(text, "@SITE@", site), "@NAME@", name), "@CLASS@",
                   ClassName(name));
  };
  return {fill(kFault), fill(kFaultTest)};
}

}  // namespace trainwreck
