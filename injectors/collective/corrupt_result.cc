// collective.corrupt_result: an all-reduce gives one rank another result than its peers, as a
// broken link or a race with a buffer does. Nobody is told, and the replicas part.
#include "injectors/collective/corrupted_calls.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return CorruptedCalls::InfoOf("collective.corrupt_result",
                                "Changes the result of all-reduces, the gradients' by default, "
                                "after they were made, on the ranks that the trigger names.");
}

class CorruptResult : public CorruptedCalls {
 public:
  using CorruptedCalls::CorruptedCalls;

 protected:
  void AllReduce(Communicator& inner, at::Tensor& tensor, Reduction reduction, int call) override {
    inner.AllReduce(tensor, reduction);
    Damage(tensor, call);
  }
};

REGISTER_FAULT(Info, CorruptResult);

}  // namespace
}  // namespace trainwreck
