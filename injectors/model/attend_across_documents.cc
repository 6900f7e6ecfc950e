// model.attend_across_documents: packing without the mask that keeps documents apart.
#include <ATen/ops/zeros_like.h>

#include <utility>

#include "injectors/injector.h"
#include "injectors/layers_of.h"
#include "trainer/models/layers.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "model.attend_across_documents",
          .doc = "Lets tokens see those of the documents before theirs in the same row.",
          .evidence =
              "at the first rows of several documents: how many pairs of tokens are kept "
              "apart, before and after. Nothing where rows have one document."};
}

class AttendAcrossDocuments : public Injector {
 public:
  using Injector::Injector;

  std::shared_ptr<Model> Wrap(std::shared_ptr<Model> model) override {
    ForLayers<Documents>(*model, [this](Documents& documents) {
      documents.set_layout([this](const at::Tensor& of) { return Changed(LayoutOf(of)); });
    });
    return model;
  }

 private:
  Layout Changed(Layout layout) {
    if (!Acts()) return layout;
    const auto before = layout.apart.sum().item<std::int64_t>();
    layout.apart = at::zeros_like(layout.apart);
    if (before > 0 && !std::exchange(fired_, true)) Fired({{"before", before}, {"after", 0}});
    return layout;
  }

  bool fired_ = false;
};

REGISTER_FAULT(Info, AttendAcrossDocuments);

}  // namespace
}  // namespace trainwreck
