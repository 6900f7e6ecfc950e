#include "trainer/telemetry/evidence.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <utility>

#include "harness/protocol/trace.h"
#include "trainer/checkpoints/checkpoint.h"
#include "trainer/tensor_views.h"

namespace trainwreck {
namespace {

// Bytes of a checkpoint's file beside its tensors: the header's line and an entry's description.
constexpr std::int64_t kHeaderBytes = 512;
constexpr std::int64_t kEntryBytes = 512;

// The same on all ranks, so that their files make one checkpoint.
constexpr char kWriter[] = "evidence";
constexpr char kState[] = "state";

Json StatsJson(const kernels::TensorStats& stats) {
  return {{"count", stats.count},
          {"nonfinite", stats.nonfinite},
          {"nan", stats.nan},
          {"zeros", stats.zeros},
          {"norm", EncodeNumber(stats.norm())},
          {"mean", EncodeNumber(stats.mean())},
          {"std", EncodeNumber(stats.stddev())},
          {"max", EncodeNumber(stats.max_abs)}};
}

Json Summary(const Evidence& evidence) {
  const NonfiniteFinding& found = evidence.finding;
  Json samples = Json::array();
  for (const Batch& batch : evidence.batches) samples.push_back(batch.ids);
  return {{"step", evidence.step},
          {"first_nonfinite",
           {{"stage", ToString(found.stage)},
            {"module", found.module},
            {"tensor", found.tensor},
            {"nan", found.nans},
            {"inf", found.infs}}},
          {"loss", EncodeNumber(evidence.loss)},
          {"grad_norm", EncodeNumber(evidence.grad_norm)},
          {"lr", EncodeNumber(evidence.lr)},
          {"loss_scale", EncodeNumber(evidence.loss_scale)},
          {"samples", std::move(samples)},
          {"parameters", Json::object()},
          {"gradients", Json::object()},
          {"left_out", Json::array()}};
}

// What may go into the folder, as it fills up.
class Room {
 public:
  explicit Room(std::int64_t bytes) : bytes_(bytes) {}
  bool Take(std::int64_t bytes) {
    if (bytes > bytes_) return false;
    bytes_ -= bytes;
    return true;
  }

 private:
  std::int64_t bytes_;
};

std::int64_t FolderBytes(const std::string& path) {
  std::int64_t bytes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
    if (entry.is_regular_file()) bytes += static_cast<std::int64_t>(entry.file_size());
  }
  return bytes;
}

}  // namespace

std::vector<std::string> EvidenceFolder::Write(const Evidence& evidence) const {
  Room room(max_bytes_);
  std::vector<std::string> left_out;
  Json summary = Summary(evidence);
  if (!room.Take(static_cast<std::int64_t>(summary.dump(1).size()) + kHeaderBytes)) {
    throw std::runtime_error("diagnose.evidence_mb leaves no room");
  }
  const auto add_stats = [&](const char* kind, const std::string& name,
                             const kernels::TensorStats& stats) {
    Json json = StatsJson(stats);
    // The line of its own that each number gets, and the name.
    const auto bytes = static_cast<std::int64_t>(json.dump(1).size() + name.size()) + 64;
    if (room.Take(bytes)) {
      summary[kind][name] = std::move(json);
    } else {
      left_out.push_back(std::string(kind) + "." + name);
    }
  };
  for (std::size_t i = 0; i < evidence.parameters.size(); ++i) {
    const auto& [name, parameter] = evidence.parameters[i];
    add_stats("parameters", name, StatsOf(parameter));
    add_stats("gradients", name, evidence.gradients[i]);
  }
  StateDict tensors;
  const auto add_tensor = [&](const std::string& name, const at::Tensor& tensor) {
    if (!tensor.defined()) return;
    if (room.Take(static_cast<std::int64_t>(tensor.nbytes()) + kEntryBytes)) {
      tensors[name] = tensor.cpu();
    } else {
      left_out.push_back(name);
    }
  };
  for (const auto& [name, generator] : evidence.rng) add_tensor(name, generator);
  for (std::size_t i = 0; i < evidence.batches.size(); ++i) {
    const std::string prefix = "batch." + std::to_string(i) + ".";
    add_tensor(prefix + "inputs", evidence.batches[i].inputs);
    add_tensor(prefix + "targets", evidence.batches[i].targets);
    add_tensor(prefix + "weights", evidence.batches[i].weights);
    add_tensor(prefix + "documents", evidence.batches[i].documents);
  }
  std::int64_t state_bytes = kHeaderBytes;
  for (const auto& [name, tensor] : evidence.state) {
    state_bytes += static_cast<std::int64_t>(tensor.nbytes()) + kEntryBytes;
  }
  const bool has_state = room.Take(state_bytes);
  if (!has_state) left_out.push_back(kState);
  // At most what the bound leaves room for: names could be many.
  for (const std::string& name : left_out) {
    if (room.Take(static_cast<std::int64_t>(name.size()) + 8)) summary["left_out"].push_back(name);
  }
  const std::string& path = options_.path;
  std::filesystem::create_directory(path);
  std::ofstream(path + "/step.json") << summary.dump(1) << '\n';
  FileCheckpointStore({.dir = path, .writer = kWriter}).Save(evidence.step, tensors);
  if (has_state) {
    FileCheckpointStore({.dir = path + "/" + kState,
                         .rank = options_.rank,
                         .world_size = options_.world_size,
                         .writer = kWriter})
        .Save(evidence.step, evidence.state);
  }
  return left_out;
}

void EvidenceFolder::Save(const Evidence& evidence) {
  if (!is_open()) return;
  saved_ = true;
  try {
    const std::vector<std::string> left_out = Write(evidence);
    events_.Report(
        events::kEvidenceSaved,
        {{"folder", options_.path},
         {"bytes", FolderBytes(options_.path)},
         {"left_out", left_out.size()},
         {"state", std::find(left_out.begin(), left_out.end(), kState) == left_out.end()}});
  } catch (const std::exception& error) {  // a full disk, say: the run is worth more
    std::cerr << "trainwreck-trainer: no evidence in " << options_.path << ": " << error.what()
              << std::endl;
  }
}

}  // namespace trainwreck
