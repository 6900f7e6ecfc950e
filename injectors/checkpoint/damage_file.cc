// checkpoint.damage_file: a checkpoint that was written whole and is not what was written: a disk
// that lost blocks or turned a bit, a copy that took files of different steps or of another job.
#include <ATen/ops/cat.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <utility>

#include "harness/protocol/digest.h"
#include "injectors/checkpoint/store_around.h"
#include "injectors/injector.h"
#include "trainer/checkpoints/checkpoint.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {
      .name = "checkpoint.damage_file",
      .doc =
          "Damages this rank's file of a checkpoint after it was written. The trigger's "
          "steps are steps done: `at: 50` is the checkpoint after 50 steps.",
      .params = {{.name = "how",
                  .type = ValueType::kString,
                  .default_value = "truncated",
                  .choices = {"truncated", "bit_rot", "deleted", "older", "other_world_size",
                              "other_model"},
                  .unit = "",
                  .doc = "truncated: half of it is left; bit_rot: one bit of its last half is "
                         "flipped; deleted: it is gone; older: it is this rank's file of the "
                         "checkpoint before; other_world_size: it is of a job with one rank "
                         "more; other_model: it is of a model whose tensors are twice as long"}},
      .evidence =
          "per checkpoint: steps_done, how, size and digest of the file before and after, the "
          "position of a flipped bit. Nothing where there is no older one."};
}

class DamageFile : public Injector {
 public:
  using Injector::Injector;

  std::unique_ptr<CheckpointStore> Wrap(std::unique_ptr<CheckpointStore> store) override {
    return std::make_unique<StoreAround<DamageFile>>(std::move(store), *this);
  }

  void Save(CheckpointStore& inner, int steps_done, const StateDict& state) {
    inner.Save(steps_done, state);
    const std::string path = CheckpointPath(context().checkpoint_dir, steps_done, context().rank);
    if (ActsAt(steps_done)) Damage(path, steps_done, state);
    previous_ = path;
  }

 private:
  void Damage(const std::string& path, int steps_done, const StateDict& state) {
    const std::string how = param("how");
    Json fields = {{"steps_done", steps_done}, {"how", how}, {"before", Content(path)}};
    if (how == "truncated") {
      std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
    } else if (how == "bit_rot") {
      fields["byte"] = FlipBit(path);
    } else if (how == "deleted") {
      std::filesystem::remove(path);
    } else if (how == "older") {
      if (previous_.empty() || !std::filesystem::exists(previous_)) return;
      std::filesystem::copy_file(previous_, path,
                                 std::filesystem::copy_options::overwrite_existing);
    } else if (how == "other_world_size") {
      SaveAs(state, steps_done, context().world_size + 1);
    } else {
      StateDict longer = state;
      for (auto& [name, tensor] : longer) {
        if (name.starts_with("model.") && tensor.dim() > 0) tensor = at::cat({tensor, tensor});
      }
      SaveAs(longer, steps_done, context().world_size);
    }
    fields["after"] = Content(path);
    Fired(std::move(fields));
  }

  // Size and digest; "none" where there is no file.
  static std::string Content(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) return "none";
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    return std::to_string(bytes.size()) + " bytes, " + DigestText(bytes);
  }

  static std::uintmax_t FlipBit(const std::string& path) {
    const std::uintmax_t position = std::filesystem::file_size(path) * 3 / 4;
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekg(static_cast<std::streamoff>(position));
    const int byte = file.get();
    file.seekp(static_cast<std::streamoff>(position));
    file.put(static_cast<char>(byte ^ 1));
    if (!file.flush()) throw std::runtime_error("flipping a bit of " + path);
    return position;
  }

  void SaveAs(const StateDict& state, int steps_done, int world_size) const {
    FileCheckpointStore(
        {.dir = context().checkpoint_dir,
         .keep = 1 << 20,  // nothing is removed
         .rank = context().rank,
         .world_size = world_size,
         .writer = context().clock->phase + "." + std::to_string(context().clock->attempt)})
        .Save(steps_done, state);
  }

  std::string previous_;
};

REGISTER_FAULT(Info, DamageFile);

}  // namespace
}  // namespace trainwreck
