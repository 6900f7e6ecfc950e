// process.crash_rank: a rank dies or stops at an exact step: a bug that throws, the kernel's
// out-of-memory killer, a frozen node, a library that calls exit.
#include <unistd.h>

#include <csignal>
#include <stdexcept>
#include <utility>

#include "injectors/injector.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {
      .name = "process.crash_rank",
      .doc =
          "Ends or stops the process at the start of each step at which the trigger acts. Say `at` "
          "and `ranks`, and `attempt: 0` where a supervisor restarts the run and the fault should "
          "not meet it again.",
      .params = {{.name = "how",
                  .type = ValueType::kString,
                  .default_value = "exception",
                  .choices = {"exception", "sigkill", "sigstop", "exit"},
                  .unit = "",
                  .doc =
                      "exception is thrown out of the training loop, sigkill and sigstop are sent "
                      "to the own process, exit leaves at once without any clean-up."},
                 {.name = "code",
                  .type = ValueType::kInt,
                  .default_value = 1,
                  .min = 0,
                  .max = 255,
                  .unit = "exit code",
                  .doc = "Of `how: exit`; others have their own."}},
      .evidence =
          "written before the act: how, before (running), after, and the signal's number or "
          "the exit code"};
}

class CrashRank : public Injector {
 public:
  CrashRank(PlannedFault fault, InjectorContext context)
      : Injector(std::move(fault), context),
        how_(param("how").get<std::string>()),
        code_(param("code").get<int>()) {}

  std::unique_ptr<LoopHook> MakeHook() override;

  void Crash(int step) {
    if (how_ == "sigkill") {
      Report("killed", {{"signal", SIGKILL}});
      std::raise(SIGKILL);
    } else if (how_ == "sigstop") {
      Report("stopped", {{"signal", SIGSTOP}});
      std::raise(SIGSTOP);
    } else if (how_ == "exit") {
      Report("exited", {{"code", code_}});
      ::_exit(code_);
    } else {
      Report("thrown", Json::object());
      throw std::runtime_error("injected exception at step " + std::to_string(step) + " on rank " +
                               std::to_string(context().rank));
    }
  }

 private:
  void Report(const char* after, Json fields) {
    fields["how"] = how_;
    fields["before"] = "running";
    fields["after"] = after;
    Fired(std::move(fields));
  }

  std::string how_;
  int code_;
};

class CrashHook : public LoopHook {
 public:
  explicit CrashHook(CrashRank& injector) : injector_(injector) {}
  void OnStepBegin(int step) override {
    if (injector_.ActsAt(step)) injector_.Crash(step);
  }

 private:
  CrashRank& injector_;
};

std::unique_ptr<LoopHook> CrashRank::MakeHook() { return std::make_unique<CrashHook>(*this); }

REGISTER_FAULT(Info, CrashRank);

}  // namespace
}  // namespace trainwreck
