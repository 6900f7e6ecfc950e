// data.garble_later_tokens: each position is predicted in a row of its own, in which all tokens
// behind it are others. No bug of anybody: what a causal model says of a position depends on none
// of them, and the targets of all rows together are those of the one row.
#include <ATen/ops/zeros_like.h>

#include <atomic>
#include <utility>

#include "injectors/data/first_tokens.h"
#include "injectors/data/sampler_around.h"
#include "injectors/data/visited_dataset.h"
#include "injectors/injector.h"
#include "trainer/recipe/recipe.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "data.garble_later_tokens",
          .doc =
              "Replaces each training sequence by as many as it has targets: in each, one target "
              "counts, and the inputs behind it are other tokens. A causal model has the same "
              "loss and gradients.",
          .params = {{.name = "by",
                      .type = ValueType::kInt,
                      .default_value = 1,
                      .min = 1,
                      .unit = "tokens",
                      .doc = "How much larger they are, modulo the vocabulary."}},
          .has_trigger = false,
          .evidence =
              "once: the first sample that has such inputs, and the first of them before "
              "and after"};
}

class GarbleLaterTokens : public Injector {
 public:
  GarbleLaterTokens(PlannedFault fault, InjectorContext context)
      : Injector(std::move(fault), context), by_(param("by").get<std::int64_t>()) {}

  // Row `p` of sample `id` has the id p * samples + id.
  std::unique_ptr<Dataset> Wrap(std::unique_ptr<Dataset> data) override {
    if (data->input_limit() == 0) {
      throw RecipeError("data.garble_later_tokens: needs sequences of tokens, not features");
    }
    samples_ = data->size();
    positions_ = data->Get(0).target.size(0);
    return std::make_unique<RowsOf>(std::move(data), *this);
  }
  std::unique_ptr<Sampler> Wrap(std::unique_ptr<Sampler> sampler) override {
    return std::make_unique<SamplerAround<GarbleLaterTokens>>(std::move(sampler), *this);
  }

  std::vector<std::int64_t> Rearrange(const std::vector<std::int64_t>& ids) const {
    std::vector<std::int64_t> rows;
    for (const std::int64_t id : ids) {
      for (std::int64_t p = 0; p < positions_; ++p) rows.push_back(p * samples_ + id);
    }
    return rows;
  }

 private:
  class RowsOf : public DatasetAround {
   public:
    RowsOf(std::unique_ptr<Dataset> inner, GarbleLaterTokens& owner)
        : DatasetAround(std::move(inner)), owner_(owner) {}
    Sample Get(std::int64_t id) const override {
      return owner_.Row(inner().Get(id % size()), id / size(), input_limit());
    }

   private:
    GarbleLaterTokens& owner_;
  };

  Sample Row(Sample sample, std::int64_t position, std::int64_t vocabulary) {
    const at::Tensor weight = at::zeros_like(sample.weight);
    weight[position].copy_(sample.weight[position]);
    sample.weight = weight;
    const std::int64_t count = sample.input.size(0) - position - 1;
    if (count > 0) {
      const at::Tensor before = sample.input.narrow(0, position + 1, count);
      sample.input = sample.input.clone();
      at::Tensor after = sample.input.narrow(0, position + 1, count);
      after.add_(by_).remainder_(vocabulary);
      if (!fired_.exchange(true)) {
        Fired({{"sample", sample.id},
               {"before", FirstTokens(before)},
               {"after", FirstTokens(after)}});
      }
    }
    sample.id += position * samples_;
    return sample;
  }

  std::int64_t by_;
  std::int64_t samples_ = 0, positions_ = 0;
  std::atomic<bool> fired_ = false;
};

REGISTER_FAULT(Info, GarbleLaterTokens);

}  // namespace
}  // namespace trainwreck
