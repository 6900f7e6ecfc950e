#include "trainer/telemetry/nonfinite.h"

#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/isinf.h>
#include <ATen/ops/isnan.h>
#include <c10/util/Exception.h>

#include <map>
#include <memory>
#include <utility>

#include "trainer/models/model.h"
#include "trainer/telemetry/anomaly.h"
#include "trainer/telemetry/pass_state.h"

namespace trainwreck {
namespace {

// Empty when all elements are finite.
std::optional<NonfiniteFinding> Look(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.is_floating_point()) return std::nullopt;
  at::NoGradGuard no_grad;
  NonfiniteFinding finding;
  finding.nans = at::isnan(tensor).sum().item<std::int64_t>();
  finding.infs = at::isinf(tensor).sum().item<std::int64_t>();
  finding.elements = tensor.numel();
  if (finding.nans + finding.infs == 0) return std::nullopt;
  return finding;
}

NonfiniteFinding Named(NonfiniteFinding finding, NonfiniteStage stage, std::string module,
                       std::string tensor) {
  finding.stage = stage;
  finding.module = std::move(module);
  finding.tensor = std::move(tensor);
  return finding;
}

std::string ModuleOf(const std::string& parameter) {
  return parameter.substr(0, parameter.rfind('.'));
}

// Remembers the first output that is not finite.
class FirstOutput : public ForwardHook {
 public:
  void OnOutput(const std::string& module, at::Tensor& output) override {
    if (found) return;
    if (const auto finding = Look(output)) {
      found = Named(*finding, NonfiniteStage::kForward, module, "output");
    }
  }
  std::optional<NonfiniteFinding> found;
};

// Puts generators, gradients and buffers back as they were, however a pass in between ends.
class StepState {
 public:
  StepState(Model& model, const NamedTensors& parameters, Device& device)
      : parameters_(parameters), pass_state_(model, device) {
    for (const auto& [name, parameter] : parameters) {
      // Taken away rather than copied: the passes in between make gradients of their own.
      gradients_.push_back(std::exchange(parameter.mutable_grad(), {}));
    }
  }
  ~StepState() {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      parameters_[i].second.mutable_grad() = gradients_[i];
    }
    pass_state_.Restore();
  }
  StepState(const StepState&) = delete;
  StepState& operator=(const StepState&) = delete;

  const std::vector<at::Tensor>& gradients() const { return gradients_; }

 private:
  const NamedTensors& parameters_;
  PassState pass_state_;
  std::vector<at::Tensor> gradients_;
};

// Anomaly mode warns of its own slowness and prints stacks of C++ frames; what has no fixed order
// warns of that.
class Silence : public c10::WarningHandler {
  void process(const c10::Warning&) override {}
};

// Passes that are made again: where a sum has no fixed order, the second one may be another. What
// has no other way to be computed stays as it was. Not run on a GPU yet.
class InFixedOrder {
 public:
  InFixedOrder() {
    context_.setDeterministicAlgorithms(true, /*warn_only=*/true);
    context_.setDeterministicFillUninitializedMemory(false);  // it fills with NaN
  }
  ~InFixedOrder() {
    context_.setDeterministicAlgorithms(was_, warned_only_);
    context_.setDeterministicFillUninitializedMemory(filled_);
  }
  InFixedOrder(const InFixedOrder&) = delete;
  InFixedOrder& operator=(const InFixedOrder&) = delete;

 private:
  at::Context& context_ = at::globalContext();
  const bool was_ = context_.deterministicAlgorithms();
  const bool warned_only_ = context_.deterministicAlgorithmsWarnOnly();
  const bool filled_ = context_.deterministicFillUninitializedMemory();
};

std::optional<NonfiniteFinding> LookAtData(const std::vector<Batch>& batches) {
  for (const Batch& batch : batches) {
    for (const auto& [name, tensor] :
         {std::pair("inputs", batch.inputs), std::pair("targets", batch.targets),
          std::pair("weights", batch.weights)}) {
      if (auto found = Look(tensor)) return Named(*found, NonfiniteStage::kData, "batch", name);
    }
  }
  return std::nullopt;
}

}  // namespace

const char* ToString(NonfiniteStage stage) {
  switch (stage) {
    case NonfiniteStage::kData:
      return "data";
    case NonfiniteStage::kParameters:
      return "parameters";
    case NonfiniteStage::kForward:
      return "forward";
    case NonfiniteStage::kBackward:
      return "backward";
    case NonfiniteStage::kAfterBackward:
      return "after_backward";
  }
  return "";
}

NonfiniteDiagnosis::NonfiniteDiagnosis(Model& model, const NamedTensors& parameters, Device& device,
                                       EventSink& events)
    : model_(model), parameters_(parameters), device_(device), events_(events) {}

void NonfiniteDiagnosis::BeforeForward() { device_.SaveRng(rng_); }

std::optional<NonfiniteFinding> NonfiniteDiagnosis::Find(
    const std::vector<Batch>& batches, const std::function<void()>& forward_backward) {
  if (auto found = LookAtData(batches)) return found;
  for (const auto& [name, parameter] : parameters_) {
    if (auto found = Look(parameter)) {
      return Named(*found, NonfiniteStage::kParameters, ModuleOf(name), name);
    }
  }
  StepState state(model_, parameters_, device_);
  device_.LoadRng(rng_);
  FirstOutput first;
  {
    HookScope scope(model_, &first);
    forward_backward();
  }
  if (first.found) return first.found;
  // The backward pass goes through the modules in the opposite order.
  for (auto item = parameters_.rbegin(); item != parameters_.rend(); ++item) {
    if (auto found = Look(item->second.grad())) {
      return Named(*found, NonfiniteStage::kBackward, ModuleOf(item->first), item->first);
    }
  }
  for (std::size_t i = parameters_.size(); i-- > 0;) {
    const std::string& name = parameters_[i].first;
    if (auto found = Look(state.gradients()[i])) {
      return Named(*found, NonfiniteStage::kAfterBackward, ModuleOf(name), name);
    }
  }
  return std::nullopt;
}

std::optional<NonfiniteFinding> NonfiniteDiagnosis::Explain(
    bool loss_is_finite, const std::vector<Batch>& batches,
    const std::function<void()>& forward_backward) {
  bool& explained = loss_is_finite ? backward_explained_ : forward_explained_;
  if (explained) return std::nullopt;
  explained = true;
  Silence silence;
  const c10::WarningUtils::WarningHandlerGuard quiet(&silence);
  const InFixedOrder in_fixed_order;
  try {
    std::optional<NonfiniteFinding> found = Find(batches, forward_backward);
    if (!found) return std::nullopt;  // the loss is another rank's, and nothing here trains
    AnomalousOp anomalous;
    if (found->stage != NonfiniteStage::kAfterBackward) {
      StepState state(model_, parameters_, device_);
      device_.LoadRng(rng_);
      anomalous = FindAnomalousOp(model_, forward_backward);
    }
    if (found->stage <= NonfiniteStage::kForward) forward_explained_ = true;
    backward_explained_ = true;
    events_.Report(events::kFirstNonfinite, {{"stage", ToString(found->stage)},
                                             {"module", found->module},
                                             {"tensor", found->tensor},
                                             {"kind", found->nans > 0 ? "nan" : "inf"},
                                             {"count", found->nans + found->infs},
                                             {"elements", found->elements},
                                             {"backward_op", anomalous.backward_op},
                                             {"forward_stack", anomalous.forward_stack}});
    return found;
  } catch (const std::exception& error) {
    // The passes were possible once; a second time memory may not suffice. That must not end the
    // run.
    const std::string what = error.what();
    events_.Report(events::kFirstNonfinite,
                   {{"stage", "unknown"}, {"error", what.substr(0, what.find('\n'))}});
    return std::nullopt;
  }
}

}  // namespace trainwreck
