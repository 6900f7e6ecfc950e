// Forward and backward passes that are queued by one launch instead of one for each operation: CUDA
// graphs (Nguyen et al. 2021, "Accelerating PyTorch with CUDA Graphs"). A small model's step is
// mostly launches; a recorded one is none of them.
//
//   RecordedPasses recorded(device, parameters, events, passes);
//   const at::Tensor loss = recorded.Make(batch, seed);  // gradients are added to the parameters'
//
// The first batches of a shape are passed as ever, and train like any others. Then the passes are
// recorded with that shape, and replayed from there on: with other numbers, and with no code of the
// host. What a wrapper of the model does at a certain step is done in no replay.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trainer/models/forward_hook.h"
#include "trainer/parts.h"

namespace trainwreck {

class RecordedPasses {
 public:
  // Makes both passes, the backward one from the gradient `seed` (0-dimensional, on the device),
  // and returns the loss. `hook` sees the outputs of modules; null: nobody does. Must not wait for
  // the device, nor draw numbers on the host.
  using Passes =
      std::function<at::Tensor(const Batch& batch, const at::Tensor& seed, ForwardHook* hook)>;
  static constexpr int kPassesBefore = 2;  // without a record: libraries load, caches fill
  static constexpr std::size_t kMostShapes = 16;

  // `device` and `events` must outlive it. On a device that records nothing, all passes are plain.
  RecordedPasses(Device& device, NamedTensors parameters, EventSink& events, Passes passes);

  // Adds the gradients to those of the parameters, and returns the loss (0-dimensional, detached).
  // After a replay, `hook` sees the outputs that it made, of the modules that it reads.
  at::Tensor Make(const Batch& batch, const at::Tensor& seed, ForwardHook* hook = nullptr);

 private:
  // The memory that a record reads and writes.
  struct Record {
    int passes_before = 0;
    Batch batch;
    at::Tensor seed;
    at::Tensor loss;
    std::vector<at::Tensor> gradients;  // as parameters_; undefined: none is made
    bool shows_outputs = false;         // somebody wanted to see them
    std::vector<std::pair<std::string, at::Tensor>> outputs;  // by module, in their order
    std::unique_ptr<RecordedWork> work;
  };
  void RecordOf(const Batch& batch, const at::Tensor& seed, ForwardHook* hook, Record& record);
  at::Tensor Replay(const Batch& batch, const at::Tensor& seed, ForwardHook* hook, Record& record);

  Device& device_;
  NamedTensors parameters_;
  EventSink& events_;
  Passes passes_;
  std::map<std::vector<std::int64_t>, Record> records_;  // by the shape of the batch
  bool can_record_ = true;
};

}  // namespace trainwreck
