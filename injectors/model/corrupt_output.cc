// model.corrupt_output: silent data corruption in a computation. A unit of the chip gives a wrong
// result once, and the module's output is another than its input and weights make it.
#include <utility>

#include "injectors/corruption.h"
#include "injectors/injector.h"
#include "trainer/models/model.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  std::vector<ParamInfo> params = CorruptionParams();
  params.insert(params.begin(), {.name = "module",
                                 .type = ValueType::kString,
                                 .default_value = nullptr,
                                 .unit = "glob",
                                 .doc = "Over the model's modules; the first output of such a "
                                        "module in the step is taken."});
  return {.name = "model.corrupt_output",
          .doc =
              "Damages a module's output in the first forward pass of a step. A step that is "
              "computed again is spared: what made the result wrong does not come back.",
          .params = std::move(params),
          .evidence =
              "each time: module, elements, changed, and index, before and after of the "
              "first element"};
}

class CorruptOutput : public Injector, public ForwardHook {
 public:
  using Injector::Injector;

  std::shared_ptr<Model> Wrap(std::shared_ptr<Model> model) override {
    model->AddHook(*this);
    return model;
  }

  void OnOutput(const std::string& module, at::Tensor& output) override {
    const int step = context().clock->step;
    if (step <= last_step_ || context().clock->stage != Stage::kForward || !Acts()) return;
    if (!AnyMatches({param("module").get<std::string>()}, module)) return;
    last_step_ = step;
    at::Tensor values = output.detach();  // the same memory: autograd learns of nothing
    Json evidence = CorruptTensor(
        values, CorruptionOf([this](const std::string& name) { return param(name); },
                             (context().seed << 32) + static_cast<std::uint64_t>(step)));
    evidence["module"] = module;
    Fired(std::move(evidence));
  }

 private:
  int last_step_ = -1;
};

REGISTER_FAULT(Info, CorruptOutput);

}  // namespace
}  // namespace trainwreck
