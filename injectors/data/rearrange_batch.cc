// data.rearrange_batch: the samples of each batch in another order, or each of them twice. No bug
// of anybody: a mean over the samples does not depend on it.
#include <algorithm>
#include <utility>

#include "injectors/data/sampler_around.h"
#include "injectors/injector.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "data.rearrange_batch",
          .doc =
              "Reverses the order of the samples in each batch, or gives each sample twice, which "
              "changes no mean over them.",
          .params = {{.name = "how",
                      .type = ValueType::kString,
                      .default_value = "reversed",
                      .choices = {"reversed", "doubled"},
                      .doc = "In the opposite order, or the whole batch and then again."}},
          .evidence = "once: the ids of the first batch before and after"};
}

class RearrangeBatch : public Injector {
 public:
  using Injector::Injector;

  std::unique_ptr<Sampler> Wrap(std::unique_ptr<Sampler> sampler) override {
    return std::make_unique<SamplerAround<RearrangeBatch>>(std::move(sampler), *this);
  }

  std::vector<std::int64_t> Rearrange(std::vector<std::int64_t> ids) {
    if (ids.empty() || !Acts()) return ids;
    const std::vector<std::int64_t> before = ids;
    if (param("how") == "reversed") {
      std::reverse(ids.begin(), ids.end());
    } else {
      ids.insert(ids.end(), before.begin(), before.end());
    }
    if (!std::exchange(fired_, true)) Fired({{"before", before}, {"after", ids}});
    return ids;
  }

 private:
  bool fired_ = false;
};

REGISTER_FAULT(Info, RearrangeBatch);

}  // namespace
}  // namespace trainwreck
