// data.slow_fetch: samples that take long to get, as from a slow disk, a store at the other end of
// a network, or a costly decoder.
#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

#include "injectors/injector.h"

namespace trainwreck {
namespace {

using Clock = std::chrono::steady_clock;

FaultInfo Info() {
  return {.name = "data.slow_fetch",
          .doc = "Waits at each training sample that is fetched, in the thread that fetches it.",
          .params = {{.name = "seconds",
                      .type = ValueType::kNumber,
                      .default_value = 0.002,
                      .min = 0,
                      .max = 10,
                      .unit = "s",
                      .doc = "How long."}},
          .evidence = "once: the first sample, and the seconds that it took before and after"};
}

class SlowFetch : public Injector {
 public:
  SlowFetch(PlannedFault fault, InjectorContext context)
      : Injector(std::move(fault), context), wait_(param("seconds").get<double>()) {}

  std::unique_ptr<Dataset> Wrap(std::unique_ptr<Dataset> data) override {
    return std::make_unique<SlowData>(std::move(data), *this);
  }

 private:
  class SlowData : public DatasetAround {
   public:
    SlowData(std::unique_ptr<Dataset> inner, SlowFetch& owner)
        : DatasetAround(std::move(inner)), owner_(owner) {}

    Sample Get(std::int64_t id) const override {
      const Clock::time_point began = Clock::now();
      Sample sample = inner().Get(id);
      if (owner_.Acts()) owner_.Wait(sample, began);
      return sample;
    }

   private:
    SlowFetch& owner_;
  };

  void Wait(const Sample& sample, Clock::time_point began) {
    const std::chrono::duration<double> before = Clock::now() - began;
    std::this_thread::sleep_for(wait_);
    const std::chrono::duration<double> after = Clock::now() - began;
    if (fired_.exchange(true)) return;
    Fired({{"sample", sample.id}, {"before", before.count()}, {"after", after.count()}});
  }

  std::chrono::duration<double> wait_;
  std::atomic<bool> fired_ = false;
};

REGISTER_FAULT(Info, SlowFetch);

}  // namespace
}  // namespace trainwreck
