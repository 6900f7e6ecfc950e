// model.round_weights: the initial weights, each one unit in the last place (or a few) up or down.
// No bug of anybody: it shows what rounding alone does to a run. Two trainings that differ in no
// more than the order of their sums come apart as far as two draws of it do.
#include <ATen/core/Generator.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/nextafter.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/where.h>

#include <limits>

#include "injectors/injector.h"
#include "injectors/model/matching_parameters.h"
#include "trainer/models/layers.h"
#include "trainer/models/model.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "model.round_weights",
          .doc =
              "Rounds each initial weight up or down, at random: what rounding alone does. A "
              "weight of 0 stays.",
          .params = {{.name = "draw",
                      .type = ValueType::kInt,
                      .default_value = 1,
                      .min = 0,
                      .unit = "number",
                      .doc = "Another one, other directions."},
                     {.name = "ulps",
                      .type = ValueType::kInt,
                      .default_value = 1,
                      .min = 1,
                      .max = 1024,
                      .unit = "ulps",
                      .doc = "Units in the last place by which each weight moves."}},
          .has_trigger = false,
          .evidence = "once: how many elements moved, and the first of them before and after."};
}

// Each element of `weights` to its next neighbour, away from 0 or towards it, `ulps` times.
at::Tensor Rounded(const at::Tensor& weights, const at::Generator& generator, std::int64_t ulps) {
  const at::Tensor up =
      at::rand(weights.sizes(), generator, at::kFloat).lt(0.5).to(weights.device());
  const double infinity = std::numeric_limits<double>::infinity();
  const at::Tensor towards = at::where(up, at::full_like(weights, infinity),  //
                                       at::full_like(weights, -infinity));
  at::Tensor rounded = weights.clone();
  for (std::int64_t ulp = 0; ulp < ulps; ++ulp) rounded = at::nextafter(rounded, towards);
  return at::where(weights.eq(0), weights, rounded);
}

class RoundWeights : public Injector {
 public:
  using Injector::Injector;

  std::shared_ptr<Model> Wrap(std::shared_ptr<Model> model) override {
    at::NoGradGuard no_grad;
    // The same on all ranks, so that replicas stay equal.
    const at::Generator generator =
        MakeGenerator((context().seed << 16) + param("draw").get<std::uint64_t>());
    std::int64_t moved = 0;
    double before = 0, after = 0;
    const auto all = [](const std::string&) { return true; };
    ForMatchingParameters(*model, all, {}, [&](const at::Tensor& weights) {
      const at::Tensor rounded = Rounded(weights, generator, param("ulps").get<std::int64_t>());
      const at::Tensor differs = weights.ne(rounded);
      const auto count = differs.sum().item<std::int64_t>();
      if (count > 0 && moved == 0) {
        before = weights.masked_select(differs)[0].item<double>();
        after = rounded.masked_select(differs)[0].item<double>();
      }
      moved += count;
      weights.copy_(rounded);
    });
    Fired({{"elements", moved}, {"before", EncodeNumber(before)}, {"after", EncodeNumber(after)}});
    return model;
  }
};

REGISTER_FAULT(Info, RoundWeights);

}  // namespace
}  // namespace trainwreck
