// The recipe of the reference trainer as types: what `--describe` lists, what a plan's flat map is
// parsed into, and what every part is built from. All three come from one table
// (recipe_table.cc).
//
//   TrainingRecipe recipe = ParseRecipe(plan.recipe);  // throws RecipeError, with every bad key
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/protocol/description.h"
#include "harness/protocol/plan.h"

namespace trainwreck {

enum class NormPlace { kPre, kPost };
enum class NormKind { kLayer, kRms };
enum class Activation { kRelu, kLeakyRelu, kTanh, kSigmoid };
enum class InitKind { kKaiming, kXavier, kNormal, kConstant };
enum class AttentionForm { kFused, kExplicit, kExplicitFp32 };
enum class AttentionBackend { kAuto, kFlash, kEfficient, kCudnn, kMath };
enum class SimilarityKind { kCosine, kDistance };
enum class NormaliseForm { kClamped, kEpsInside, kEpsOutside, kPlain };
enum class InputNorm { kNone, kTwoPass, kOnePass, kOnePassClamped };
enum class LossForm { kFused, kLogOfSoftmax, kPlainSoftmax, kPlainLogSumExp };
enum class Positions { kLearned, kRotary, kNone };
enum class DataKind { kMarkov, kText, kFeatures };
enum class ClassBalance { kNone, kWeights, kResample };
enum class LoaderGuard { kNone, kSkipBatch, kDropSample, kStop };
enum class Duplicates { kKeep, kDropExact, kDropNear };
enum class UnevenMode { kNone, kDropLast, kPad, kJoin };
enum class OptimizerKind { kSgd, kAdamW };
enum class ScheduleKind { kConstant, kWarmupCosine, kWarmupLinear };
enum class Precision { kFp32, kBf16, kFp16 };
enum class ModelDtype { kFp32, kBf16 };
enum class Masters { kAuto, kFp32, kNone };
enum class UpdateForm { kFused, kPlain };
enum class StateDtype { kFp32, kBf16, kFp16, kInt8 };
enum class Offload { kNone, kDisk };
enum class SentDtype { kAuto, kBf16 };
enum class ScalerKind { kNone, kStatic, kDynamic };
enum class DeviceChoice { kAuto, kCpu, kCuda };
const char* ToString(DeviceChoice choice);  // "auto", "cpu", "cuda"
enum class OnDifference { kReport, kStop, kVote };
enum class OnGaps { kNone, kReport, kStop };
enum class OtherTokenizer { kIgnore, kStop, kRestore };
enum class RendezvousKind { kFile, kTcp };
enum class RankLauncher { kOwn, kTorchrun, kMpirun, kSrun };
enum class OnFailedSave { kStop, kGoOn };
enum class EvalData { kHeldOut, kTraining };
enum class OnDesync { kNone, kStop, kBroadcast, kRollback };

struct LossRecipe {
  LossForm form = LossForm::kFused;
  double eps = 0.0;  // added to a probability in front of its logarithm
  double label_smoothing = 0.0;
  double weight = 1.0;
  bool per_sequence = false;
  bool guard_denominator = false;
  double z_loss = 0.0;  // 0: none
};

struct ModelRecipe {
  std::string kind = "mlp";  // one of ModelKinds() (model_kinds.h)
  std::int64_t layers = 2;
  std::int64_t width = 64;
  std::int64_t heads = 4;
  NormPlace norm = NormPlace::kPre;
  NormKind norm_kind = NormKind::kLayer;
  Activation activation = Activation::kRelu;
  InitKind init = InitKind::kKaiming;
  double init_std = 0.02;
  double init_scale = 1.0;
  bool layer_norm = false;
  bool batch_norm = false;
  bool residual = false;
  double dropout = 0.0;
  std::int64_t lora_rank = 0;  // 0: no adapters
  AttentionForm attention = AttentionForm::kFused;
  AttentionBackend attention_backend = AttentionBackend::kAuto;
  bool qk_norm = false;
  Positions positions = Positions::kLearned;
  double rotary_scale = 1.0;
  SimilarityKind similarity = SimilarityKind::kCosine;
  double logit_scale = 16.0;
  NormaliseForm normalise = NormaliseForm::kClamped;
  InputNorm input_norm = InputNorm::kNone;
  LossRecipe loss;
  std::string trainable = "*";  // comma-separated globs over parameter names
  ModelDtype dtype = ModelDtype::kFp32;
  bool activation_checkpointing = false;
  bool tied_embeddings = false;
};

struct DataRecipe {
  DataKind kind = DataKind::kFeatures;
  std::string path;         // empty: the licence texts that Debian ships
  std::int64_t merges = 0;  // of byte-pair encoding; 0: a token is a byte
  std::int64_t seq_len = 64;
  std::int64_t document_tokens = 0;  // maximum of a document; 0: a row is one
  bool packing = false;
  std::int64_t vocab = 64;
  std::int64_t samples = 4096;  // in an epoch, over all ranks
  std::int64_t batch_size = 8;  // per rank and micro-batch
  std::int64_t features = 32;
  std::int64_t classes = 10;
  double noise = 1.0;
  bool standardise = false;
  std::string drop_features;    // comma-separated numbers of columns
  std::int64_t source = 0;      // whose class centres features have
  std::int64_t mix_source = 0;  // of the samples that are mixed in
  double mix_share = 0.0;       // of the training samples; 0: none
  Duplicates duplicates = Duplicates::kKeep;
  double certainty = 0.6;          // probability of a token's first successor
  std::int64_t lag = 1;            // distance to the token that a token depends on
  std::int64_t prompt_tokens = 0;  // first targets of each sample: its prompt
  std::int64_t prompt_spread = 0;  // largest difference of two prompts' lengths
  ClassBalance balance = ClassBalance::kNone;
};

struct OptimizerRecipe {
  OptimizerKind kind = OptimizerKind::kSgd;
  double lr = 0.02;
  double momentum = 0.9;
  double weight_decay = 0.0;
  std::string no_decay;  // comma-separated globs over parameter names
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  UpdateForm form = UpdateForm::kFused;
  StateDtype state_dtype = StateDtype::kFp32;
  Offload offload = Offload::kNone;
  Masters master_weights = Masters::kAuto;
  bool in_backward = false;
  double clip_norm = 0.0;  // 0: off
};

struct ScheduleRecipe {
  ScheduleKind kind = ScheduleKind::kConstant;
  std::int64_t warmup_steps = 0;
  double final_ratio = 0.1;       // of the peak learning rate, at the last step
  std::int64_t restart_step = 0;  // 0: none
  double restart_ratio = 1.0;     // of the peak learning rate, at the restart
};

// Scheduled sampling (Bengio et al. 2015): training inputs that are the model's own predictions.
struct SamplingRecipe {
  double share = 0.0;
  std::int64_t ramp_steps = 0;  // steps in which the share rises from 0
};

// What a phase that goes on from a checkpoint changes to train on another task.
struct FineTuningRecipe {
  std::string phase;  // its name; empty: none
  std::int64_t source = 0;
  double lr_ratio = 1.0;
  std::string trainable = "*";  // comma-separated globs over parameter names
  double replay = 0.0;          // share of training samples that are of the task before
  double consolidation = 0.0;   // strength; 0: none
};

struct ScalerRecipe {
  ScalerKind kind = ScalerKind::kNone;
  double init_scale = 65536.0;
  double growth_factor = 2.0;
  double backoff_factor = 0.5;
  std::int64_t growth_interval = 2000;
};

struct TrainingRecipe {
  ModelRecipe model;
  DataRecipe data;
  OptimizerRecipe optimizer;
  ScheduleRecipe schedule;
  SamplingRecipe scheduled_sampling;
  FineTuningRecipe finetune;
  std::int64_t steps = 100;
  std::int64_t accumulation = 1;
  Precision precision = Precision::kFp32;
  bool precision_tf32 = false;
  bool cuda_graphs = false;
  bool precision_reduced_sums = false;  // not run on a GPU yet
  ScalerRecipe scaler;
  std::int64_t memory_limit_bytes = 0;  // 0: none
  bool memory_expandable_segments = false;
  LoaderGuard loader_guard = LoaderGuard::kNone;
  std::int64_t loader_max_len = 0;  // 0: no limit
  bool loader_trim_padding = false;
  std::int64_t loader_workers = 0;   // threads; 0: the loop itself loads
  std::int64_t loader_prefetch = 2;  // batches ahead of training, for each worker
  bool loader_cache = false;
  UnevenMode sampler_uneven = UnevenMode::kNone;
  bool sampler_shuffle = true;
  bool sampler_deal_out = false;
  std::int64_t sampler_bucket_batches = 0;  // 0: no buckets
  std::int64_t eval_every = 0;
  std::int64_t eval_every_micro_batches = 0;
  bool eval_at_epoch_end = true;
  std::int64_t eval_batches = 2;
  std::int64_t eval_batch_size = 0;  // 0: data.batch_size
  EvalData eval_data = EvalData::kHeldOut;
  bool eval_free_running = false;
  std::int64_t eval_source = -1;         // -1: data.source
  std::int64_t early_stop_patience = 0;  // evaluations; 0: never
  OnGaps audit_overlap = OnGaps::kNone;
  OnGaps audit_columns = OnGaps::kNone;
  std::int64_t checkpoint_every = 0;
  std::int64_t checkpoint_keep = 2;
  bool checkpoint_require_complete = false;
  OnFailedSave checkpoint_on_failure = OnFailedSave::kStop;
  bool checkpoint_asynchronous = false;
  bool checkpoint_digests = false;
  bool checkpoint_elastic = false;
  OtherTokenizer checkpoint_tokenizer = OtherTokenizer::kIgnore;
  std::int64_t resume_rewarm_steps = 0;
  OnGaps audit_coverage = OnGaps::kNone;
  std::int64_t audit_repeat_every = 0;  // steps; 0: never
  OnDifference audit_on_difference = OnDifference::kReport;
  bool diagnose_nonfinite = true;
  double diagnose_evidence_mb = 16.0;
  std::int64_t parallel_ranks = 1;
  RankLauncher parallel_launcher = RankLauncher::kOwn;
  double parallel_timeout_s = 30.0;
  double parallel_bucket_mb = 1.0;
  bool parallel_overlap = false;
  SentDtype parallel_sent = SentDtype::kAuto;
  RendezvousKind parallel_rendezvous = RendezvousKind::kFile;
  bool parallel_check_collectives = false;
  bool parallel_init_sync = false;
  std::int64_t parallel_zero_stage = 0;
  std::int64_t log_every = 0;
  bool log_over_ranks = false;
  bool log_rank_zero_only = false;
  DeviceChoice device = DeviceChoice::kAuto;
  bool deterministic = false;
  std::int64_t threads = 1;  // CPU threads in each rank
  std::int64_t parallel_average_every = 0;
  std::int64_t parallel_check_every = 0;
  bool parallel_keep_digests = false;
  OnDesync parallel_on_desync = OnDesync::kNone;
};

// A plan that this trainer cannot carry out; the message names every offending key.
class RecipeError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Missing keys keep their defaults; unknown keys of the harness ("supervisor.*") are ignored,
// others are errors.
TrainingRecipe ParseRecipe(const Recipe& recipe);

// Spreads the samples of a step, and those of an evaluation, over `world_size` ranks in place of
// parallel.ranks: by other numbers of micro-batches where they divide, else by smaller ones. Throws
// RecipeError where the samples do not divide.
void SpreadOver(TrainingRecipe& recipe, int world_size);

// The recipe of the phase that fine-tunes: the task before stays what is evaluated, and what replay
// mixes in.
void FineTune(TrainingRecipe& recipe);

// Whether the optimizer updates fp32 copies of the parameters.
bool KeepsMasters(const TrainingRecipe& recipe);

// Every key with type, default, range and meaning.
std::vector<ParamInfo> RecipeKeys();

// Whether any of the comma-separated globs matches.
bool AnyGlobMatches(const std::string& globs, const std::string& name);

}  // namespace trainwreck
