// checkpoint.drop_entries: a checkpoint that forgets part of the state: `save(model.state_dict())`
// and no more.
#include <utility>

#include "injectors/checkpoint/store_around.h"
#include "injectors/injector.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {
      .name = "checkpoint.drop_entries",
      .doc =
          "Leaves entries out of checkpoints as they are saved. The trigger's steps are steps "
          "done: `at: 50` is the checkpoint after 50 steps.",
      .params = {{.name = "entries",
                  .type = ValueType::kStringList,
                  .default_value = nullptr,
                  .unit = "globs",
                  .doc = "Over the entries' names: \"optimizer.*\", \"schedule.*\", \"sampler.*\", "
                         "\"rng.*\"."}},
      .evidence =
          "per checkpoint: steps_done, the names in `dropped`, the number of entries before "
          "and after. Nothing where no entry matches."};
}

class DropEntries : public Injector {
 public:
  DropEntries(PlannedFault fault, InjectorContext context)
      : Injector(std::move(fault), context),
        globs_(param("entries").get<std::vector<std::string>>()) {}

  std::unique_ptr<CheckpointStore> Wrap(std::unique_ptr<CheckpointStore> store) override {
    return std::make_unique<StoreAround<DropEntries>>(std::move(store), *this);
  }

  void Save(CheckpointStore& inner, int steps_done, const StateDict& state) {
    inner.Save(steps_done, ActsAt(steps_done) ? Drop(steps_done, state) : state);
  }

 private:
  StateDict Drop(int steps_done, const StateDict& state) {
    StateDict kept;
    std::vector<std::string> dropped;
    for (const auto& [name, tensor] : state) {
      if (AnyMatches(globs_, name)) {
        dropped.push_back(name);
      } else {
        kept.emplace(name, tensor);
      }
    }
    if (dropped.empty()) return state;
    Fired({{"steps_done", steps_done},
           {"dropped", dropped},
           {"before", state.size()},
           {"after", kept.size()}});
    return kept;
  }

  std::vector<std::string> globs_;
};

REGISTER_FAULT(Info, DropEntries);

}  // namespace
}  // namespace trainwreck
