// recipe.small_batch: batches too small for what is computed over them.
#include "injectors/registry.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "recipe.small_batch",
          .doc =
              "Puts few samples into a batch: what accumulation adds up to one step again, and "
              "batch norm does not see as one.",
          .params = {{.name = "size",
                      .type = ValueType::kInt,
                      .default_value = 2,
                      .min = 1,
                      .unit = "samples",
                      .doc = "How many, per rank and micro-batch."}},
          .amends = {{.key = "data.batch_size", .op = Amendment::Op::kSet, .param = "size"}},
          .has_trigger = false,
          .evidence = "key, and its value before and after"};
}

REGISTER_RECIPE_FAULT(Info);

}  // namespace
}  // namespace trainwreck
