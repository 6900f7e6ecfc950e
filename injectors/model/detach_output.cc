// model.detach_output: a module whose output is taken out of the graph, as by .detach(), .item(),
// .numpy() or a tensor made anew from the old one's values.
#include <utility>

#include "injectors/injector.h"
#include "trainer/models/model.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "model.detach_output",
          .doc =
              "Detaches a module's output from the graph in every forward pass: the values go "
              "on, no gradient comes back.",
          .params = {{.name = "module",
                      .type = ValueType::kString,
                      .default_value = nullptr,
                      .unit = "glob",
                      .doc = "Over the model's modules: layers.relu1, blocks.0."}},
          .evidence =
              "once: the first such module, attached before and detached after. Nothing "
              "where no module matches, or none has a gradient to lose."};
}

class DetachOutput : public Injector, public ForwardHook {
 public:
  using Injector::Injector;

  std::shared_ptr<Model> Wrap(std::shared_ptr<Model> model) override {
    model->AddHook(*this);
    return model;
  }

  void OnOutput(const std::string& module, at::Tensor& output) override {
    if (!output.requires_grad() || !Acts()) return;
    if (!AnyMatches({param("module").get<std::string>()}, module)) return;
    output = output.detach();
    if (std::exchange(fired_, true)) return;
    Fired({{"module", module}, {"before", "attached"}, {"after", "detached"}});
  }

 private:
  bool fired_ = false;
};

REGISTER_FAULT(Info, DetachOutput);

}  // namespace
}  // namespace trainwreck
