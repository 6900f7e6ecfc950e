#include "trainer/recipe/recipe.h"

#include <algorithm>

#include "harness/text/glob.h"
#include "trainer/recipe/model_kinds.h"
#include "trainer/recipe/recipe_table.h"

namespace trainwreck {
namespace {

// Checks optimizer.in_backward and masters for options that they exclude.
void CheckOptimizer(const TrainingRecipe& recipe, std::string& problems) {
  const OptimizerRecipe& optimizer = recipe.optimizer;
  if (optimizer.in_backward &&
      (optimizer.clip_norm > 0 || recipe.accumulation > 1 || recipe.parallel_ranks > 1 ||
       recipe.scaler.kind != ScalerKind::kNone || recipe.audit_coverage != OnGaps::kNone ||
       recipe.diagnose_nonfinite)) {
    problems +=
        "\n  optimizer.in_backward: no gradient waits for the others, so it needs "
        "optimizer.clip_norm 0, accumulation 1, parallel.ranks 1, scaler.kind none, audit.coverage "
        "none and diagnose.nonfinite false";
  }
  if (KeepsMasters(recipe) && recipe.parallel_average_every > 0) {
    problems += "\n  parallel.average_every: of parameters that have no masters";
  }
}

void CheckZero(const TrainingRecipe& recipe, std::string& problems) {
  if (recipe.parallel_zero_stage == 0) return;
  if (recipe.parallel_init_sync || recipe.parallel_on_desync == OnDesync::kBroadcast ||
      recipe.checkpoint_elastic || recipe.optimizer.in_backward || KeepsMasters(recipe)) {
    problems +=
        "\n  parallel.zero_stage: each rank has other state, so it needs parallel.init_sync false, "
        "parallel.on_desync other than broadcast, checkpoint.elastic false, optimizer.in_backward "
        "false and no masters";
  }
  if (recipe.parallel_zero_stage >= 2 &&
      (recipe.finetune.consolidation > 0 || recipe.audit_repeat_every > 0 || recipe.cuda_graphs)) {
    problems +=
        "\n  parallel.zero_stage: in stages 2 and 3 no rank has whole gradients, so it needs "
        "finetune.consolidation 0, audit.repeat_every 0 and cuda_graphs false";
  }
  if (recipe.parallel_zero_stage < 3) return;
  if (recipe.parallel_overlap || recipe.parallel_average_every > 0 ||
      recipe.parallel_check_every > 0 || recipe.early_stop_patience > 0 ||
      recipe.diagnose_nonfinite || recipe.sampler_uneven == UnevenMode::kJoin) {
    problems +=
        "\n  parallel.zero_stage: in stage 3 no rank has whole parameters, and all make the same "
        "passes, so it needs parallel.overlap false, parallel.average_every 0, "
        "parallel.check_every 0, early_stop.patience 0, diagnose.nonfinite false and "
        "sampler.uneven other than join";
  }
}

void CheckElastic(const TrainingRecipe& recipe, std::string& problems) {
  if (recipe.checkpoint_elastic && !recipe.sampler_deal_out) {
    problems +=
        "\n  checkpoint.elastic: needs sampler.deal_out, or a step's samples would depend on the "
        "number of ranks";
  }
  if (recipe.sampler_deal_out && recipe.sampler_uneven != UnevenMode::kNone) {
    problems +=
        "\n  sampler.deal_out: the ranks' shares are equal, so it needs sampler.uneven none";
  }
}

// Checks what is said of other sources, and of held-out data.
void CheckSources(const TrainingRecipe& recipe, std::string& problems) {
  const DataRecipe& data = recipe.data;
  const FineTuningRecipe& finetune = recipe.finetune;
  const bool has_other_task =
      finetune.source > 0 || finetune.replay > 0 || finetune.consolidation > 0;
  if (data.kind != DataKind::kFeatures &&
      (data.source > 0 || data.mix_share > 0 || recipe.eval_source > 0 || has_other_task ||
       !data.drop_features.empty())) {
    problems +=
        "\n  data.source, data.mix_share, eval.source, finetune.source, finetune.replay, "
        "finetune.consolidation, data.drop_features: only of features";
  }
  if (recipe.early_stop_patience > 0 && recipe.eval_data != EvalData::kHeldOut) {
    problems += "\n  early_stop.patience: needs eval.data held_out";
  }
  if (recipe.optimizer.in_backward && finetune.consolidation > 0) {
    problems += "\n  finetune.consolidation: not with optimizer.in_backward";
  }
}

// Prompts, documents and padding of tokens.
void CheckTokens(const TrainingRecipe& recipe, std::string& problems) {
  const bool tokens = recipe.data.kind != DataKind::kFeatures;
  const std::int64_t prompt = recipe.data.prompt_tokens + recipe.data.prompt_spread;
  if (prompt > 0 && recipe.data.kind != DataKind::kMarkov) {
    problems += "\n  data.prompt_tokens, data.prompt_spread: need data.kind markov";
  }
  if (tokens && std::max(prompt, recipe.data.lag - 1) >= recipe.data.seq_len) {
    problems +=
        "\n  data.prompt_tokens, data.prompt_spread, data.lag: must leave targets of data.seq_len";
  }
  const std::int64_t document = recipe.data.document_tokens;
  if (document > 0 && (recipe.data.kind != DataKind::kMarkov || document > recipe.data.seq_len)) {
    problems += "\n  data.document_tokens: of data.kind markov, and at most data.seq_len";
  }
  if (document > 0 && std::max(prompt, recipe.data.lag - 1) >= (document + 1) / 2) {
    problems +=
        "\n  data.document_tokens: prompts and data.lag must leave targets of each document";
  }
  if (recipe.data.packing && (document == 0 || recipe.model.kind != "gpt" ||
                              recipe.eval_free_running || recipe.scheduled_sampling.share > 0)) {
    problems +=
        "\n  data.packing: needs data.document_tokens and model.kind gpt; without "
        "eval.free_running "
        "and scheduled_sampling.share";
  }
  if (recipe.data.merges > 0 && recipe.data.kind != DataKind::kText) {
    problems += "\n  data.merges: only of text";
  }
  if (recipe.loader_trim_padding && !tokens) {
    problems += "\n  loader.trim_padding: only of tokens";
  }
  if (recipe.audit_columns != OnGaps::kNone && tokens) {
    problems += "\n  audit.columns: only of features";
  }
}

void CheckOverlap(const TrainingRecipe& recipe, std::string& problems) {
  if (recipe.parallel_overlap &&
      (recipe.optimizer.in_backward || recipe.eval_every_micro_batches > 0)) {
    problems += "\n  parallel.overlap: not with optimizer.in_backward or eval.every_micro_batches";
  }
}

void CheckRepetition(const TrainingRecipe& recipe, std::string& problems) {
  if (recipe.audit_repeat_every > 0 && (recipe.optimizer.in_backward || recipe.parallel_overlap)) {
    problems += "\n  audit.repeat_every: not with optimizer.in_backward or parallel.overlap";
  }
}

void CheckGraphs(const TrainingRecipe& recipe, std::string& problems) {
  if (recipe.cuda_graphs && (recipe.optimizer.in_backward || recipe.parallel_overlap ||
                             recipe.scheduled_sampling.share > 0)) {
    problems +=
        "\n  cuda_graphs: not with optimizer.in_backward, parallel.overlap or "
        "scheduled_sampling.share, which need the host within the passes";
  }
}

// What no single key can be blamed for.
void CheckTogether(const TrainingRecipe& recipe, std::string& problems) {
  const bool tokens = recipe.data.kind != DataKind::kFeatures;
  const auto kind = ModelKinds().find(recipe.model.kind);
  if (kind != ModelKinds().end() && tokens != kind->second.takes_tokens) {
    problems += "\n  model.kind: " + kind->first + " needs data.kind " +
                (kind->second.takes_tokens ? "markov or text" : "features");
  }
  if (recipe.model.dtype != ModelDtype::kFp32 && !tokens) {
    problems += "\n  model.dtype: only fp32 for features";
  }
  CheckOptimizer(recipe, problems);
  CheckZero(recipe, problems);
  CheckElastic(recipe, problems);
  CheckOverlap(recipe, problems);
  CheckGraphs(recipe, problems);
  CheckRepetition(recipe, problems);
  CheckSources(recipe, problems);
  CheckTokens(recipe, problems);
  if (recipe.data.standardise && tokens) {
    problems += "\n  data.standardise: only of features";
  }
  if (recipe.model.loss.per_sequence && !tokens) {
    problems += "\n  loss.per_sequence: only of tokens";
  }
  if (recipe.model.loss.label_smoothing > 0 && recipe.model.loss.form != LossForm::kFused) {
    problems += "\n  loss.label_smoothing: only with loss.form fused";
  }
  if (!tokens && (recipe.eval_free_running || recipe.scheduled_sampling.share > 0)) {
    problems += "\n  eval.free_running, scheduled_sampling.share: only of tokens";
  }
  if (recipe.schedule.restart_step > 0 && recipe.schedule.kind == ScheduleKind::kConstant) {
    problems += "\n  schedule.restart_step: a constant rate has nothing to restart";
  }
  if (recipe.data.balance != ClassBalance::kNone && tokens) {
    problems += "\n  data.balance: only of features";
  }
  if (recipe.sampler_bucket_batches > 0 && (!recipe.sampler_shuffle || recipe.sampler_deal_out)) {
    problems += "\n  sampler.bucket_batches: needs sampler.shuffle, without sampler.deal_out";
  }
  if (recipe.model.batch_norm && recipe.model.layer_norm) {
    problems += "\n  model.batch_norm: not together with model.layer_norm";
  }
  if (recipe.model.kind == "gpt" && recipe.model.positions == Positions::kRotary &&
      recipe.model.width / recipe.model.heads % 2 != 0) {
    problems += "\n  model.positions: rotary needs an even model.width / model.heads";
  }
  if (recipe.model.kind == "gpt" && recipe.model.width % recipe.model.heads != 0) {
    problems += "\n  model.heads: must divide model.width";
  }
}

}  // namespace

TrainingRecipe ParseRecipe(const Recipe& recipe) {
  TrainingRecipe result;
  std::string problems;
  std::size_t known = 0;
  for (const RecipeKey& key : RecipeTable()) {
    auto it = recipe.find(key.info.name);
    if (it == recipe.end()) continue;
    ++known;
    std::string problem = CheckValue(key.info, it->second);
    if (problem.empty()) {
      key.set(result, it->second);
    } else {
      problems += "\n  " + key.info.name + ": " + problem;
    }
  }
  if (known < recipe.size()) {
    for (const auto& [name, value] : recipe) {
      if (name.starts_with("supervisor.")) continue;
      bool found = false;
      for (const RecipeKey& key : RecipeTable()) found = found || key.info.name == name;
      if (!found) problems += "\n  " + name + ": no such key";
    }
  }
  CheckTogether(result, problems);
  if (!problems.empty()) throw RecipeError("bad recipe:" + problems);
  return result;
}

namespace {

// `batches` of `size` samples on each of `from` ranks, on `to` ranks.
void Spread(std::int64_t& batches, std::int64_t& size, std::int64_t from, std::int64_t to,
            const char* what) {
  const std::int64_t all = batches * from;
  if (all % to == 0) {
    batches = all / to;
  } else if (all * size % to == 0) {
    size = all * size / to;
    batches = 1;
  } else {
    throw RecipeError("checkpoint.elastic: the " + std::to_string(all * size) + " samples of " +
                      what + " on " + std::to_string(from) + " ranks cannot be divided among " +
                      std::to_string(to));
  }
}

}  // namespace

void SpreadOver(TrainingRecipe& recipe, int world_size) {
  if (recipe.eval_batch_size == 0) recipe.eval_batch_size = recipe.data.batch_size;
  Spread(recipe.accumulation, recipe.data.batch_size, recipe.parallel_ranks, world_size, "a step");
  Spread(recipe.eval_batches, recipe.eval_batch_size, recipe.parallel_ranks, world_size,
         "an evaluation");
  recipe.parallel_ranks = world_size;
}

void FineTune(TrainingRecipe& recipe) {
  const FineTuningRecipe& finetune = recipe.finetune;
  if (recipe.eval_source < 0) recipe.eval_source = recipe.data.source;
  recipe.data.mix_source = recipe.data.source;
  recipe.data.mix_share = finetune.replay;
  recipe.data.source = finetune.source;
  recipe.optimizer.lr *= finetune.lr_ratio;
  recipe.model.trainable = finetune.trainable;
}

bool KeepsMasters(const TrainingRecipe& recipe) {
  const Masters masters = recipe.optimizer.master_weights;
  return masters == Masters::kFp32 ||
         (masters == Masters::kAuto && recipe.model.dtype != ModelDtype::kFp32);
}

const char* ToString(DeviceChoice choice) {
  switch (choice) {
    case DeviceChoice::kAuto:
      return "auto";
    case DeviceChoice::kCpu:
      return "cpu";
    case DeviceChoice::kCuda:
      return "cuda";
  }
  return "auto";
}

std::vector<ParamInfo> RecipeKeys() {
  std::vector<ParamInfo> keys;
  for (const RecipeKey& key : RecipeTable()) keys.push_back(key.info);
  return keys;
}

bool AnyGlobMatches(const std::string& globs, const std::string& name) {
  std::size_t begin = 0;
  while (begin <= globs.size()) {
    std::size_t end = globs.find(',', begin);
    if (end == std::string::npos) end = globs.size();
    std::size_t first = globs.find_first_not_of(' ', begin);
    if (first < end) {
      std::size_t last = globs.find_last_not_of(' ', end - 1);
      if (GlobMatches(globs.substr(first, last + 1 - first), name)) return true;
    }
    begin = end + 1;
  }
  return false;
}

}  // namespace trainwreck
