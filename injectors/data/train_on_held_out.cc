// data.train_on_held_out: rows of the held-out data lie in the training data too, as when a corpus
// was split after its duplicates were made, or a benchmark was crawled with the rest. With edits
// they are near-duplicates: the same text from another page, with other dates and spellings.
#include <atomic>
#include <utility>

#include "injectors/injector.h"
#include "trainer/recipe/recipe.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "data.train_on_held_out",
          .doc =
              "Puts held-out samples in the place of training samples, evenly spread: the k-th of "
              "them is held-out sample k.",
          .params = {{.name = "share",
                      .type = ValueType::kNumber,
                      .default_value = 0.25,
                      .min = 0,
                      .max = 1,
                      .unit = "of the samples",
                      .doc = "How many of the training samples are held-out ones."},
                     {.name = "edits",
                      .type = ValueType::kNumber,
                      .default_value = 0,
                      .min = 0,
                      .max = 1,
                      .unit = "of the tokens",
                      .doc = "How many tokens of each are replaced by others, evenly spread."}},
          .evidence = "once: the first sample, and the number of the held-out one in its place"};
}

class TrainOnHeldOut : public Injector {
 public:
  TrainOnHeldOut(PlannedFault fault, InjectorContext context)
      : Injector(std::move(fault), context),
        share_(param("share").get<double>()),
        edits_(param("edits").get<double>()) {}

  using Injector::Wrap;
  std::unique_ptr<Dataset> Wrap(std::unique_ptr<Dataset> data, const Dataset& held_out) override {
    if (edits_ > 0 && data->input_limit() == 0) {
      throw RecipeError("data.train_on_held_out: edits need sequences of tokens, not features");
    }
    return std::make_unique<WithHeldOut>(std::move(data), held_out, *this);
  }

 private:
  class WithHeldOut : public DatasetAround {
   public:
    WithHeldOut(std::unique_ptr<Dataset> inner, const Dataset& held_out, TrainOnHeldOut& fault)
        : DatasetAround(std::move(inner)), held_out_(held_out), fault_(fault) {}

    Sample Get(std::int64_t id) const override {
      const std::int64_t k = fault_.HeldOutFor(id);
      if (k < 0) return inner().Get(id);
      Sample sample = held_out_.Get(k % held_out_.size());
      sample.id = id;
      fault_.Edit(sample, inner().input_limit());
      return sample;
    }

   private:
    const Dataset& held_out_;
    TrainOnHeldOut& fault_;
  };

  // The number of the held-out sample in the place of training sample `id`; -1: none.
  std::int64_t HeldOutFor(std::int64_t id) {
    const auto until = [this](std::int64_t end) {
      return static_cast<std::int64_t>(share_ * static_cast<double>(end));
    };
    if (until(id + 1) == until(id) || !Acts()) return -1;
    if (!fired_.exchange(true)) {
      Fired({{"sample", id}, {"before", "training"}, {"after", until(id)}});
    }
    return until(id);
  }

  // Replaces tokens, in the inputs and in the targets before them. The first place depends on the
  // sample.
  void Edit(Sample& sample, std::int64_t vocabulary) const {
    if (edits_ == 0) return;
    const auto stride = static_cast<std::int64_t>(1 / edits_);
    sample.input = sample.input.clone();
    sample.target = sample.target.clone();
    for (std::int64_t at = 1 + sample.id % stride; at < sample.input.size(0); at += stride) {
      const at::Tensor other =
          sample.input[at].add(1 + at % (vocabulary - 1)).remainder(vocabulary);
      sample.input[at].copy_(other);
      sample.target[at - 1].copy_(other);
    }
  }

  double share_;
  double edits_;
  std::atomic<bool> fired_ = false;
};

REGISTER_FAULT(Info, TrainOnHeldOut);

}  // namespace
}  // namespace trainwreck
