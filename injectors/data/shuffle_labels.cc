// data.shuffle_labels: inputs and targets that were stored apart and are put together in the wrong
// order, as by a sort or a filter of only one of two files.
#include <cmath>
#include <random>
#include <utility>

#include "injectors/data/visited_dataset.h"
#include "injectors/injector.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "data.shuffle_labels",
          .doc =
              "Gives training samples each other's targets, in one random circle for the whole "
              "run. A target still knows the id of the sample that it was stored for.",
          .params = {{.name = "share",
                      .type = ValueType::kNumber,
                      .default_value = 1.0,
                      .min = 0,
                      .max = 1,
                      .unit = "of the samples",
                      .doc = "How many of them."}},
          .evidence =
              "once: the first such sample, whose target it should have (`before`) and "
              "whose it has (`after`), and how many samples are concerned"};
}

class ShuffleLabels : public Injector {
 public:
  using Injector::Injector;

  std::unique_ptr<Dataset> Wrap(std::unique_ptr<Dataset> data) override {
    DrawCircle(data->size(), param("share").get<double>());
    return std::make_unique<VisitedDataset<ShuffleLabels>>(std::move(data), *this);
  }

  void Visit(Sample& sample, const Dataset& data) {
    const std::int64_t other = target_of_.at(sample.id);
    if (other < 0 || !Acts()) return;
    const Sample stored = data.Get(other);
    sample.target = stored.target;
    sample.weight = stored.weight;
    if (std::exchange(fired_, true)) return;
    Fired(
        {{"sample", sample.id}, {"samples", concerned_}, {"before", sample.id}, {"after", other}});
  }

 private:
  void DrawCircle(std::int64_t size, double share) {
    std::vector<std::int64_t> order(static_cast<std::size_t>(size));
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(i);
    std::mt19937_64 random(context().seed);
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
    const auto count = static_cast<std::size_t>(std::lround(share * static_cast<double>(size)));
    target_of_.assign(order.size(), -1);
    if (count < 2) return;  // a circle of one changes nothing
    for (std::size_t i = 0; i < count; ++i) target_of_[order[i]] = order[(i + 1) % count];
    concerned_ = count;
  }

  std::vector<std::int64_t> target_of_;  // -1: its own
  std::size_t concerned_ = 0;
  bool fired_ = false;
};

REGISTER_FAULT(Info, ShuffleLabels);

}  // namespace
}  // namespace trainwreck
