// collective.corrupt_result: an all-reduce gives one rank another result than its peers, as a
// broken link or a race with a buffer does. Nobody is told, and the replicas part.
#include <set>
#include <string>
#include <utility>

#include "injectors/collective/chosen_calls.h"
#include "injectors/corruption.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  FaultInfo info{
      .name = "collective.corrupt_result",
      .doc =
          "Changes the result of all-reduces, the gradients' by default, after they were made, on "
          "the ranks that the trigger names. A chosen call whose tensor is not of floats of up to "
          "32 "
          "bits (the loss, the sampler's counts) ends the run with an error. A call that is made "
          "again after a rollback is spared.",
      .params = {ChosenCalls::CallsParam()},
      .min_ranks = 2,
      .evidence =
          "each time: the call's number, how many elements were chosen and how many changed, "
          "the first one's index and its value before and after"};
  for (ParamInfo& param : CorruptionParams()) info.params.push_back(std::move(param));
  return info;
}

class CorruptResult : public ChosenCalls {
 public:
  CorruptResult(PlannedFault fault, InjectorContext context)
      : ChosenCalls(std::move(fault), context) {}

 protected:
  void AllReduce(Communicator& inner, at::Tensor& tensor, Reduction reduction, int call) override {
    inner.AllReduce(tensor, reduction);
    if (!done_.insert({context().clock->step, call}).second) return;
    Json evidence = CorruptTensor(
        tensor, CorruptionOf([this](const std::string& name) { return param(name); }, Seed(call)));
    evidence["call"] = call;
    Fired(std::move(evidence));
  }

 private:
  std::set<std::pair<int, int>>
      done_;  // steps and calls; what is run again after a rollback is spared

  // Other elements in each run, step and call; the same whenever the run is repeated.
  std::uint64_t Seed(int call) const {
    return (context().seed << 32) + static_cast<std::uint64_t>(context().clock->step) * 1024 +
           static_cast<std::uint64_t>(call);
  }
};

REGISTER_FAULT(Info, CorruptResult);

}  // namespace
}  // namespace trainwreck
