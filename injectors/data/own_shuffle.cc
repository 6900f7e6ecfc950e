// data.own_shuffle: a shuffle whose seed is not the run's: nobody seeded it, or each rank seeds it
// with its own number.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <utility>

#include "injectors/data/sampler_around.h"
#include "injectors/injector.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "data.own_shuffle",
          .doc =
              "Shuffles the samples once more, with another seed than the run's, where "
              "sampler.shuffle is on.",
          .params = {{.name = "seed",
                      .type = ValueType::kString,
                      .default_value = "none",
                      .choices = {"none", "rank"},
                      .unit = "",
                      .doc = "none: it is another in each process; rank: it is the run's and the "
                             "rank's, so that ranks draw some samples together and none of them "
                             "draws others."}},
          .evidence = "once: the ids of the first batch before and after"};
}

class OwnShuffle : public Injector {
 public:
  using Injector::Injector;

  std::unique_ptr<Dataset> Wrap(std::unique_ptr<Dataset> data) override {
    const auto shuffle = context().recipe->find("sampler.shuffle");
    if (shuffle != context().recipe->end() && !shuffle->second.get<bool>()) return data;
    const bool by_rank = param("seed") == "rank";
    std::mt19937_64 draw(by_rank ? context().seed * 65537 + context().rank + 1
                                 : std::random_device()());
    order_.resize(data->size());
    std::iota(order_.begin(), order_.end(), 0);
    std::shuffle(order_.begin(), order_.end(), draw);
    return data;
  }
  std::unique_ptr<Sampler> Wrap(std::unique_ptr<Sampler> sampler) override {
    return std::make_unique<SamplerAround<OwnShuffle>>(std::move(sampler), *this);
  }

  std::vector<std::int64_t> Rearrange(std::vector<std::int64_t> ids) {
    if (order_.empty() || !Acts()) return ids;
    const std::vector<std::int64_t> before = ids;
    for (std::int64_t& id : ids) id = order_.at(id);
    if (ids != before && !std::exchange(fired_, true)) Fired({{"before", before}, {"after", ids}});
    return ids;
  }

 private:
  std::vector<std::int64_t> order_;  // the sample in place of each; empty: they stay
  bool fired_ = false;
};

REGISTER_FAULT(Info, OwnShuffle);

}  // namespace
}  // namespace trainwreck
