// collective.reorder: two reductions in the other order: buckets that become ready in another order
// on one rank, a set that is walked in the order of its addresses.
#include <optional>
#include <utility>

#include "injectors/collective/chosen_calls.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "collective.reorder",
          .doc =
              "Makes the first two of the chosen all-reduces of a step in the other order. Say "
              "`ranks`: on all ranks it has no effect. A lone one waits for a second that does not "
              "come, and is left out.",
          .params = {ChosenCalls::CallsParam()},
          .min_ranks = 2,
          .evidence = "once in each step: the numbers of the calls before and after"};
}

class Reorder : public ChosenCalls {
 public:
  using ChosenCalls::ChosenCalls;

 protected:
  void AllReduce(Communicator& inner, at::Tensor& tensor, Reduction reduction, int call) override {
    const int step = context().clock->step;
    if (step != step_) {  // the first one waits for the second
      step_ = step;
      first_ = tensor;
      first_call_ = call;
      return;
    }
    if (!first_) return inner.AllReduce(tensor, reduction);
    Fired({{"before", {first_call_, call}}, {"after", {call, first_call_}}});
    inner.AllReduce(tensor, reduction);
    inner.AllReduce(*first_, reduction);
    first_.reset();
  }

  void EndStep() override {
    if (!first_) return;
    Fired({{"before", {first_call_}}, {"after", Json::array()}});
    first_.reset();
  }

 private:
  int step_ = -1;
  std::optional<at::Tensor> first_;
  int first_call_ = 0;
};

REGISTER_FAULT(Info, Reorder);

}  // namespace
}  // namespace trainwreck
