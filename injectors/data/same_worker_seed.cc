// data.same_worker_seed: loader workers that all begin with the same seed, as when a library's
// generator is copied into each process.
#include <utility>

#include "injectors/data/visited_dataset.h"
#include "injectors/injector.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {
      .name = "data.same_worker_seed",
      .doc =
          "Lets a number of loader workers draw the same random numbers: of as many "
          "consecutive samples, all are generated as the first is.",
      .params = {{.name = "workers",
                  .type = ValueType::kInt,
                  .default_value = 4,
                  .min = 2,
                  .unit = "processes",
                  .doc = "How many draw the same."}},
      .evidence =
          "once: the first sample of other random numbers; by id, whose it had before and after"};
}

class SameWorkerSeed : public Injector {
 public:
  SameWorkerSeed(PlannedFault fault, InjectorContext context)
      : Injector(std::move(fault), context), workers_(param("workers").get<std::int64_t>()) {}

  std::unique_ptr<Dataset> Wrap(std::unique_ptr<Dataset> data) override {
    return std::make_unique<VisitedDataset<SameWorkerSeed>>(std::move(data), *this);
  }

  void Visit(Sample& sample, const Dataset& data) {
    const std::int64_t id = sample.id, first = id - id % workers_;
    if (id == first || !Acts()) return;
    sample = data.Get(first);
    sample.id = id;
    if (std::exchange(fired_, true)) return;
    Fired({{"sample", id}, {"before", id}, {"after", first}});
  }

 private:
  std::int64_t workers_;
  bool fired_ = false;
};

REGISTER_FAULT(Info, SameWorkerSeed);

}  // namespace
}  // namespace trainwreck
