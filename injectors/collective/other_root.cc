// collective.other_root: ranks that do not agree on whose values a broadcast takes over.
#include <utility>

#include "injectors/injector.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "collective.other_root",
          .doc =
              "Takes another root for broadcasts: the rank itself. Say `ranks`: "
              "each of them keeps its own values.",
          .min_ranks = 2,
          .evidence = "each time: the root before and after"};
}

class OtherRoot : public Injector {
 public:
  using Injector::Injector;

  std::unique_ptr<Communicator> Wrap(std::unique_ptr<Communicator> inner) override {
    return std::make_unique<Wrapped>(std::move(inner), *this);
  }

  int RootInPlaceOf(int root) {
    if (!Acts() || root == context().rank) return root;
    Fired({{"before", root}, {"after", context().rank}});
    return context().rank;
  }

 private:
  class Wrapped : public Communicator {
   public:
    Wrapped(std::unique_ptr<Communicator> inner, OtherRoot& injector)
        : inner_(std::move(inner)), injector_(injector) {}
    int rank() const override { return inner_->rank(); }
    int world_size() const override { return inner_->world_size(); }
    void AllReduce(at::Tensor& tensor, Reduction reduction) override {
      inner_->AllReduce(tensor, reduction);
    }
    void Broadcast(at::Tensor& tensor, int root) override {
      inner_->Broadcast(tensor, injector_.RootInPlaceOf(root));
    }
    void Reduce(at::Tensor& tensor, int root) override { inner_->Reduce(tensor, root); }
    void Barrier() override { inner_->Barrier(); }

   private:
    std::unique_ptr<Communicator> inner_;
    OtherRoot& injector_;
  };
};

REGISTER_FAULT(Info, OtherRoot);

}  // namespace
}  // namespace trainwreck
