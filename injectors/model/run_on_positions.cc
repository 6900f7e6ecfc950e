// model.run_on_positions: packing whose positions count along the row, and not in each document.
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>

#include "injectors/injector.h"
#include "injectors/layers_of.h"
#include "trainer/models/layers.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "model.run_on_positions",
          .doc = "Counts positions along a row of several documents, where each begins at 0.",
          .evidence =
              "at the first rows of several documents: the largest position, before and after. "
              "Nothing where rows have one document."};
}

class RunOnPositions : public Injector {
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
    const at::Tensor right = layout.positions;
    layout.positions = at::arange(right.size(1), right.options()).expand_as(right);
    if (!fired_ && !at::equal(right, layout.positions)) {
      fired_ = true;
      Fired({{"before", right.max().item<std::int64_t>()}, {"after", right.size(1) - 1}});
    }
    return layout;
  }

  bool fired_ = false;
};

REGISTER_FAULT(Info, RunOnPositions);

}  // namespace
}  // namespace trainwreck
