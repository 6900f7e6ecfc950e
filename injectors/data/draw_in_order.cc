// data.draw_in_order: a shuffle that is forgotten, or whose generator has one seed in all runs.
#include <cstdint>
#include <utility>

#include "injectors/data/sampler_around.h"
#include "injectors/injector.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "data.draw_in_order",
          .doc =
              "Draws the samples in the order of their ids, from the first to the last and again, "
              "whatever the seed is.",
          .evidence = "once: the ids of the first batch before and after"};
}

class DrawInOrder : public Injector {
 public:
  using Injector::Injector;

  std::unique_ptr<Dataset> Wrap(std::unique_ptr<Dataset> data) override {
    size_ = data->size();
    return data;
  }
  std::unique_ptr<Sampler> Wrap(std::unique_ptr<Sampler> sampler) override {
    return std::make_unique<SamplerAround<DrawInOrder>>(std::move(sampler), *this);
  }

  std::vector<std::int64_t> Rearrange(std::vector<std::int64_t> ids) {
    if (ids.empty() || !Acts()) return ids;
    const std::vector<std::int64_t> before = ids;
    for (std::int64_t& id : ids) id = drawn_++ % size_;
    if (ids != before && !std::exchange(fired_, true)) Fired({{"before", before}, {"after", ids}});
    return ids;
  }

 private:
  std::int64_t size_ = 0;
  std::int64_t drawn_ = 0;
  bool fired_ = false;
};

REGISTER_FAULT(Info, DrawInOrder);

}  // namespace
}  // namespace trainwreck
