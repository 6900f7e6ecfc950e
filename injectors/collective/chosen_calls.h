// What faults of collectives share: which all-reduces of a step they act on.
//
//   class Skip : public ChosenCalls {
//     void AllReduce(Communicator& inner, at::Tensor& tensor, Reduction reduction) override { ... }
//   };
#pragma once

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "injectors/injector.h"

namespace trainwreck {

class ChosenCalls : public Injector {
 public:
  ChosenCalls(PlannedFault fault, InjectorContext context)
      : Injector(std::move(fault), context), calls_(param("calls").get<std::vector<int>>()) {}

  static ParamInfo CallsParam() {
    return {.name = "calls",
            .type = ValueType::kIntList,
            .default_value = Json::array(),
            .min = 0,
            .unit = "call",
            .doc =
                "Which all-reduces of a step, counted from 0 in the order in which the step makes "
                "them (the reference loop's first is that of the loss). Empty: those of "
                "gradients, which are the ones of floats within a step."};
  }

  std::unique_ptr<Communicator> Wrap(std::unique_ptr<Communicator> inner) override {
    return std::make_unique<Wrapped>(std::move(inner), *this);
  }
  std::unique_ptr<LoopHook> MakeHook() override { return std::make_unique<Hook>(*this); }

 protected:
  // Called in place of inner.AllReduce(tensor, reduction), with the number of the call in its step.
  virtual void AllReduce(Communicator& inner, at::Tensor& tensor, Reduction reduction,
                         int call) = 0;
  virtual void EndStep() {}

 private:
  class Hook : public LoopHook {
   public:
    explicit Hook(ChosenCalls& calls) : calls_(calls) {}
    void OnStepBegin(int) override {
      calls_.next_ = 0;
      calls_.in_step_ = true;
    }
    void OnStepEnd(int) override {
      calls_.in_step_ = false;
      calls_.EndStep();
    }

   private:
    ChosenCalls& calls_;
  };

  class Wrapped : public Communicator {
   public:
    Wrapped(std::unique_ptr<Communicator> inner, ChosenCalls& calls)
        : inner_(std::move(inner)), calls_(calls) {}
    int rank() const override { return inner_->rank(); }
    int world_size() const override { return inner_->world_size(); }
    void AllReduce(at::Tensor& tensor, Reduction reduction) override {
      const int call = calls_.next_++;
      if (calls_.Chooses(tensor, call)) {
        calls_.AllReduce(*inner_, tensor, reduction, call);
      } else {
        inner_->AllReduce(tensor, reduction);
      }
    }
    void Broadcast(at::Tensor& tensor, int root) override { inner_->Broadcast(tensor, root); }
    // A reduction to one rank stays what the base makes of it, an all-reduce, so that faults have
    // one kind of call to act on.
    void Barrier() override { inner_->Barrier(); }

   private:
    std::unique_ptr<Communicator> inner_;
    ChosenCalls& calls_;
  };

  bool Chooses(const at::Tensor& tensor, int call) const {
    if (!in_step_ || !Acts()) return false;
    if (!calls_.empty()) return std::count(calls_.begin(), calls_.end(), call) > 0;
    // The loss is reduced in doubles, counts and agreements in integers.
    return tensor.is_floating_point() && tensor.scalar_type() != at::kDouble;
  }

  std::vector<int> calls_;
  int next_ = 0;          // of the step in progress
  bool in_step_ = false;  // calls outside, of evaluations or checks, are left alone
};

}  // namespace trainwreck
