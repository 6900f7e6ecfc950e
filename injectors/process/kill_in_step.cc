// process.kill_in_step: a node that fails: its processes are gone at a moment that nothing in them
// knows of, also while a checkpoint is written.
#include <sys/time.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <optional>
#include <random>
#include <utility>

#include "injectors/injector.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "process.kill_in_step",
          .doc =
              "Kills the process (SIGKILL) at a random moment after the begin of a step at which "
              "the trigger acts: within the time that the longest step before took, with its "
              "checkpoint. The run's seed gives the share of that time, and with `from` and "
              "`to` also the step, the same on all ranks.",
          .evidence =
              "written at the begin of the step: before (running), after (killed), and "
              "after_us: the microseconds until then"};
}

using SteadyClock = std::chrono::steady_clock;

void KillThisProcess(int) { raise(SIGKILL); }

class KillInStep : public Injector {
 public:
  KillInStep(PlannedFault fault, InjectorContext context)
      : Injector(std::move(fault), context), draw_(context.seed) {
    const Trigger& trigger = this->fault().trigger;
    if (trigger.from && trigger.to) {
      step_ = std::uniform_int_distribution<int>(*trigger.from, *trigger.to)(draw_);
    }
  }

  std::unique_ptr<LoopHook> MakeHook() override;

  void BeginStep(int step) {
    const SteadyClock::time_point now = SteadyClock::now();
    if (began_) longest_ = std::max(longest_, now - *began_);
    began_ = now;
    if (!ActsAt(step) || (step_ && *step_ != step)) return;
    const double share = std::uniform_real_distribution<>(0, 1)(draw_);
    const auto within = std::chrono::duration_cast<std::chrono::microseconds>(longest_).count();
    const auto after_us =
        std::max<suseconds_t>(1, static_cast<suseconds_t>(share * static_cast<double>(within)));
    Fired({{"before", "running"}, {"after", "killed"}, {"after_us", after_us}});
    std::signal(SIGALRM, KillThisProcess);
    const itimerval once{.it_interval = {},
                         .it_value = {.tv_sec = after_us / 1000000, .tv_usec = after_us % 1000000}};
    setitimer(ITIMER_REAL, &once, nullptr);
  }

 private:
  std::mt19937_64 draw_;
  std::optional<int> step_;
  std::optional<SteadyClock::time_point> began_;
  SteadyClock::duration longest_{};
};

class KillHook : public LoopHook {
 public:
  explicit KillHook(KillInStep& injector) : injector_(injector) {}
  void OnStepBegin(int step) override { injector_.BeginStep(step); }

 private:
  KillInStep& injector_;
};

std::unique_ptr<LoopHook> KillInStep::MakeHook() { return std::make_unique<KillHook>(*this); }

REGISTER_FAULT(Info, KillInStep);

}  // namespace
}  // namespace trainwreck
