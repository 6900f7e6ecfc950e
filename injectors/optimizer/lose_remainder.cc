// optimizer.lose_remainder: an update that divides each parameter among the threads, and leaves out
// what remains of the division.
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <utility>

#include "injectors/optimizer/update_fault.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "optimizer.lose_remainder",
          .doc =
              "Does not update the last elements of a parameter where their number is no multiple "
              "of the number of threads.",
          .has_trigger = false,
          .evidence =
              "once: the first parameter that has such elements, and how many are updated before "
              "and after. Nothing with one thread."};
}

class LoseRemainder : public UpdateFault {
 public:
  using UpdateFault::UpdateFault;

 private:
  void Update(Optimizer& optimizer, double lr) override {
    Keep();
    optimizer.Step(lr);
    PutBack();
  }

  void Keep() {
    at::NoGradGuard no_grad;
    kept_.clear();
    for (const auto& [name, parameter] : parameters()) {
      const std::int64_t elements = parameter.numel(), lost = elements % at::get_num_threads();
      if (lost == 0) continue;
      const at::Tensor tail = parameter.view(-1).narrow(0, elements - lost, lost);
      kept_.emplace_back(tail, tail.clone());
      if (std::exchange(fired_, true)) continue;
      Fired({{"parameter", name}, {"before", elements}, {"after", elements - lost}});
    }
  }
  void PutBack() {
    at::NoGradGuard no_grad;
    for (auto& [tail, values] : kept_) tail.copy_(values);
  }

  std::vector<std::pair<at::Tensor, at::Tensor>> kept_;  // the end of a parameter, what it was
  bool fired_ = false;
};

REGISTER_FAULT(Info, LoseRemainder);

}  // namespace
}  // namespace trainwreck
