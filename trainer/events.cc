#include "trainer/events.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace trainwreck {
namespace {

std::vector<EventInfo>& Described() {
  static std::vector<EventInfo> described;
  return described;
}

}  // namespace

EventKind::EventKind(std::string name, std::vector<std::string> fields, std::string doc)
    : name_(std::move(name)), fields_(std::move(fields)), is_free_(false) {
  Described().push_back({.name = name_, .fields = fields_, .doc = std::move(doc)});
}

EventKind EventKind::OfEveryTarget(std::string name) { return EventKind(std::move(name)); }

void EventKind::Check(const Json& fields) const {
  if (is_free_) return;
  for (const auto& [field, value] : fields.items()) {
    if (std::find(fields_.begin(), fields_.end(), field) == fields_.end()) {
      throw std::logic_error("event `" + name_ + "` is not described with a field `" + field + "`");
    }
  }
}

const std::vector<EventInfo>& TrainerEvents() { return Described(); }

namespace events {

const EventKind kFired = EventKind::OfEveryTarget("fired");
const EventKind kNonfiniteBatch(
    "nonfinite_batch", {"batch_step", "loss", "samples", "field"},
    "The first loss that is not finite, and which samples of its batch are at fault");
const EventKind kFirstNonfinite(
    "first_nonfinite",
    {"stage", "module", "tensor", "kind", "count", "elements", "backward_op", "forward_stack",
     "error"},
    "Where the first number that is not finite was born: stage data, parameters, forward, "
    "backward or after_backward; kind nan or inf; backward_op is the op of the backward pass that "
    "first returned a NaN, and forward_stack the module and the calls that it is the derivative "
    "of. Of the rank's own passes, so that the rank at fault says data, parameters, forward or "
    "backward and its peers after_backward");
const EventKind kEvidenceSaved(
    "evidence_saved", {"folder", "bytes", "left_out", "state"},
    "What the failing step had is in a folder; state: with the checkpoint from which it can be "
    "made again. See docs/guide/scenario.md");
const EventKind kRendezvousFailed(
    "rendezvous_failed", {"where", "missing", "what"},
    "The ranks did not meet: where this rank looked for them, the ranks that it waited for in vain "
    "(empty: it did not get to the place itself), and the error. The run ends with an exception");
const EventKind kLogged("logged", {"tokens", "over_ranks"},
                        "log.every: the targets of the step, of this rank or of all");
const EventKind kDesync(
    "desync", {"ranks", "tensors", "reference", "since_step"},
    "Rank 0 says so of all: these ranks' parameters differ, in these tensors, from those "
    "of the majority or, where there is none, of rank 0. With parallel.keep_digests, ranks and "
    "tensors are those of the first step after which they differ, since_step");
const EventKind kRebroadcast("rebroadcast", {"root", "entries"},
                             "Parameters and optimizer state of all ranks became those of one");
const EventKind kRolledBack("rolled_back", {"from_step", "to_step"},
                            "All ranks went back to a checkpoint on which they agree");
const EventKind kSampleRejected("sample_rejected", {"sample", "field", "position", "value", "why"},
                                "The loader's guard found a bad sample");
const EventKind kBatchSkipped("batch_skipped", {"samples"},
                              "The loader's guard dropped a whole batch");
const EventKind kCheckpointSaved(
    "checkpoint_saved", {"steps_done", "entries", "digest", "entry_digests"},
    "A checkpoint was handed to the store; digest is param_digest at that point, entry_digests has "
    "that of each entry (checkpoint.digests)");
const EventKind kCheckpointFailed("checkpoint_failed", {"steps_done", "what"},
                                  "A checkpoint could not be written, and training goes on "
                                  "(checkpoint.on_failure)");
const EventKind kCheckpointDamaged(
    "checkpoint_damaged", {"steps_done", "file_rank", "why"},
    "A checkpoint on disk is passed over: what is wrong with the file of which rank");
const EventKind kCheckpointIncomplete(
    "checkpoint_incomplete", {"steps_done", "missing"},
    "A checkpoint was refused because it lacks part of the state");
const EventKind kCheckpointMisfit(
    "checkpoint_misfit", {"steps_done", "entry", "why"},
    "A checkpoint was refused because an entry is of another model or of an optimizer whose state "
    "is divided otherwise, or, with checkpoint.require_complete, of another step");
const EventKind kResumed("resumed", {"from_step", "steps_done", "missing"},
                         "Training goes on from a checkpoint");
const EventKind kOtherTokenizer(
    "other_tokenizer", {"saved", "here", "merges_shared", "action"},
    "Training goes on from a checkpoint with another tokenizer than that of the data: the digests "
    "of both, how many of their merges are the same, and what checkpoint.tokenizer says to do");
const EventKind kUntrained(
    "untrained", {"parameters", "why"},
    "audit.coverage: at the first update these parameters had \"no gradient\", or one "
    "that is not 0 and \"no update\"");
const EventKind kException(
    "exception", {"what", "samples", "stage", "op", "within"},
    "The run ends with an error; samples are those of the batch in progress, stages those of "
    "out_of_memory. In a run with CUDA_LAUNCH_BLOCKING=1 also the operation that threw, and the "
    "one "
    "within which it was called");
const EventKind kOutOfMemory(
    "out_of_memory",
    {"stage", "requested_bytes", "allocated_bytes", "limit_bytes", "what", "owner", "owner_share",
     "bytes_by_owner", "activations_by_block", "site", "site_at", "site_share", "bytes_by_site",
     "reserved_bytes", "free_bytes"},
    "An allocation failed; stage is build, restore, data, forward, backward, reduce, "
    "update, log, evaluate or checkpoint. On a GPU, reserved_bytes are LibTorch's, its cache "
    "included, and free_bytes the device's. On the CPU, owner is what most of the memory was for: "
    "parameters, gradients, optimizer, activations, evaluation, logging or other; site and site_at "
    "are the function and the place in the code from which most of the owner's memory was "
    "allocated, site_share is their share of all. The run ends with an exception");
const EventKind kMemoryBlocks(
    "memory_blocks", {"peak_bytes", "activations_bytes", "by_block", "by_site"},
    "The step reached a new peak of memory: the bytes of activations in it, of each block of the "
    "model, and all bytes by the call site that allocated them (CPU). Only with "
    "memory.limit_bytes, or where a formula mentions it");
const EventKind kMemoryByStage(
    "memory_by_stage", {"stages"},
    "The stages that the loop entered in this step, in order: each with its name, the seconds "
    "before this event, the bytes that were in use then, by owner (on a GPU all), and peak_bytes, "
    "the most that was in use within it. Only where a formula mentions it; `trainwreck timeline "
    "--again` draws it");
const EventKind kMemoryMoments(
    "memory_moments", {"stages"},
    "The stages that the loop entered in this step, in order: each with its name, and with the "
    "bytes that were in use at each moment at which an allocation was followed by something freed. "
    "One of these moments is the peak (CPU). Only where a formula mentions it; `trainwreck fits` "
    "predicts by it");
const EventKind kDeviceOpened(
    "device_opened", {"kind", "name", "tf32", "reduced_sums", "allocator", "tells_of_xids"},
    "Where this rank's tensors live from here on, whether its products in fp32 are rounded "
    "(precision.tf32), and sums in them (precision.reduced_sums). allocator: the settings that "
    "LibTorch's allocator of a GPU was given, by PYTORCH_CUDA_ALLOC_CONF, PYTORCH_ALLOC_CONF and "
    "memory.expandable_segments. tells_of_xids: whether the GPU's driver tells this rank of "
    "critical "
    "errors; if not, as where a container lacks the right, no device_xid means nothing");
const EventKind kAttentionChosen(
    "attention_chosen", {"backend", "dtype", "documents", "gradient"},
    "Which of its fused attentions LibTorch takes: flash, efficient, cudnn or math; none: it "
    "cannot take any that model.attention_backend allows. At the first one of each kind: in "
    "this type, with a mask of documents, with a gradient to come");
const EventKind kDeviceXid(
    "device_xid", {"code", "meaning"},
    "The GPU's driver told of a critical error: its number, and what that means in NVIDIA's "
    "catalogue (empty: look it up there). Of the whole GPU: another program on it may be the "
    "cause. A run that ends with an exception has it in the event exception, too");
const EventKind kDeviceThrottled(
    "device_throttled", {"reasons"},
    "The GPU's clocks were lowered, or for another reason than before: power_cap, power_brake, "
    "sw_thermal, hw_thermal, hw_slowdown");
const EventKind kDeviceRowsRemapped(
    "device_rows_remapped", {"correctable", "uncorrectable", "pending", "failed"},
    "Rows of the GPU's memory were replaced because of errors, or, when the run began, some wait "
    "for a reset (pending) or could not be (failed); how many there are in the life of the GPU");
const EventKind kPassesDiffer(
    "passes_differ", {"parameters", "loss", "loss_again", "action"},
    "audit.repeat_every: the passes of this step, made twice, do not agree: the parameters whose "
    "gradients differ, both losses, and whether the run goes on with the first ones (report), with "
    "what two of three agree on (vote), or stops (stop)");
const EventKind kPassesRecorded("passes_recorded", {"inputs", "records"},
                                "cuda_graphs: the passes of batches whose inputs have this shape "
                                "are replayed from here on; and "
                                "how many shapes have a record");
const EventKind kEvaluated("evaluated", {"loss", "batches", "data"},
                           "An evaluation; data is held_out or training");
const EventKind kOverlap(
    "overlap", {"training", "equal", "near", "held_out", "held_out_seen", "dropped"},
    "audit.overlap, data.duplicates: of the training samples, those that are equal to a held-out "
    "one, and the others that are near to one; of the held-out samples, those that are in the "
    "training data; and how many training samples were dropped");
const EventKind kTellingColumns(
    "telling_columns", {"count", "columns", "right"},
    "audit.columns: how many columns of the features tell the label by themselves, which ones, and "
    "the share of held-out samples that the rule of each labels rightly");
const EventKind kBestRestored(
    "best_restored", {"best_step", "loss", "stopped"},
    "early_stop.patience: the model has the weights again that it had after best_step, with the "
    "lowest held-out loss; stopped: the run ends here for that, before its last step");
const EventKind kConsolidated(
    "consolidated", {"samples", "strength", "fisher_mean"},
    "finetune.consolidation: the weights of the task before, and how much each matters there, were "
    "taken from these samples");

}  // namespace events
}  // namespace trainwreck
