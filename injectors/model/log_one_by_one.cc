// model.log_one_by_one: a logger that reads statistics of each gradient as numbers, one after the
// other. On a GPU each of them waits until the device has done all that was queued.
#include <ATen/core/Tensor.h>

#include <utility>
#include <vector>

#include "harness/protocol/trace.h"
#include "injectors/injector.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "model.log_one_by_one",
          .doc =
              "Each time the logger is called (log.every), reads norm, mean, least and largest "
              "element of each gradient on the host. Nothing but the time changes.",
          .params = {{.name = "parameters",
                      .type = ValueType::kStringList,
                      .default_value = Json::array({"*"}),
                      .unit = "globs",
                      .doc = "Whose gradients: [\"head.*\"]."}},
          .evidence = "at each call: how many numbers have been read in the run, before and after"};
}

class LogOneByOne : public Injector {
 public:
  LogOneByOne(PlannedFault fault, InjectorContext context)
      : Injector(std::move(fault), context),
        globs_(param("parameters").get<std::vector<std::string>>()) {}

  std::shared_ptr<Model> Wrap(std::shared_ptr<Model> model) override {
    model_ = model;
    return model;
  }
  std::unique_ptr<LoopHook> MakeHook() override { return std::make_unique<Hook>(*this); }

 private:
  class Hook : public LoopHook {
   public:
    explicit Hook(LogOneByOne& injector) : injector_(injector) {}
    void OnLog(int /*step*/) override { injector_.Log(); }

   private:
    LogOneByOne& injector_;
  };

  void Log() {
    if (!Acts()) return;
    const std::int64_t before = read_;
    for (const auto& [name, parameter] : ParametersOf(*model_)) {
      const at::Tensor& gradient = parameter.grad();
      if (!gradient.defined() || !AnyMatches(globs_, name)) continue;
      for (const at::Tensor& statistic :
           {gradient.norm(), gradient.mean(), gradient.min(), gradient.max()}) {
        last_ = statistic.item<double>();
        ++read_;
      }
    }
    if (read_ > before)
      Fired({{"before", before}, {"after", read_}, {"last", EncodeNumber(last_)}});
  }

  std::vector<std::string> globs_;
  std::shared_ptr<Model> model_;
  std::int64_t read_ = 0;
  double last_ = 0;
};

REGISTER_FAULT(Info, LogOneByOne);

}  // namespace
}  // namespace trainwreck
