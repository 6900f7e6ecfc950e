// What the suite's scenarios use the reference trainer's recipe for. A loop has a key because
// stacks have it, not because a fault needs something to switch, and a remedy is something that a
// stack has for its own sake, not a fault run backwards.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdio.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "harness/plan/run.h"
#include "harness/spec/fault_file.h"

namespace trainwreck {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

// A key ("model.qk_norm"), or a value of one that has choices ("scaler.kind=static").
using Option = std::string;

// Whose other uses no scenario needs, and where stacks have them all the same.
const std::map<Option, std::string> kRealOptions = {
    // Only faults turn these.
    {"eval.source", "eval_dataset= of transformers' Trainer"},
    {"finetune.phase", "a second Trainer.train() from the checkpoint of the first"},
    {"finetune.source", "train_dataset= of that second Trainer"},
    {"log.rank_zero_only", "Lightning's LightningModule.log(rank_zero_only=True)"},
    {"model.activation=sigmoid", "torch.nn.Sigmoid"},
    {"model.init=constant", "torch.nn.init.constant_"},
    {"model.rotary_scale", "rope_scaling of transformers: position interpolation"},
    {"optimizer.state_dtype=fp16",
     "transformer_engine.pytorch.optimizers.FusedAdam(exp_avg_dtype=)"},
    {"schedule.restart_step", "torch.optim.lr_scheduler.CosineAnnealingWarmRestarts"},
    // Only one scenario's remedies turn these.
    {"audit.on_difference=vote", "--rerun-mode validate_results of Megatron-LM"},
    {"data.balance=resample", "torch.utils.data.WeightedRandomSampler"},
    {"data.balance=weights", "torch.nn.CrossEntropyLoss(weight=)"},
    {"checkpoint.tokenizer=restore",
     "processing_class= of transformers' Trainer, saved with each "
     "checkpoint, and AutoTokenizer.from_pretrained(checkpoint)"},
    {"data.drop_features", "remove_columns() of datasets"},
    {"data.duplicates=drop_exact", "ExactDuplicates of NeMo Curator"},
    {"data.duplicates=drop_near", "FuzzyDuplicates of NeMo Curator"},
    {"data.mix_share", "interleave_datasets(probabilities=) of datasets"},
    {"data.mix_source", "interleave_datasets() of datasets"},
    {"data.packing", "packing=True of TRL's SFTConfig"},
    {"data.standardise", "sklearn.preprocessing.StandardScaler"},
    {"finetune.consolidation", "EWCPlugin(ewc_lambda=) of Avalanche"},
    {"finetune.replay", "ReplayPlugin of Avalanche"},
    {"loader.cache", "tf.data.Dataset.cache()"},
    {"loader.prefetch", "torch.utils.data.DataLoader(prefetch_factor=)"},
    {"loader.workers", "torch.utils.data.DataLoader(num_workers=)"},
    {"loss.guard_denominator", "completion_mask.sum().clamp(min=1.0) of TRL's GRPOTrainer"},
    {"loss.label_smoothing", "torch.nn.CrossEntropyLoss(label_smoothing=)"},
    {"memory.expandable_segments", "PYTORCH_ALLOC_CONF=expandable_segments:True"},
    {"model.attention=explicit_fp32", "--attention-softmax-in-fp32 of Megatron-LM"},
    {"model.input_norm=one_pass_clamped", "flax.linen.LayerNorm(use_fast_variance=True)"},
    {"model.input_norm=two_pass", "flax.linen.LayerNorm(use_fast_variance=False)"},
    {"optimizer.offload=disk", "zero_optimization.offload_optimizer.device=nvme of DeepSpeed"},
    {"optimizer.state_dtype=int8", "bitsandbytes.optim.Adam8bit"},
    {"parallel.overlap", "torch.nn.parallel.DistributedDataParallel, which always does"},
    {"parallel.reduce_dtype=bf16",
     "bf16_compress_hook of torch.distributed.algorithms.ddp_comm_hooks.default_hooks"},
    {"parallel.zero_stage", "zero_optimization.stage of DeepSpeed"},
    {"parallel.average_every",
     "torch.distributed.algorithms.model_averaging.averagers.PeriodicModelAverager"},
    {"sampler.uneven=drop_last", "DistributedSampler(drop_last=True)"},
    {"sampler.uneven=pad", "DistributedSampler(drop_last=False)"},
    {"scaler.kind=static", "a fixed fp16.loss_scale of DeepSpeed"},
    {"scheduled_sampling.ramp_steps",
     "scheduled_sampling_type: linear, scheduled_sampling_k of OpenNMT-tf"},
    {"scheduled_sampling.share",
     "tfa.seq2seq.ScheduledOutputTrainingSampler(sampling_probability=)"},
};

Option OptionOf(const TargetDescription& target, const std::string& key, const Json& value) {
  const ParamInfo* info = target.FindRecipeKey(key);
  const bool has_choices = info != nullptr && !info->choices.empty();
  return has_choices ? key + "=" + value.get<std::string>() : key;
}

// What `recipe` has otherwise than `other`, and is no default.
std::set<Option> OptionsIn(const TargetDescription& target, const Recipe& recipe,
                           const Recipe& other) {
  std::set<Option> options;
  for (const auto& [key, value] : recipe) {
    const auto was = other.find(key);
    const ParamInfo* info = target.FindRecipeKey(key);
    if (was != other.end() && was->second == value) continue;
    if (info == nullptr || info->default_value == value) continue;
    options.insert(OptionOf(target, key, value));
  }
  return options;
}

struct TriedRemedy {
  std::string scenario;
  std::string name;
  std::set<Option> options;
};

// What scenarios use, the faults in them left out.
struct Uses {
  std::map<Option, std::set<std::string>> scenarios;  // by what they use
  std::vector<TriedRemedy> remedies;                  // that are run
};

const Recipe& RecipeOf(const ArmPlan& arm) { return arm.runs.at(0).plan.recipe; }

Uses UsesOf(const TargetDescription& target, const std::vector<Case>& cases) {
  Uses uses;
  for (const Case& one : cases) {
    const std::string scenario = one.name.substr(0, one.name.find('['));
    const ArmPlan *control = nullptr, *fault = nullptr;
    for (const ArmPlan& arm : one.arms) {
      if (arm.kind == ArmKind::kControl) control = &arm;
      if (arm.kind == ArmKind::kFault) fault = &arm;
    }
    if (control == nullptr || control->runs.empty()) continue;
    for (const Option& option : OptionsIn(target, RecipeOf(*control), {})) {
      uses.scenarios[option].insert(scenario);
    }
    for (const ArmPlan& arm : one.arms) {
      if (arm.kind != ArmKind::kRemedy && arm.kind != ArmKind::kDecoy) continue;
      if (fault == nullptr || fault->runs.empty() || arm.runs.empty() || arm.is_undo) continue;
      const std::set<Option> options = OptionsIn(target, RecipeOf(arm), RecipeOf(*fault));
      for (const Option& option : options) uses.scenarios[option].insert(scenario);
      if (arm.kind == ArmKind::kRemedy) uses.remedies.push_back({scenario, arm.name, options});
    }
  }
  return uses;
}

// What faults of the recipe may turn: keys, and the choices that they may take.
std::set<Option> OptionsOfFaults(const TargetDescription& target) {
  std::set<Option> options;
  for (const FaultInfo& fault : target.faults) {
    for (const Amendment& amendment : fault.amends) {
      const ParamInfo* key = target.FindRecipeKey(amendment.key);
      if (key == nullptr) continue;
      std::vector<Json> values = {amendment.value};
      for (const ParamInfo& param : fault.params) {
        if (param.name == amendment.param)
          values.assign(param.choices.begin(), param.choices.end());
      }
      if (key->choices.empty()) values = {Json()};
      for (const Json& value : values) {
        if (value != key->default_value) options.insert(OptionOf(target, amendment.key, value));
      }
    }
  }
  return options;
}

// "model.mask_shift: only faults turn it".
std::vector<std::string> Findings(const TargetDescription& target, const Uses& uses) {
  std::vector<std::string> findings;
  for (const Option& option : OptionsOfFaults(target)) {
    if (uses.scenarios.contains(option) || kRealOptions.contains(option)) continue;
    findings.push_back(option + ": only faults turn it, so an injector should do what it does");
  }
  for (const TriedRemedy& remedy : uses.remedies) {
    const auto is_own = [&](const Option& option) {
      return uses.scenarios.at(option).size() == 1 && !kRealOptions.contains(option);
    };
    if (remedy.options.empty()) continue;  // back to defaults
    if (!std::all_of(remedy.options.begin(), remedy.options.end(), is_own)) continue;
    findings.push_back(remedy.scenario + " " + remedy.name +
                       ": nothing else uses what it sets, so it should be declared as `undo`");
  }
  return findings;
}

TargetDescription ReferenceTrainer() {
  FILE* output = popen("trainer/trainwreck-trainer --describe", "r");
  std::string text;
  char piece[4096];
  while (const std::size_t got = fread(piece, 1, sizeof piece, output)) text.append(piece, got);
  EXPECT_EQ(pclose(output), 0);
  TargetDescription target = DescriptionFromJson(Json::parse(text));
  AddHarnessVocabulary(target);
  FaultCatalogue(target).AddSuite();
  return target;
}

std::vector<Scenario> SuiteScenarios(const TargetDescription& target) {
  std::vector<Scenario> scenarios;
  LoadOptions options;
  options.invariants = LoadInvariants(options.scenarios_root, target).invariants;
  for (const auto& entry : std::filesystem::recursive_directory_iterator("scenarios")) {
    const std::string path = entry.path();
    if (!path.ends_with(".yaml") || IsDefaultsFile(path) || IsInvariantsFile(path)) continue;
    ScenarioFile file = LoadScenario(path, target, options);
    EXPECT_TRUE(file.scenario.has_value()) << path;
    if (file.scenario) scenarios.push_back(std::move(*file.scenario));
  }
  return scenarios;
}

// No fault reaches what the logger writes, so traces are made here: one that is right, one whose
// loss is half of what was computed, and one that has 0 for NaN.
TEST(SuiteInvariants, NoticeALoggerThatWritesAnotherLoss) {
  const TargetDescription target = ReferenceTrainer();
  const auto invariants = LoadInvariants("scenarios", target).invariants;
  const auto found = std::find_if(invariants->begin(), invariants->end(), [](const auto& one) {
    return one.name == "loss_is_what_was_computed";
  });
  ASSERT_NE(found, invariants->end());
  const auto asked = AskedOf(*found, {}, {}, target);
  ASSERT_TRUE(asked);
  const auto truth = [&](double loss, double mean, double nonfinite) {
    RunTrace trace;
    trace.planned_steps = 1;
    trace.finished = true;
    trace.series[{"loss", 0}].Set(0, loss);
    trace.series[{"act_mean{loss}", 0}].Set(0, mean);
    trace.series[{"act_nonfinite{loss}", 0}].Set(0, nonfinite);
    return asked->Evaluate({&trace, {}}, target).truth;
  };
  EXPECT_EQ(truth(3, 3, 0), formula::Truth::kTrue);
  EXPECT_EQ(truth(1.5, 3, 0), formula::Truth::kFalse);
  EXPECT_EQ(truth(0, 0, 1), formula::Truth::kFalse);
}

TEST(RecipeUse, EachKeyHasAUseWithoutFaultsAndNoRemedyIsAnAntidote) {
  const TargetDescription target = ReferenceTrainer();
  const std::vector<Scenario> scenarios = SuiteScenarios(target);
  ASSERT_GT(scenarios.size(), 50U);
  const Uses uses =
      UsesOf(target, PlanCases(scenarios, target, {.available_features = {"device:cuda"}}));
  ASSERT_GT(uses.remedies.size(), 60U);
  EXPECT_THAT(Findings(target, uses), IsEmpty())
      << "or, where stacks have such a thing for its own sake, name it in kRealOptions";
  for (const auto& [option, counterpart] : kRealOptions) {
    const auto used = uses.scenarios.find(option);
    EXPECT_TRUE(used == uses.scenarios.end() || used->second.size() == 1)
        << option << ": others use it now, so it needs no reason";
    EXPECT_TRUE(used != uses.scenarios.end() || OptionsOfFaults(target).contains(option))
        << option << ": nobody uses it";
  }
}

// Two scenarios of one key each, and a fault of the recipe.
class SmallSuite : public testing::Test {
 protected:
  SmallSuite() {
    const auto add = [this](const char* name, Json value, std::vector<std::string> choices) {
      ParamInfo key;
      key.name = name;
      key.type = choices.empty() ? ValueType::kInt : ValueType::kString;
      key.default_value = std::move(value);
      key.choices = std::move(choices);
      target.recipe.push_back(std::move(key));
    };
    add("mask_shift", 0, {});
    add("axis", "classes", {"classes", "batch"});
    add("clip", 0, {});
    FaultInfo shifts, mixes;
    shifts.name = "t.shifts";
    shifts.amends = {{"mask_shift", Amendment::Op::kSet, "", 1}};
    mixes.name = "t.mixes";
    mixes.amends = {{"axis", Amendment::Op::kSet, "", "batch"}};
    target.faults = {shifts, mixes};
  }

  static ArmPlan Arm(const char* name, ArmKind kind, Recipe recipe) {
    ArmPlan arm;
    arm.name = name;
    arm.kind = kind;
    arm.runs.resize(1);
    arm.runs[0].plan.recipe = std::move(recipe);
    return arm;
  }
  // Control and fault have the recipe's defaults and `remedy` is what the only remedy sets.
  Case With(const char* name, const Recipe& remedy) {
    Recipe recipe;
    for (const ParamInfo& key : target.recipe) recipe[key.name] = key.default_value;
    Case one;
    one.name = name;
    one.arms.push_back(Arm("control", ArmKind::kControl, recipe));
    one.arms.push_back(Arm("fault", ArmKind::kFault, recipe));
    for (const auto& [key, value] : remedy) recipe[key] = value;
    one.arms.push_back(Arm("helps", ArmKind::kRemedy, recipe));
    return one;
  }
  std::vector<std::string> FindingsOf(const std::vector<Case>& cases) {
    return Findings(target, UsesOf(target, cases));
  }

  TargetDescription target;
};

TEST_F(SmallSuite, NamesKeysAndChoicesThatOnlyFaultsTurn) {
  EXPECT_THAT(
      FindingsOf({}),
      ElementsAre("axis=batch: only faults turn it, so an injector should do what it does",
                  "mask_shift: only faults turn it, so an injector should do what it does"));
  Case one = With("a/b[point]", {});
  one.arms[0].runs[0].plan.recipe["axis"] = "batch";
  EXPECT_THAT(
      FindingsOf({one}),
      ElementsAre("mask_shift: only faults turn it, so an injector should do what it does"));
}

TEST_F(SmallSuite, NamesRemediesOfWhichNothingElseHasAUse) {
  target.faults.clear();
  const Case clips = With("a/clips", {{"clip", 1}});
  const std::string finding =
      "a/clips helps: nothing else uses what it sets, so it should be declared as `undo`";
  EXPECT_THAT(FindingsOf({clips}), ElementsAre(finding));
  EXPECT_THAT(FindingsOf({clips, With("a/clips", {{"clip", 2}})}), Contains(finding))
      << "another point of the same scenario is no other use";
  EXPECT_THAT(FindingsOf({clips, With("a/too", {{"clip", 2}})}), IsEmpty());
  Case undone = clips;
  undone.arms[2].is_undo = true;
  EXPECT_THAT(FindingsOf({undone}), IsEmpty());
}

}  // namespace
}  // namespace trainwreck
