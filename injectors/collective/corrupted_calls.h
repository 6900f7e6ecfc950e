// What faults share that damage a tensor of an all-reduce, before or after it is made.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "injectors/collective/chosen_calls.h"
#include "injectors/corruption.h"

namespace trainwreck {

class CorruptedCalls : public ChosenCalls {
 public:
  using ChosenCalls::ChosenCalls;

  static FaultInfo InfoOf(std::string name, const std::string& what) {
    FaultInfo info{
        .name = std::move(name),
        .doc = what +
               " A chosen call whose tensor is not of floats of up to 32 bits (the loss, the "
               "sampler's counts) ends the run with an error. A call that is made again after a "
               "rollback is spared.",
        .params = {CallsParam()},
        .min_ranks = 2,
        .evidence =
            "each time: the call's number, how many elements were chosen and how many "
            "changed, the first one's index and its value before and after"};
    for (ParamInfo& param : CorruptionParams()) info.params.push_back(std::move(param));
    return info;
  }

 protected:
  void Damage(at::Tensor& tensor, int call) {
    if (!done_.insert({context().clock->step, call}).second) return;
    Json evidence = CorruptTensor(
        tensor, CorruptionOf([this](const std::string& name) { return param(name); }, Seed(call)));
    evidence["call"] = call;
    Fired(std::move(evidence));
  }

 private:
  // Other elements in each run, step and call; the same whenever the run is repeated.
  std::uint64_t Seed(int call) const {
    return (context().seed << 32) + static_cast<std::uint64_t>(context().clock->step) * 1024 +
           static_cast<std::uint64_t>(call);
  }

  std::set<std::pair<int, int>> done_;  // steps and calls
};

}  // namespace trainwreck
