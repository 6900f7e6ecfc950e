// process.slow_compute: a rank whose machine computes more slowly than the others: a GPU that
// throttles, a core that is shared, a slow link to the memory.
#include <chrono>
#include <thread>

#include "injectors/injector.h"

namespace trainwreck {
namespace {

using Clock = std::chrono::steady_clock;

FaultInfo Info() {
  return {.name = "process.slow_compute",
          .doc =
              "Waits after the backward pass of each step, so that it has taken `factor` times as "
              "long from the step's beginning. Say `ranks`.",
          .params = {{.name = "factor",
                      .type = ValueType::kNumber,
                      .default_value = 3.0,
                      .min = 1,
                      .max = 100,
                      .unit = "times",
                      .doc = "How much longer data, forward and backward pass take."}},
          .evidence = "once: the seconds of the first step's work before and after the wait"};
}

double Seconds(Clock::duration time) { return std::chrono::duration<double>(time).count(); }

class SlowCompute : public Injector {
 public:
  SlowCompute(PlannedFault fault, InjectorContext context)
      : Injector(std::move(fault), context), factor_(param("factor").get<double>()) {}

  std::unique_ptr<LoopHook> MakeHook() override;

  void Slow(Clock::time_point began) {
    const Clock::duration worked = Clock::now() - began;
    std::this_thread::sleep_for((factor_ - 1) * worked);
    if (fired_) return;
    Fired({{"before", Seconds(worked)}, {"after", Seconds(Clock::now() - began)}});
    fired_ = true;
  }

 private:
  double factor_;
  bool fired_ = false;
};

class SlowHook : public LoopHook {
 public:
  explicit SlowHook(SlowCompute& injector) : injector_(injector) {}
  void OnStepBegin(int /*step*/) override { began_ = Clock::now(); }
  void OnBackwardDone(int step) override {
    if (injector_.ActsAt(step)) injector_.Slow(began_);
  }

 private:
  SlowCompute& injector_;
  Clock::time_point began_;
};

std::unique_ptr<LoopHook> SlowCompute::MakeHook() { return std::make_unique<SlowHook>(*this); }

REGISTER_FAULT(Info, SlowCompute);

}  // namespace
}  // namespace trainwreck
