// The first op of a backward pass that returned a NaN, by LibTorch's anomaly mode, and where in the
// forward pass it comes from. In Python, anomaly mode prints the stack of the forward call; here
// that is the module and LibTorch's own calls in it.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace trainwreck {

class Model;

struct AnomalousOp {
  std::string backward_op;  // "MulBackward0"; empty: none returned a NaN (infinities are not seen)
  // Of the call in the forward pass that it is the derivative of: the module that was computed, and
  // the operations, outermost first: {"head", "aten::linear", "aten::addmm"}. Empty: not known.
  std::vector<std::string> forward_stack;
};

// Makes the passes in anomaly mode: up to the op at fault.
AnomalousOp FindAnomalousOp(Model& model, const std::function<void()>& forward_backward);

}  // namespace trainwreck
