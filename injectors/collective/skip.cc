// collective.skip: an all-reduce that does not happen. On all ranks: the wrapper that should reduce
// the gradients is missing, and each rank trains alone. On some: they take another path than their
// peers, whose call then pairs with whatever comes next.
#include <utility>

#include "injectors/collective/chosen_calls.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {
      .name = "collective.skip",
      .doc =
          "Leaves all-reduces out. On all ranks, the gradients' by default: each rank trains "
          "alone, as without a data-parallel wrapper. On some ranks only: their peers' calls "
          "pair with the next ones, or wait for ever.",
      .params = {ChosenCalls::CallsParam(),
                 {.name = "leaves",
                  .type = ValueType::kString,
                  .default_value = "own_mean",
                  .choices = {"own_mean", "own"},
                  .doc = "What a sum then is: the rank's own values times the number of ranks, so "
                         "that the mean made of it is the rank's own, or the bare own values."}},
      .min_ranks = 2,
      .evidence =
          "once in each step: the number of the first call left out, its elements, what "
          "was reduced before and is left after"};
}

class Skip : public ChosenCalls {
 public:
  Skip(PlannedFault fault, InjectorContext context)
      : ChosenCalls(std::move(fault), context), own_mean_(param("leaves") == "own_mean") {}

 protected:
  void AllReduce(Communicator& inner, at::Tensor& tensor, Reduction reduction, int call) override {
    if (const int step = context().clock->step; step != reported_step_) {
      reported_step_ = step;
      Fired({{"call", call},
             {"elements", tensor.numel()},
             {"before", "reduced over " + std::to_string(inner.world_size()) + " ranks"},
             {"after", "rank " + std::to_string(inner.rank()) + "'s own"}});
    }
    if (own_mean_ && reduction == Reduction::kSum) tensor.mul_(inner.world_size());
  }

 private:
  bool own_mean_;
  int reported_step_ = -1;
};

REGISTER_FAULT(Info, Skip);

}  // namespace
}  // namespace trainwreck
