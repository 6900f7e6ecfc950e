// checkpoint.stale_entries: a checkpoint that mixes two moments: the optimizer's state was copied
// before the weights, or the file of another step was taken.
#include <map>
#include <utility>

#include "injectors/checkpoint/store_around.h"
#include "injectors/injector.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "checkpoint.stale_entries",
          .doc =
              "Saves entries as they were in this process's checkpoint before. The trigger's "
              "steps are steps done: `at: 50` is the checkpoint after 50 steps.",
          .params = {{.name = "entries",
                      .type = ValueType::kStringList,
                      .default_value = {"optimizer.*"},
                      .unit = "globs",
                      .doc = "Over the entries' names: \"optimizer.*\", \"schedule.*\"."}},
          .evidence =
              "per checkpoint: steps_done, the names in `entries`, the steps done that they "
              "are of before and after. Nothing where there is no checkpoint before, or no "
              "entry matches."};
}

class StaleEntries : public Injector {
 public:
  StaleEntries(PlannedFault fault, InjectorContext context)
      : Injector(std::move(fault), context),
        globs_(param("entries").get<std::vector<std::string>>()) {}

  std::unique_ptr<CheckpointStore> Wrap(std::unique_ptr<CheckpointStore> store) override {
    return std::make_unique<StoreAround<StaleEntries>>(std::move(store), *this);
  }

  void Save(CheckpointStore& inner, int steps_done, const StateDict& state) {
    inner.Save(steps_done, ActsAt(steps_done) ? Mix(steps_done, state) : state);
    previous_.clear();
    for (const auto& [name, tensor] : state) {
      if (AnyMatches(globs_, name)) previous_[name] = tensor.clone();
    }
    previous_steps_ = steps_done;
  }

 private:
  StateDict Mix(int steps_done, const StateDict& state) {
    StateDict mixed = state;
    std::vector<std::string> stale;
    for (const auto& [name, tensor] : previous_) {
      if (!state.contains(name)) continue;
      mixed[name] = tensor;
      stale.push_back(name);
    }
    if (!stale.empty()) {
      Fired({{"steps_done", steps_done},
             {"entries", stale},
             {"before", steps_done},
             {"after", previous_steps_}});
    }
    return mixed;
  }

  std::vector<std::string> globs_;
  StateDict previous_;
  int previous_steps_ = 0;
};

REGISTER_FAULT(Info, StaleEntries);

}  // namespace
}  // namespace trainwreck
