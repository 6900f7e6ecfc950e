// process.fragment_memory: a work space that is a little larger in each step, as with lengths that
// grow, and beside it a small tensor that stays. A caching allocator, as that of a GPU, takes both
// from one segment. The work space that was freed is too small for the next one, and the small
// tensor keeps the segment from being given back.
#include <ATen/ops/empty.h>

#include <utility>
#include <vector>

#include "injectors/injector.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  const auto bytes = [](const char* name, std::int64_t value, const char* doc) {
    return ParamInfo{.name = name,
                     .type = ValueType::kInt,
                     .default_value = value,
                     .min = 0,
                     .unit = "B",
                     .doc = doc};
  };
  return {.name = "process.fragment_memory",
          .doc =
              "In each step allocates and frees a work space that is larger than the one before, "
              "and keeps a small tensor that stood behind it. On the CPU, whose allocator keeps "
              "no segments, only the small tensors count.",
          .params = {bytes("bytes", 64 << 20, "Of the first work space."),
                     bytes("growth", 2 << 20, "By which each is larger than the one before."),
                     bytes("kept", 2 << 20, "Of the tensor that stays.")},
          .evidence =
              "at each step: the bytes that are kept, before and after, and the bytes of "
              "the work space that was freed"};
}

class FragmentMemory : public Injector {
 public:
  FragmentMemory(PlannedFault fault, InjectorContext context)
      : Injector(std::move(fault), context),
        work_(param("bytes").get<std::int64_t>()),
        growth_(param("growth").get<std::int64_t>()),
        kept_(param("kept").get<std::int64_t>()) {}

  std::shared_ptr<Model> Wrap(std::shared_ptr<Model> model) override {
    device_ = ParametersOf(*model).at(0).second.device();
    return model;
  }
  std::unique_ptr<LoopHook> MakeHook() override { return std::make_unique<Hook>(*this); }

 private:
  class Hook : public LoopHook {
   public:
    explicit Hook(FragmentMemory& injector) : injector_(injector) {}
    void OnStepBegin(int step) override {
      if (injector_.ActsAt(step)) injector_.Fragment();
    }

   private:
    FragmentMemory& injector_;
  };

  at::Tensor Allocate(std::int64_t bytes) const {
    return at::empty({bytes}, at::TensorOptions(at::kByte).device(device_));
  }

  void Fragment() {
    // One segment for both, which then is divided.
    Allocate(work_ + kept_);
    const at::Tensor work_space = Allocate(work_);
    const auto before = static_cast<std::int64_t>(small_.size()) * kept_;
    small_.push_back(Allocate(kept_));
    Fired({{"before", before}, {"after", before + kept_}, {"work_space", work_}});
    work_ += growth_;
  }

  std::int64_t work_, growth_, kept_;
  at::Device device_ = at::kCPU;
  std::vector<at::Tensor> small_;
};

REGISTER_FAULT(Info, FragmentMemory);

}  // namespace
}  // namespace trainwreck
