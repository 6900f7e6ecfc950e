#include "trainer/telemetry/anomaly.h"

#include <ATen/record_function.h>
#include <torch/csrc/autograd/anomaly_mode.h>

#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "trainer/models/model.h"

namespace trainwreck {
namespace {

// Follows the calls of operations. A node of the graph has the number that the innermost call had
// when it made the node (LibTorch's sequence number, which counts in each thread by itself), so the
// last call with a node's number is the one that it is the derivative of.
class ForwardCalls : public ForwardHook {
 public:
  ForwardCalls() {
    active = this;
    forward_ = at::addGlobalCallback(
        at::RecordFunctionCallback(OnCall, OnReturn).scopes({at::RecordScope::FUNCTION}));
    backward_ = at::addGlobalCallback(
        at::RecordFunctionCallback(OnNode).scopes({at::RecordScope::BACKWARD_FUNCTION}));
  }
  ~ForwardCalls() override {
    at::removeCallback(forward_);
    at::removeCallback(backward_);
    torch::autograd::AnomalyMode::set_enabled(false);
    active = nullptr;
  }

  // A module announces its output when that is there: the calls before it are its own.
  void OnOutput(const std::string& module, at::Tensor& /*output*/) override {
    torch::autograd::AnomalyMode::set_enabled(false);  // the next micro-batch's forward pass
    std::lock_guard lock(mutex_);
    modules_.push_back(module);
  }

  // Of the last node with this name.
  std::vector<std::string> StackOf(const std::string& node) {
    std::lock_guard lock(mutex_);
    const auto number = nodes_.find(node);
    if (number == nodes_.end()) return {};
    const auto call = calls_.find(number->second);
    if (call == calls_.end()) return {};
    std::vector<std::string> stack = call->second.operations;
    // Of activations that the backward pass recomputes.
    std::erase_if(stack, [](const std::string& name) { return name.starts_with("autograd::"); });
    if (call->second.outputs_before < modules_.size()) {
      stack.insert(stack.begin(), modules_[call->second.outputs_before]);
    }
    return stack;
  }

 private:
  using Number = std::pair<std::uint64_t, std::int64_t>;  // thread, sequence number
  struct Call {
    std::vector<std::string> operations;
    std::size_t outputs_before = 0;
  };

  static std::unique_ptr<at::ObserverContext> OnCall(const at::RecordFunction& function) {
    std::lock_guard lock(active->mutex_);
    auto& open = active->open_[function.threadId()];
    open.emplace_back(function.name());
    if (function.seqNr() >= 0) {
      active->calls_[{function.threadId(), function.seqNr()}] = {open, active->modules_.size()};
    }
    return nullptr;
  }
  static void OnReturn(const at::RecordFunction& function, at::ObserverContext* /*context*/) {
    std::lock_guard lock(active->mutex_);
    auto& open = active->open_[function.threadId()];
    if (!open.empty()) open.pop_back();
  }
  // Anomaly mode is on in backward passes alone, from their first op on: in a forward pass, it
  // looks up the symbols of a stack for each operation, which nobody reads, in most of a second for
  // a small model.
  static std::unique_ptr<at::ObserverContext> OnNode(const at::RecordFunction& function) {
    torch::autograd::AnomalyMode::set_enabled(true);
    std::lock_guard lock(active->mutex_);
    active->nodes_[function.name()] = {function.forwardThreadId(), function.seqNr()};
    return nullptr;
  }

  static inline ForwardCalls* active = nullptr;  // LibTorch's callbacks carry no state of ours

  at::CallbackHandle forward_, backward_;
  std::mutex mutex_;  // the backward pass may have a thread of its own
  std::map<std::uint64_t, std::vector<std::string>> open_;
  std::map<Number, Call> calls_;
  std::map<std::string, Number> nodes_;
  std::vector<std::string> modules_;
};

}  // namespace

AnomalousOp FindAnomalousOp(Model& model, const std::function<void()>& forward_backward) {
  ForwardCalls calls;
  HookScope scope(model, &calls);
  try {
    forward_backward();
  } catch (const std::exception& error) {
    // "Function 'SqrtBackward0' returned nan values in its 0th output."
    const std::string what = error.what();
    const std::size_t begin = what.find("Function '");
    const std::size_t end = what.find("' returned nan");
    if (begin != std::string::npos && end != std::string::npos) {
      const std::string op = what.substr(begin + 10, end - begin - 10);
      return {.backward_op = op, .forward_stack = calls.StackOf(op)};
    }
  }
  return {};
}

}  // namespace trainwreck
