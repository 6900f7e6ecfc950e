#include "trainer/telemetry/failing_op.h"

#include <ATen/record_function.h>

#include <exception>
#include <memory>
#include <mutex>
#include <utility>

namespace trainwreck {
namespace {

// The backward pass has threads of its own.
std::mutex mutex;
FailingOp failing;
const void* thrower = nullptr;  // the thread whose error is in `failing`; null: it was caught

// An address that differs from thread to thread.
const void* ThisThread() {
  static thread_local char here;
  return &here;
}

// An operation that ends while its thread unwinds has thrown. The innermost one ends first.
void OnEnd(const at::RecordFunction& function, at::ObserverContext* /*context*/) {
  const bool has_thrown = std::uncaught_exceptions() > 0;
  std::lock_guard<std::mutex> lock(mutex);
  if (!has_thrown) {
    if (thrower == ThisThread()) thrower = nullptr;
    return;
  }
  if (thrower != ThisThread()) failing = {.op = function.name(), .within = ""};
  thrower = ThisThread();
  failing.within = function.name();
}

std::unique_ptr<at::ObserverContext> OnStart(const at::RecordFunction& /*function*/) {
  return nullptr;
}

}  // namespace

void WatchOperations() {
  static const at::CallbackHandle handle = at::addGlobalCallback(
      at::RecordFunctionCallback(OnStart, OnEnd)
          .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}));
  static_cast<void>(handle);
}

FailingOp LastFailingOp() {
  std::lock_guard<std::mutex> lock(mutex);
  return failing;
}

}  // namespace trainwreck
