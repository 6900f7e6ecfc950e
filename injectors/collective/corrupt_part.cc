// collective.corrupt_part: what one rank brings to an all-reduce is damaged, as by a bit that flips
// in its backward pass. All ranks get the same wrong sum, so the replicas stay equal.
#include "injectors/collective/corrupted_calls.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return CorruptedCalls::InfoOf("collective.corrupt_part",
                                "Changes what the ranks that the trigger names bring to "
                                "all-reduces, the gradients' by default, before they are made.");
}

class CorruptPart : public CorruptedCalls {
 public:
  using CorruptedCalls::CorruptedCalls;

 protected:
  void AllReduce(Communicator& inner, at::Tensor& tensor, Reduction reduction, int call) override {
    Damage(tensor, call);
    inner.AllReduce(tensor, reduction);
  }
};

REGISTER_FAULT(Info, CorruptPart);

}  // namespace
}  // namespace trainwreck
