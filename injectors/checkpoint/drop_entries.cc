// checkpoint.drop_entries: a checkpoint that forgets part of the state: `save(model.state_dict())`
// and no more.
#include <utility>

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

  std::unique_ptr<CheckpointStore> Wrap(std::unique_ptr<CheckpointStore> store) override;

  StateDict Drop(int steps_done, const StateDict& state) {
    if (!ActsAt(steps_done)) return state;
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

 private:
  std::vector<std::string> globs_;
};

class ForgetfulStore : public CheckpointStore {
 public:
  ForgetfulStore(std::unique_ptr<CheckpointStore> inner, DropEntries& injector)
      : inner_(std::move(inner)), injector_(injector) {}

  void Save(int steps_done, const StateDict& state) override {
    inner_->Save(steps_done, injector_.Drop(steps_done, state));
  }
  std::vector<int> List() const override { return inner_->List(); }
  StateDict Load(int steps_done) const override { return inner_->Load(steps_done); }

 private:
  std::unique_ptr<CheckpointStore> inner_;
  DropEntries& injector_;
};

std::unique_ptr<CheckpointStore> DropEntries::Wrap(std::unique_ptr<CheckpointStore> store) {
  return std::make_unique<ForgetfulStore>(std::move(store), *this);
}

REGISTER_FAULT(Info, DropEntries);

}  // namespace
}  // namespace trainwreck
