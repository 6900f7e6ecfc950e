// The parts of the training loop. Each is an interface with a plain implementation beside it; the
// loop (loop.h) knows only these. Injectors wrap them (injectors/injector.h); nothing here knows of
// injectors.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "harness/protocol/json.h"
#include "trainer/device_health.h"
#include "trainer/events.h"
#include "trainer/memory_owner.h"

namespace trainwreck {

// Declared in trainer/models/model.h, which takes four times as long to compile as this whole
// header.
class Model;

class Tokenizer;          // trainer/data/tokenizer.h
class Division;           // trainer/optimizers/division.h
class DividedParameters;  // trainer/ranks/divided_parameters.h

// The state of a run for resuming it, by entry name: "model.head.weight",
// "optimizer.exp_avg.head.weight", "optimizer.step", "schedule.step", "sampler.epoch",
// "sampler.position", "rng.torch", "loop.step", ... Scalars are 0-dimensional tensors.
using StateDict = std::map<std::string, at::Tensor>;

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

// All parameters, in the order in which the model registered them. A shared parameter is listed
// once, by its first name.
NamedTensors ParametersOf(const Model& model);
// All buffers, such as running statistics.
NamedTensors BuffersOf(const Model& model);

// One training example. Tokens: input and target int64 [seq_len], weight float [seq_len].
// Features: input float [features], target int64 [], weight float [].
struct Sample {
  std::int64_t id = 0;
  at::Tensor input;
  at::Tensor target;
  at::Tensor weight;  // weight of each target in the loss
  // int64 [seq_len]: the number of the token's document in the row; undefined: the row is one
  // document.
  at::Tensor document = {};
};

// Samples stacked along a new first dimension.
struct Batch {
  std::vector<std::int64_t> ids;
  at::Tensor inputs;
  at::Tensor targets;
  at::Tensor weights;
  at::Tensor documents = {};  // undefined where samples have none
  int size() const { return static_cast<int>(ids.size()); }
};

// All tensors of a batch.
inline constexpr at::Tensor Batch::*kBatchTensors[] = {&Batch::inputs, &Batch::targets,
                                                       &Batch::weights, &Batch::documents};

class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual std::int64_t size() const = 0;
  // Several threads may call it at the same time (loader.workers).
  virtual Sample Get(std::int64_t id) const = 0;
  // Bound of valid tokens or labels: what the loader's guard checks against.
  virtual std::int64_t input_limit() const = 0;   // vocabulary; 0: inputs are not tokens
  virtual std::int64_t target_limit() const = 0;  // vocabulary or number of classes
  // Entropy per target in nats. A model with a lower loss must have a leak. Empty: unknown.
  virtual std::optional<double> entropy_floor() const { return std::nullopt; }
  // Tokens of a sample in front of its padding; 0: all samples have the same.
  virtual std::int64_t length(std::int64_t /*id*/) const { return 0; }
  // How text became tokens; null: it is no text.
  virtual std::shared_ptr<const Tokenizer> tokenizer() const { return nullptr; }
  // Reads the text with another one. Nobody may call Get() meanwhile.
  virtual void ReadWith(const std::shared_ptr<const Tokenizer>& /*tokenizer*/) {}
};

// A data set around another, with other samples.
class DatasetAround : public Dataset {
 public:
  explicit DatasetAround(std::unique_ptr<Dataset> inner) : inner_(std::move(inner)) {}
  std::int64_t size() const override { return inner_->size(); }
  std::int64_t input_limit() const override { return inner_->input_limit(); }
  std::int64_t target_limit() const override { return inner_->target_limit(); }
  std::optional<double> entropy_floor() const override { return inner_->entropy_floor(); }
  std::int64_t length(std::int64_t id) const override { return inner_->length(id); }
  std::shared_ptr<const Tokenizer> tokenizer() const override { return inner_->tokenizer(); }
  void ReadWith(const std::shared_ptr<const Tokenizer>& tokenizer) override {
    inner_->ReadWith(tokenizer);
  }

 protected:
  const Dataset& inner() const { return *inner_; }

 private:
  std::unique_ptr<Dataset> inner_;
};

// Which samples belong to which rank in an epoch.
class Shards {
 public:
  virtual ~Shards() = default;
  virtual std::vector<std::int64_t> IdsOf(int rank, std::int64_t epoch) const = 0;
};

// The order in which this rank sees its shard.
class Sampler {
 public:
  virtual ~Sampler() = default;
  // The ids of the next batch; empty: this rank's epoch is over, and the next call starts a new
  // epoch.
  virtual std::vector<std::int64_t> Next() = 0;
  // After an empty Next(): the epoch goes on for other ranks; this one only shadows their
  // collectives.
  virtual bool is_shadow() const { return false; }
  virtual std::int64_t epoch() const = 0;
  virtual void Save(StateDict& state) const = 0;
  virtual void Load(const StateDict& state) = 0;  // entries that are missing keep their values
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  virtual void ZeroGrad() = 0;
  virtual void Step(double lr) = 0;  // parameters without a gradient are left alone
  virtual void Save(StateDict& state) const = 0;
  virtual void Load(const StateDict& state) = 0;  // entries that are missing keep their values
};

// Multiplies the loss, so that gradients in 16 bits neither vanish nor overflow, and says which
// updates to leave out.
class LossScaler {
 public:
  virtual ~LossScaler() = default;
  virtual double scale() const = 0;
  // Whether an update may be left out; all ranks must then agree.
  virtual bool skips_updates() const = 0;
  // The weight in the step's mean of a micro-batch whose own loss is a mean over `count`.
  virtual double Weigh(double count) const { return count; }
  // The start of a micro-batch's backward pass: its loss times its share in the step and the scale.
  virtual at::Tensor Scale(const at::Tensor& loss, double share) const {
    const at::Tensor shared = share == 1.0 ? loss : loss.mul(share);
    return scale() == 1.0 ? shared : shared.mul(scale());
  }
  // Divides the gradients by the scale, in place. True when an element overflowed (is not finite).
  virtual bool Unscale(const std::vector<at::Tensor>& gradients) = 0;
  // Takes, once a step, whether the gradients of any rank overflowed.
  virtual void Update(bool overflowed) = 0;
  virtual void Save(StateDict& state) const = 0;
  virtual void Load(const StateDict& state) = 0;  // entries that are missing keep their values
};

class Schedule {
 public:
  virtual ~Schedule() = default;
  virtual double LearningRate() const = 0;  // of the current step
  virtual void Advance() = 0;               // one optimizer step was made
  virtual void Save(StateDict& state) const = 0;
  virtual void Load(const StateDict& state) = 0;
};

enum class Reduction { kSum, kMax, kMin };

// Collectives over the ranks of the run; every rank must make the same calls in the same order.
// Throws std::runtime_error when a peer is gone or the timeout passes.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int world_size() const = 0;
  virtual void AllReduce(at::Tensor& tensor, Reduction reduction) = 0;  // in place
  virtual void Broadcast(at::Tensor& tensor, int root) = 0;
  // Sums on rank `root` alone, in place; what the others have then is of no use. One that does not
  // know better sums on all ranks.
  virtual void Reduce(at::Tensor& tensor, int /*root*/) { AllReduce(tensor, Reduction::kSum); }
  virtual void Barrier() = 0;
};

// How the ranks of a run find each other.
struct GroupOptions {
  int rank = 0;
  int world_size = 1;
  // The file in which the ranks of this attempt meet. A file that an earlier group used is refused.
  // Empty: they meet at a store that rank 0 serves over TCP.
  std::string rendezvous_file;
  std::string address;  // host of rank 0, and the port of the store
  int port = 0;
  int ranks_here = 0;        // of the world, those on this machine; 0: nobody knows
  bool check_calls = false;  // compare every call over the ranks before it is made
  double timeout_s = 30;     // of the rendezvous and of each call
  std::string dump_dir;  // where a backend may write its own records of a failure; empty: nowhere
};

// Bytes allocated by tensors on the device.
struct MemoryUse {
  std::int64_t allocated_bytes = 0;  // by live tensors
  std::int64_t peak_bytes = 0;       // of allocated_bytes, since ResetMemoryPeak()
  // Of allocated_bytes; empty: the device does not know, nor those of the peak.
  std::optional<MemoryByOwner> by_owner = {};
  std::optional<MemoryByOwner> peak_by_owner = {};
  // Of these, activations by part of the forward pass (CPU).
  std::vector<std::int64_t> peak_by_part = {};
  std::vector<std::int64_t> peak_by_site = {};  // of all: by call site (MemorySites; CPU)
  // Since ResetMemoryPeak(), at each moment where it rose before and fell after (FollowMemory).
  std::vector<std::int64_t> moments = {};
  // What its allocator holds, in use or not; empty: it keeps nothing that is not in use.
  std::optional<std::int64_t> reserved_bytes = {};
};

// Work of a device that was recorded once, and is done again by one launch.
class RecordedWork {
 public:
  virtual ~RecordedWork() = default;
  // Queues it: the same operations, on the same memory.
  virtual void Replay() = 0;
};

// The device of this rank's tensors, and everything in the loop that depends on it. Used by one
// thread. Work on a device is queued and runs in order; a function waits for it only where its
// comment says so.
class Device {
 public:
  virtual ~Device() = default;
  virtual at::Device torch_device() const = 0;
  virtual std::string name() const = 0;  // "cpu", or the vendor's name: "NVIDIA H200"
  // A communicator for two ranks or more; blocks until all are there. Throws as Communicator's
  // calls do.
  virtual std::unique_ptr<Communicator> MakeCommunicator(const GroupOptions& options) = 0;
  // The batch on this device. The copy is queued, but the batch may be freed at once.
  virtual Batch Move(const Batch& batch) const = 0;
  // Starts to copy the batch beside the work that is queued. Move() of this batch takes the copy.
  virtual void CopyAhead(const Batch& /*batch*/) {}
  // Records what `queue` queues, without doing it (a CUDA graph). `queue` must not wait for the
  // device. Tensors that it makes keep their memory as long as the record. Null: no such device.
  virtual std::unique_ptr<RecordedWork> Record(const std::function<void()>& /*queue*/) {
    return nullptr;
  }
  // Saves the states of the generators that a step on this device draws from: LibTorch's CPU
  // generator, "rng.torch", and the device's own.
  virtual void SaveRng(StateDict& state) const = 0;
  virtual void LoadRng(const StateDict& state) = 0;  // entries that are missing keep their values
  virtual std::optional<MemoryUse> Memory() const = 0;  // empty: nobody counts
  virtual void ResetMemoryPeak() = 0;
  virtual void FollowMemory() {}  // keeps the moments from here on, where the device can
  // Limits the memory: an allocation beyond `bytes` throws c10::OutOfMemoryError from now on; 0: no
  // limit. The CPU counts tensors' bytes, a GPU the segments that LibTorch takes from the driver,
  // which are larger.
  virtual void LimitMemory(std::int64_t bytes) = 0;
  // Reads the sensors. Empty: there are none, or they were read less than a second ago.
  virtual std::optional<DeviceHealth> Health() = 0;
  // Reads them whenever they were read before, for the report of an error. Waits a moment for what
  // the driver says of it.
  virtual std::optional<DeviceHealth> HealthAfterError() { return std::nullopt; }
  // Whether readings have the critical errors that the driver knows of. If not, none means nothing.
  virtual bool TellsOfXids() const { return false; }
  // What the program does from here on, for the ranges of a profiler.
  virtual void BeginRange(const char* /*name*/) {}
  // Time by the device's own clock. The two calls are queued between its work; TimedSeconds waits
  // for what lies between them. Empty: it has no clock.
  virtual void BeginTiming() {}
  virtual void EndTiming() {}
  virtual std::optional<double> TimedSeconds() { return std::nullopt; }
};

// Stores states on disk, by the number of steps done.
class CheckpointStore {
 public:
  virtual ~CheckpointStore() = default;
  // Atomic: after a crash at any point the newest whole checkpoint can still be read.
  virtual void Save(int steps_done, const StateDict& state) = 0;
  virtual std::vector<int> List() const = 0;         // steps done of whole checkpoints, ascending
  virtual StateDict Load(int steps_done) const = 0;  // throws std::runtime_error when it is damaged
};

// Acts at points of the loop: for telemetry and for injectors.
class LoopHook {
 public:
  virtual ~LoopHook() = default;
  virtual void OnStart() {}                 // all parts are built, nothing is trained yet
  virtual void OnStepBegin(int step) {}     // before the batch is drawn
  virtual void OnBackwardDone(int step) {}  // gradients are there, not reduced yet
  virtual void OnStepEnd(int step) {
  }                                // parameters are updated, the step's record is not written yet
  virtual void OnLog(int step) {}  // the logger is called; the step's gradients are there
  virtual void OnEvaluation(int step) {}  // the model is in evaluation mode, no batch is judged yet
};

// The stage of the loop, for example to say where memory ran out.
enum class Stage {
  kBuild,
  kRestore,
  kData,
  kForward,
  kBackward,
  kReduce,
  kUpdate,
  kLog,
  kEvaluate,
  kCheckpoint
};
const char* ToString(Stage stage);

// Where the loop stands; parts and wrappers may hold a reference to it.
struct Clock {
  int step = 0;  // of the optimizer step in progress, from 0
  std::string phase = "train";
  int attempt = 0;
  Stage stage = Stage::kBuild;
  std::function<void(Stage)> on_stage = nullptr;  // called when the loop enters one; may be empty

  void Enter(Stage next) {
    stage = next;
    if (on_stage) on_stage(next);
  }
};

// The step that this thread works for: the clock's, or the later one of the AheadScope around it.
int StepOfThread(const Clock& clock);

// Around work for a later step, as a loader's worker does it, who must not read the clock's step.
class AheadScope {
 public:
  explicit AheadScope(int step);
  ~AheadScope();
  AheadScope(const AheadScope&) = delete;
  AheadScope& operator=(const AheadScope&) = delete;
};

struct Parts {
  std::unique_ptr<Device> device;
  std::unique_ptr<Communicator> communicator;
  std::unique_ptr<Dataset> eval_data;
  std::unique_ptr<Dataset> train_data;
  std::unique_ptr<Dataset> earlier_data;  // of the task before, where fine-tuning needs it
  std::unique_ptr<Shards> shards;
  std::unique_ptr<Sampler> sampler;
  std::shared_ptr<Model> model;
  // ZeRO: who owns which elements of the model, and its parameters where they are divided.
  std::shared_ptr<const Division> division;
  std::shared_ptr<DividedParameters> divided_parameters;
  std::unique_ptr<Optimizer> optimizer;
  std::unique_ptr<LossScaler> scaler;
  std::unique_ptr<Schedule> schedule;
  std::unique_ptr<CheckpointStore> checkpoints;
  std::vector<std::unique_ptr<LoopHook>> hooks;
};

// Changes each part, except the device, as soon as it is built, in the order of Parts. This plain
// one changes nothing.
class PartWrapper {
 public:
  virtual ~PartWrapper() = default;
  virtual GroupOptions Wrap(GroupOptions options) { return options; }  // before ranks meet
  virtual std::unique_ptr<Communicator> Wrap(std::unique_ptr<Communicator> part) { return part; }
  // The tokenizer of all data, and the text that it was learned from.
  virtual std::shared_ptr<const Tokenizer> Wrap(std::shared_ptr<const Tokenizer> part,
                                                const std::string& /*text*/) {
    return part;
  }
  virtual std::unique_ptr<Dataset> Wrap(std::unique_ptr<Dataset> part) {
    return part;
  }  // training data
  virtual std::unique_ptr<Dataset> WrapHeldOut(std::unique_ptr<Dataset> part) { return part; }
  // The training data, for who needs the held-out data as well; they outlive the training data.
  virtual std::unique_ptr<Dataset> Wrap(std::unique_ptr<Dataset> part,
                                        const Dataset& /*held_out*/) {
    return Wrap(std::move(part));
  }
  virtual std::unique_ptr<Shards> Wrap(std::unique_ptr<Shards> part) { return part; }
  virtual std::unique_ptr<Sampler> Wrap(std::unique_ptr<Sampler> part) { return part; }
  virtual std::shared_ptr<Model> Wrap(std::shared_ptr<Model> part) { return part; }
  virtual std::unique_ptr<Optimizer> Wrap(std::unique_ptr<Optimizer> part) { return part; }
  virtual std::unique_ptr<LossScaler> Wrap(std::unique_ptr<LossScaler> part) { return part; }
  virtual std::unique_ptr<Schedule> Wrap(std::unique_ptr<Schedule> part) { return part; }
  virtual std::unique_ptr<CheckpointStore> Wrap(std::unique_ptr<CheckpointStore> part) {
    return part;
  }
  virtual std::unique_ptr<LoopHook> MakeHook() { return nullptr; }
};

// Dated facts for the trace: {"t":"event","event":name,"step":clock.step,...fields}.
class EventSink {
 public:
  virtual ~EventSink() = default;
  // Throws std::logic_error for fields that are not in the event's description.
  void Report(const EventKind& event, Json fields) {
    event.Check(fields);
    Write(event.name(), std::move(fields));
  }

 protected:
  virtual void Write(const std::string& name, Json fields) = 0;
};

}  // namespace trainwreck
