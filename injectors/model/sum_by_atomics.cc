// model.sum_by_atomics: an embedding by index_select. It takes the same rows. Its gradient adds up
// the rows of a token with index_add, which on a GPU are atomic additions in the order in which
// threads come to them: another one each time, so the last bits are others.
#include <ATen/ops/index_select.h>

#include <utility>

#include "injectors/injector.h"
#include "injectors/layers_of.h"
#include "trainer/models/layers.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "model.sum_by_atomics",
          .doc =
              "Looks embeddings up by index_select. On a GPU their gradients are then sums by "
              "atomic additions, whose order, and with it the last bits, is another each time, "
              "unless algorithms are deterministic. On the CPU the order is one.",
          .has_trigger = false,
          .evidence = "once: the names of the embeddings, and the operation before and after."};
}

at::Tensor SelectRows(const at::Tensor& table, const at::Tensor& ids) {
  std::vector<std::int64_t> shape = ids.sizes().vec();
  shape.push_back(table.size(1));
  return at::index_select(table, 0, ids.flatten()).view(shape);
}

class SumByAtomics : public Injector {
 public:
  using Injector::Injector;

  std::shared_ptr<Model> Wrap(std::shared_ptr<Model> model) override {
    const auto changed = ForLayers<Embedding>(
        *model, [](Embedding& embedding) { embedding.set_lookup(SelectRows); });
    if (changed.empty()) {
      throw RecipeError("model.sum_by_atomics: the model has no embedding of tokens");
    }
    Fired({{"embeddings", changed}, {"before", "embedding"}, {"after", "index_select"}});
    return model;
  }
};

REGISTER_FAULT(Info, SumByAtomics);

}  // namespace
}  // namespace trainwreck
