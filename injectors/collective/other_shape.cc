// collective.other_shape: a rank whose model has another size or type than its peers': another
// version of the code, another configuration file, a padded vocabulary.

#include <utility>

#include "injectors/collective/chosen_calls.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {
      .name = "collective.other_shape",
      .doc =
          "Takes another number or type of elements into all-reduces, the gradients' by "
          "default. Say `ranks`: on all ranks they agree again.",
      .params = {ChosenCalls::CallsParam(),
                 {.name = "how",
                  .type = ValueType::kString,
                  .default_value = "shorter",
                  .choices = {"shorter", "double", "int32"},
                  .unit = "",
                  .doc = "shorter: without the last element; double: as floats of 64 bits; "
                         "int32: as whole numbers of 32 bits, which take as many bytes"}},
      .min_ranks = 2,
      .evidence = "once in each step: the number of the call, elements and type before and after"};
}

std::string CallText(const at::Tensor& tensor) {
  return std::to_string(tensor.numel()) + " " + c10::toString(tensor.scalar_type());
}

class OtherShape : public ChosenCalls {
 public:
  using ChosenCalls::ChosenCalls;

 protected:
  void AllReduce(Communicator& inner, at::Tensor& tensor, Reduction reduction, int call) override {
    const std::string how = param("how");
    at::Tensor part = tensor.view(-1);
    if (how == "shorter") part = part.narrow(0, 0, part.numel() - 1);
    at::Tensor other = how == "shorter"  ? part.clone()
                       : how == "double" ? part.to(at::kDouble)
                                         : part.to(at::kInt);
    if (const int step = context().clock->step; step != reported_step_) {
      reported_step_ = step;
      Fired({{"call", call}, {"before", CallText(tensor)}, {"after", CallText(other)}});
    }
    inner.AllReduce(other, reduction);
    part.copy_(other);
  }

 private:
  int reported_step_ = -1;
};

REGISTER_FAULT(Info, OtherShape);

}  // namespace
}  // namespace trainwreck
