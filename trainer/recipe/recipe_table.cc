#include "trainer/recipe/recipe_table.h"

#include <string>

#include "trainer/recipe/model_kinds.h"
#include "trainer/recipe/recipe_key.h"

namespace trainwreck {
namespace {

#define FIELD(member) ([](TrainingRecipe & r) -> auto& { return r.member; })

RecipeKey ModelKindKey() {
  std::string tokens, features;
  RecipeKey key = Plain("model.kind", FIELD(model.kind), "");
  for (const auto& [name, kind] : ModelKinds()) {
    key.info.choices.push_back(name);
    std::string& list = kind.takes_tokens ? tokens : features;
    list += (list.empty() ? "" : ", ") + name;
  }
  key.info.doc = "Over token data: " + tokens + "; over features: " + features;
  return key;
}

void AddModelKeys(std::vector<RecipeKey>& keys) {
  keys.push_back(ModelKindKey());
  keys.push_back(Bounded(WithRole(KeyRole::kCost, Number("model.layers", FIELD(model.layers), "", 1,
                                                         "Transformer blocks or hidden layers")),
                         256));
  keys.push_back(Bounded(WithRole(KeyRole::kCost, Number("model.width", FIELD(model.width), "", 1,
                                                         "Size of the hidden state")),
                         16384));
  keys.push_back(Number("model.heads", FIELD(model.heads), "", 1,
                        "Attention heads (gpt); must divide the width"));
  keys.push_back(Choice("model.norm", FIELD(model.norm),
                        {{"pre", NormPlace::kPre}, {"post", NormPlace::kPost}},
                        "Norm before each sublayer, or after its residual sum (gpt)"));
  keys.push_back(Choice("model.norm_kind", FIELD(model.norm_kind),
                        {{"layer", NormKind::kLayer}, {"rms", NormKind::kRms}},
                        "Layer norm, or by the root of the mean square alone (Zhang and Sennrich "
                        "2019; gpt)"));
  keys.push_back(Choice("model.activation", FIELD(model.activation),
                        {{"relu", Activation::kRelu},
                         {"leaky_relu", Activation::kLeakyRelu},
                         {"tanh", Activation::kTanh},
                         {"sigmoid", Activation::kSigmoid}},
                        "Of hidden layers (mlp), of the state (rnn)"));
  keys.push_back(Choice("model.init", FIELD(model.init),
                        {{"kaiming", InitKind::kKaiming},
                         {"xavier", InitKind::kXavier},
                         {"normal", InitKind::kNormal},
                         {"constant", InitKind::kConstant}},
                        "Weights of hidden layers: by fan-in (He et al. 2015), by fan-in and "
                        "fan-out (Glorot and Bengio 2010), or of size init_std (mlp)"));
  keys.push_back(Number("model.init_std", FIELD(model.init_std), "", 0,
                        "With init normal the standard deviation, with constant the value (mlp)"));
  keys.push_back(Plain("model.layer_norm", FIELD(model.layer_norm),
                       "Layer norm in front of each hidden layer's activation (mlp)"));
  keys.push_back(Plain("model.batch_norm", FIELD(model.batch_norm),
                       "Batch norm there (mlp); with layer norm it cannot be"));
  keys.push_back(Plain("model.residual", FIELD(model.residual),
                       "Add its input to each hidden layer's output, where both have the same "
                       "size (mlp)"));
  keys.push_back(WithRole(KeyRole::kRegularisation,
                          Bounded(Number("model.dropout", FIELD(model.dropout), "", 0,
                                         "Share of each sublayer's output that training sets to 0 "
                                         "(Srivastava et al. 2014; gpt)"),
                                  0.99)));
}

// Keys of precision, attention, prototypes, and of the model's trainable part.
void AddModelPartKeys(std::vector<RecipeKey>& keys) {
  keys.push_back(Choice("model.dtype", FIELD(model.dtype),
                        {{"fp32", ModelDtype::kFp32}, {"bf16", ModelDtype::kBf16}},
                        "What parameters are kept in; the loss is computed in fp32 (tokens)"));
  keys.push_back(Bounded(Number("model.lora_rank", FIELD(model.lora_rank), "", 0,
                                "Rank of adapters lora_a and lora_b beside each hidden layer's "
                                "weight (Hu et al. 2021; mlp); 0: none"),
                         1024));
  keys.push_back(Choice("model.attention", FIELD(model.attention),
                        {{"fused", AttentionForm::kFused},
                         {"explicit", AttentionForm::kExplicit},
                         {"explicit_fp32", AttentionForm::kExplicitFp32}},
                        "The library's fused attention, or product, softmax and product one by "
                        "one, in the precision of the run or in fp32 (gpt)"));
  keys.push_back(Choice("model.attention_backend", FIELD(model.attention_backend),
                        {{"auto", AttentionBackend::kAuto},
                         {"flash", AttentionBackend::kFlash},
                         {"math", AttentionBackend::kMath},
                         {"efficient", AttentionBackend::kEfficient},
                         {"cudnn", AttentionBackend::kCudnn}},
                        "Which of its fused attentions the library may take, and no other; auto: "
                        "it chooses, by device, shapes and precision (the CPU has flash and math; "
                        "gpt)"));
  keys.push_back(Choice("model.positions", FIELD(model.positions),
                        {{"learned", Positions::kLearned},
                         {"rotary", Positions::kRotary},
                         {"none", Positions::kNone}},
                        "Added to the token embeddings, turned into queries and keys (Su et al. "
                        "2021), or left to the causal mask (gpt)"));
  keys.push_back(Number("model.rotary_scale", FIELD(model.rotary_scale), "", 0,
                        "Factor on the positions that rotary ones are made of; less than 1 "
                        "stretches them over longer sequences (gpt)"));
  keys.push_back(Plain("model.qk_norm", FIELD(model.qk_norm),
                       "Give queries and keys mean square 1 before their product (Henry et al. "
                       "2020; gpt)"));
  keys.push_back(
      Choice("model.similarity", FIELD(model.similarity),
             {{"cosine", SimilarityKind::kCosine}, {"distance", SimilarityKind::kDistance}},
             "Logits: cosine of the angle to each class's prototype, or the negative "
             "squared distance from it (prototype)"));
  keys.push_back(Number("model.logit_scale", FIELD(model.logit_scale), "", 0,
                        "Factor on similarities: the inverse temperature (prototype)"));
  keys.push_back(Choice("model.normalise", FIELD(model.normalise),
                        {{"clamped", NormaliseForm::kClamped},
                         {"eps_inside", NormaliseForm::kEpsInside},
                         {"eps_outside", NormaliseForm::kEpsOutside},
                         {"plain", NormaliseForm::kPlain}},
                        "x / max(|x|, eps), x / sqrt(sum x^2 + eps), x / (sqrt(sum x^2) + eps) or "
                        "x / sqrt(sum x^2), with eps 1e-8 (prototype, cosine)"));
  keys.push_back(Choice("model.input_norm", FIELD(model.input_norm),
                        {{"none", InputNorm::kNone},
                         {"two_pass", InputNorm::kTwoPass},
                         {"one_pass", InputNorm::kOnePass},
                         {"one_pass_clamped", InputNorm::kOnePassClamped}},
                        "Standardise each input, with the variance as mean (x - mean)^2, or as "
                        "mean x^2 - mean^2, of which rounding can leave less than 0 (prototype)"));
  keys.push_back(Number("model.init_scale", FIELD(model.init_scale), "", 0,
                        "Factor on the initial weights of blocks and hidden layers"));
  keys.push_back(Plain("model.trainable", FIELD(model.trainable),
                       "Comma-separated globs of the parameters that should train"));
  keys.push_back(Plain("model.tied_embeddings", FIELD(model.tied_embeddings),
                       "One table for the token embeddings and the head (Press and Wolf 2017), "
                       "times the root of the width where it embeds (gpt)"));
  keys.push_back(Plain("model.activation_checkpointing", FIELD(model.activation_checkpointing),
                       "Keep only the input of each block, and compute the rest again in the "
                       "backward pass (gpt)"));
}

void AddLossKeys(std::vector<RecipeKey>& keys) {
  keys.push_back(Choice("loss.form", FIELD(model.loss.form),
                        {{"fused", LossForm::kFused},
                         {"log_of_softmax", LossForm::kLogOfSoftmax},
                         {"plain_softmax", LossForm::kPlainSoftmax},
                         {"plain_log_sum_exp", LossForm::kPlainLogSumExp}},
                        "Cross entropy by the library's one stable operation, by the logarithm of "
                        "a softmax, of a softmax without subtracting the largest logit, or by log "
                        "sum exp without subtracting it"));
  keys.push_back(Number("loss.eps", FIELD(model.loss.eps), "", 0,
                        "Added to what a logarithm is taken of; not in the form fused"));
  keys.push_back(
      WithRole(KeyRole::kRegularisation,
               Bounded(Number("loss.label_smoothing", FIELD(model.loss.label_smoothing), "", 0,
                              "Share of each target that is spread evenly over all classes; "
                              "only in the form fused"),
                       1)));
  keys.push_back(Number("loss.weight", FIELD(model.loss.weight), "", 0,
                        "Factor on the loss, as that of one task among several"));
  keys.push_back(
      WithRole(KeyRole::kRegularisation,
               Number("loss.z_loss", FIELD(model.loss.z_loss), "", 0,
                      "Factor on an auxiliary loss of training, the squared logarithm of the "
                      "softmax's denominator at each target (Chowdhery et al. 2022); 0: none")));
  keys.push_back(Plain("loss.per_sequence", FIELD(model.loss.per_sequence),
                       "Mean over each sequence's targets first, then over sequences, in place of "
                       "the mean over all targets of the batch"));
  keys.push_back(Plain("loss.guard_denominator", FIELD(model.loss.guard_denominator),
                       "A mean over no target at all is 0"));
}

void AddSamplerKeys(std::vector<RecipeKey>& keys) {
  keys.push_back(Choice("sampler.uneven", FIELD(sampler_uneven),
                        {{"none", UnevenMode::kNone},
                         {"drop_last", UnevenMode::kDropLast},
                         {"pad", UnevenMode::kPad},
                         {"join", UnevenMode::kJoin}},
                        "What to do when ranks have different numbers of batches"));
  keys.push_back(Plain("sampler.shuffle", FIELD(sampler_shuffle), "A new order each epoch"));
  keys.push_back(
      Plain("sampler.deal_out", FIELD(sampler_deal_out),
            "Shuffle all samples of the epoch and deal them out to the ranks one by one, "
            "so that a step's samples do not depend on the number of ranks; else each "
            "rank shuffles its own shard"));
  keys.push_back(Number("sampler.bucket_batches", FIELD(sampler_bucket_batches), "batches", 0,
                        "Sort so many batches of the shuffled order by length, and shuffle the "
                        "batches: rows of a batch are of similar lengths; 0: do not"));
}

void AddOptimizerKeys(std::vector<RecipeKey>& keys) {
  keys.push_back(Choice("optimizer.kind", FIELD(optimizer.kind),
                        {{"sgd", OptimizerKind::kSgd}, {"adamw", OptimizerKind::kAdamW}},
                        "Update rule"));
  keys.push_back(WithRole(KeyRole::kLearningRate, Number("optimizer.lr", FIELD(optimizer.lr), "", 0,
                                                         "Peak learning rate")));
  keys.push_back(
      Bounded(Number("optimizer.momentum", FIELD(optimizer.momentum), "", 0, "Momentum (sgd)"), 1));
  keys.push_back(WithRole(KeyRole::kWeightDecay,
                          Number("optimizer.weight_decay", FIELD(optimizer.weight_decay), "", 0,
                                 "L2 term in the gradient (sgd) or decoupled decay (adamw)")));
  keys.push_back(Plain("optimizer.no_decay", FIELD(optimizer.no_decay),
                       "Comma-separated globs of the parameters that make a group without weight "
                       "decay: \"*.bias,*norm*,embed.*\""));
  keys.push_back(Bounded(
      Number("optimizer.beta1", FIELD(optimizer.beta1), "", 0, "Decay of the first moment (adamw)"),
      1));
  keys.push_back(Bounded(Number("optimizer.beta2", FIELD(optimizer.beta2), "", 0,
                                "Decay of the second moment (adamw)"),
                         1));
  keys.push_back(
      Number("optimizer.eps", FIELD(optimizer.eps), "", 0, "Added to the denominator (adamw)"));
  keys.push_back(Choice("optimizer.form", FIELD(optimizer.form),
                        {{"fused", UpdateForm::kFused}, {"plain", UpdateForm::kPlain}},
                        "The library's fused update, or one operation after the other"));
  keys.push_back(Choice(
      "optimizer.state_dtype", FIELD(optimizer.state_dtype),
      {{"fp32", StateDtype::kFp32},
       {"bf16", StateDtype::kBf16},
       {"fp16", StateDtype::kFp16},
       {"int8", StateDtype::kInt8}},
      "What momentum and moments are kept in; int8: 8 bits each and a scale for each block of 256 "
      "(Dettmers et al. 2022)"));
  keys.push_back(Choice("optimizer.offload", FIELD(optimizer.offload),
                        {{"none", Offload::kNone}, {"disk", Offload::kDisk}},
                        "Where momentum and moments are kept; disk: in files without a name in "
                        "$TMPDIR, else /var/tmp, that are mapped into memory"));
  keys.push_back(
      Choice("optimizer.master_weights", FIELD(optimizer.master_weights),
             {{"auto", Masters::kAuto}, {"fp32", Masters::kFp32}, {"none", Masters::kNone}},
             "Copies of the parameters that the optimizer updates and rounds back, with "
             "gradients in fp32; auto: in fp32 where model.dtype has 16 bits"));
  keys.push_back(Plain("optimizer.in_backward", FIELD(optimizer.in_backward),
                       "Update each parameter as soon as the backward pass has its gradient, and "
                       "free that (Lv et al. 2023)"));
  keys.push_back(
      WithRole(KeyRole::kClipNorm, Number("optimizer.clip_norm", FIELD(optimizer.clip_norm), "", 0,
                                          "Largest global gradient norm; 0: no clipping")));
  keys.push_back(Choice("schedule.kind", FIELD(schedule.kind),
                        {{"constant", ScheduleKind::kConstant},
                         {"warmup_cosine", ScheduleKind::kWarmupCosine},
                         {"warmup_linear", ScheduleKind::kWarmupLinear}},
                        "Learning rate over the run; the warmup is linear from 0"));
  keys.push_back(
      WithRole(KeyRole::kWarmupSteps, Number("schedule.warmup_steps", FIELD(schedule.warmup_steps),
                                             "steps", 0, "Steps until the peak learning rate")));
  keys.push_back(Number("schedule.final_ratio", FIELD(schedule.final_ratio), "", 0,
                        "Learning rate at the end of the run, as a part of the peak"));
  keys.push_back(Number("schedule.restart_step", FIELD(schedule.restart_step), "steps", 0,
                        "Warm restart: the decay ends here and begins again; 0: none"));
  keys.push_back(Number("schedule.restart_ratio", FIELD(schedule.restart_ratio), "", 0,
                        "Learning rate at the restart, as a multiple of the peak"));
}

void AddRunKeys(std::vector<RecipeKey>& keys) {
  keys.push_back(Number("steps", FIELD(steps), "steps", 1, "Optimizer steps of the whole run"));
  keys.push_back(WithRole(KeyRole::kAccumulation,
                          Number("accumulation", FIELD(accumulation), "micro-batches", 1,
                                 "Micro-batches whose gradients make one optimizer step")));
  keys.push_back(
      WithRole(KeyRole::kRegularisation,
               Bounded(Number("scheduled_sampling.share", FIELD(scheduled_sampling.share), "", 0,
                              "Share of the training inputs behind targets that count which are "
                              "the model's own predictions, made one after the other (tokens)"),
                       1)));
  keys.push_back(Number("scheduled_sampling.ramp_steps", FIELD(scheduled_sampling.ramp_steps),
                        "steps", 0, "Steps in which that share grows from 0"));
  keys.push_back(WithRole(KeyRole::kSaveEvery,
                          Number("checkpoint.every", FIELD(checkpoint_every), "steps", 0,
                                 "Save after every so many steps; 0: only at the end of a phase")));
  keys.push_back(
      Number("checkpoint.keep", FIELD(checkpoint_keep), "", 1, "Newest checkpoints that stay"));
  keys.push_back(Plain("checkpoint.require_complete", FIELD(checkpoint_require_complete),
                       "Refuse to resume from a checkpoint that lacks part of the state, or "
                       "whose parts are of different steps"));
  keys.push_back(Choice("checkpoint.on_failure", FIELD(checkpoint_on_failure),
                        {{"stop", OnFailedSave::kStop}, {"go_on", OnFailedSave::kGoOn}},
                        "What to do when a checkpoint cannot be written: end the run, or train on "
                        "(event checkpoint_failed)"));
  keys.push_back(Plain("checkpoint.asynchronous", FIELD(checkpoint_asynchronous),
                       "Copy the state at the step and write it beside training; the next save "
                       "and the end of the run wait for it"));
  keys.push_back(Plain("checkpoint.digests", FIELD(checkpoint_digests),
                       "Write the digest of each entry into the event checkpoint_saved"));
  keys.push_back(Plain("checkpoint.elastic", FIELD(checkpoint_elastic),
                       "Let another number of ranks resume from a checkpoint: the global batch and "
                       "the position in the epoch stay what they were. Needs sampler.deal_out"));
  keys.push_back(Choice("checkpoint.tokenizer", FIELD(checkpoint_tokenizer),
                        {{"ignore", OtherTokenizer::kIgnore},
                         {"stop", OtherTokenizer::kStop},
                         {"restore", OtherTokenizer::kRestore}},
                        "What to do when a run goes on from a checkpoint with another tokenizer "
                        "than that of its data: go on, end the run, or read the text with the "
                        "checkpoint's (event other_tokenizer)"));
  keys.push_back(Number("resume.rewarm_steps", FIELD(resume_rewarm_steps), "steps", 0,
                        "Ramp the learning rate up again over so many steps after a resume"));
  keys.push_back(
      Choice("audit.coverage", FIELD(audit_coverage),
             {{"none", OnGaps::kNone}, {"report", OnGaps::kReport}, {"stop", OnGaps::kStop}},
             "At the first update, look for parameters that should train and get no "
             "gradient, or get one and are not updated: event untrained. Then go on, "
             "or stop"));
  keys.push_back(Number("audit.repeat_every", FIELD(audit_repeat_every), "steps", 0,
                        "Make the passes of every so many steps once more, and compare loss and "
                        "gradients bit for bit: event passes_differ; 0: never"));
  keys.push_back(Choice("audit.on_difference", FIELD(audit_on_difference),
                        {{"report", OnDifference::kReport},
                         {"stop", OnDifference::kStop},
                         {"vote", OnDifference::kVote}},
                        "Where the two differ: go on with the first, stop, or make them a third "
                        "time and go on with what two agree on"));
  keys.push_back(Plain("diagnose.nonfinite", FIELD(diagnose_nonfinite),
                       "Run a step whose loss or gradients are not finite again, to name module, "
                       "tensor and backward op: event first_nonfinite"));
  keys.push_back(Bounded(Number("diagnose.evidence_mb", FIELD(diagnose_evidence_mb), "MB", 0,
                                "What such a step may save into the folder evidence-rank<k>.*; 0: "
                                "nothing is saved"),
                         4096));
}

void AddRankKeys(std::vector<RecipeKey>& keys) {
  keys.push_back(Bounded(
      Number("parallel.ranks", FIELD(parallel_ranks), "ranks", 1, "Data-parallel processes"), 64));
  keys.push_back(Choice("parallel.launcher", FIELD(parallel_launcher),
                        {{"own", RankLauncher::kOwn},
                         {"torchrun", RankLauncher::kTorchrun},
                         {"mpirun", RankLauncher::kMpirun},
                         {"srun", RankLauncher::kSrun}},
                        "Who starts the ranks: the harness, or the launcher of that name"));
  keys.push_back(Number("parallel.timeout_s", FIELD(parallel_timeout_s), "s", 0.001,
                        "How long a collective waits for its peers"));
  keys.push_back(Number("parallel.bucket_mb", FIELD(parallel_bucket_mb), "MB", 0.001,
                        "Gradient bytes that are reduced in one collective"));
  keys.push_back(Plain("parallel.overlap", FIELD(parallel_overlap),
                       "Reduce a bucket of gradients while the backward pass computes others, in a "
                       "thread and on a stream of its own"));
  keys.push_back(Choice("parallel.reduce_dtype", FIELD(parallel_sent),
                        {{"auto", SentDtype::kAuto}, {"bf16", SentDtype::kBf16}},
                        "What gradients are rounded to when they are reduced; auto: to nothing"));
  keys.push_back(Choice("parallel.rendezvous", FIELD(parallel_rendezvous),
                        {{"file", RendezvousKind::kFile}, {"tcp", RendezvousKind::kTcp}},
                        "Where ranks meet: in a file of the run, or at a store that rank 0 serves "
                        "at MASTER_ADDR and MASTER_PORT"));
  keys.push_back(Plain("parallel.check_collectives", FIELD(parallel_check_collectives),
                       "Before each collective, compare operation, shape and dtype over the ranks, "
                       "and end the run where they differ, with what each rank calls"));
  keys.push_back(Plain("parallel.init_sync", FIELD(parallel_init_sync),
                       "Begin with the parameters of rank 0 on all ranks"));
  keys.push_back(Bounded(Number("parallel.zero_stage", FIELD(parallel_zero_stage), "", 0,
                                "What a rank has of its part of all elements alone (Rajbhandari et "
                                "al. 2020): 1: the optimizer's state; 2: gradients too; 3: "
                                "parameters too"),
                         3));
  keys.push_back(Number("log.every", FIELD(log_every), "steps", 0,
                        "Log the targets of a step after every so many steps: event logged; 0: "
                        "never"));
  keys.push_back(Plain("log.over_ranks", FIELD(log_over_ranks),
                       "Log the sum over the ranks, which is a collective; else the rank's own"));
  keys.push_back(
      Plain("log.rank_zero_only", FIELD(log_rank_zero_only), "Only rank 0 calls the logger"));
  keys.push_back(Choice(
      "device", FIELD(device),
      {{"auto", DeviceChoice::kAuto}, {"cpu", DeviceChoice::kCpu}, {"cuda", DeviceChoice::kCuda}},
      "Where tensors live; auto: a GPU for each rank when there are as many, "
      "else the CPU"));
  keys.push_back(Plain("deterministic", FIELD(deterministic),
                       "Only operations that give the same bits each time; an operation that has "
                       "no such form ends the run"));
  keys.push_back(Bounded(Number("threads", FIELD(threads), "threads", 1,
                                "Of the CPU, in each rank; large sums round differently with "
                                "another number"),
                         256));
  keys.push_back(Number("parallel.average_every", FIELD(parallel_average_every), "steps", 0,
                        "Replace parameters by their mean over the ranks after every so many "
                        "steps; 0: never"));
  keys.push_back(Number("parallel.check_every", FIELD(parallel_check_every), "steps", 0,
                        "Compare the ranks' parameters after every so many steps: event desync; 0: "
                        "never"));
  keys.push_back(
      Plain("parallel.keep_digests", FIELD(parallel_keep_digests),
            "Keep digests of the parameters after each step until the next comparison, so "
            "that desync names the first step after which the ranks differ"));
  keys.push_back(Choice("parallel.on_desync", FIELD(parallel_on_desync),
                        {{"none", OnDesync::kNone},
                         {"stop", OnDesync::kStop},
                         {"broadcast", OnDesync::kBroadcast},
                         {"rollback", OnDesync::kRollback}},
                        "What to do when they differ: take over parameters and optimizer state of "
                        "rank 0, or go back to the last checkpoint on which all agree"));
}

void AddPrecisionKeys(std::vector<RecipeKey>& keys) {
  keys.push_back(WithRole(
      KeyRole::kPrecision,
      Choice("precision", FIELD(precision),
             {{"fp32", Precision::kFp32}, {"bf16", Precision::kBf16}, {"fp16", Precision::kFp16}},
             "Of matrix products and attention (autocast); weights stay fp32")));
  keys.push_back(Plain("precision.tf32", FIELD(precision_tf32),
                       "Let a GPU round what it multiplies in fp32 to 10 bits of mantissa, for its "
                       "tensor cores (cuda)"));
  keys.push_back(Plain("cuda_graphs", FIELD(cuda_graphs),
                       "Record the forward and backward pass of each shape of batch as a CUDA "
                       "graph, and replay it (cuda)"));
  keys.push_back(Plain("precision.reduced_sums", FIELD(precision_reduced_sums),
                       "Let a GPU add up parts of products of matrices in their 16 bits, where "
                       "they are in bf16 or fp16; else in fp32 (cuda)"));
  keys.push_back(Choice("scaler.kind", FIELD(scaler.kind),
                        {{"none", ScalerKind::kNone},
                         {"static", ScalerKind::kStatic},
                         {"dynamic", ScalerKind::kDynamic}},
                        "Loss scaling: off, by a fixed scale, or by one that follows overflows"));
  keys.push_back(Bounded(Number("scaler.init_scale", FIELD(scaler.init_scale), "times", 1.0e-30,
                                "What the loss is multiplied by; with dynamic, at first"),
                         1.0e30));
  keys.push_back(Number("scaler.growth_factor", FIELD(scaler.growth_factor), "times", 1,
                        "On the scale after growth_interval good steps in a row (dynamic)"));
  keys.push_back(Bounded(Number("scaler.backoff_factor", FIELD(scaler.backoff_factor), "times",
                                1.0e-6, "On the scale after an overflow (dynamic)"),
                         1));
  keys.push_back(Bounded(Number("scaler.growth_interval", FIELD(scaler.growth_interval), "steps", 1,
                                "Good steps in a row until the scale grows (dynamic)"),
                         1 << 30));
  keys.push_back(Number("memory.limit_bytes", FIELD(memory_limit_bytes), "B", 0,
                        "Tensor memory of one rank, past which an allocation fails; 0: no limit"));
  keys.push_back(Plain("memory.expandable_segments", FIELD(memory_expandable_segments),
                       "Let the allocator of a GPU enlarge its segments, and give back pages that "
                       "are free, in place of segments of fixed sizes (cuda)"));
}

#undef FIELD

}  // namespace

const std::vector<RecipeKey>& RecipeTable() {
  static const std::vector<RecipeKey> table = [] {
    std::vector<RecipeKey> keys;
    AddModelKeys(keys);
    AddModelPartKeys(keys);
    AddLossKeys(keys);
    AddDataKeys(keys);
    AddSamplerKeys(keys);
    AddOptimizerKeys(keys);
    AddRunKeys(keys);
    AddRankKeys(keys);
    AddPrecisionKeys(keys);
    return keys;
  }();
  return table;
}

}  // namespace trainwreck
