// Waits with an end. Backends' own waits either block for ever or only order streams, so that the
// host learns of a failure when it reads a result that never comes.
#pragma once

#include <chrono>
#include <functional>
#include <torch/csrc/distributed/c10d/Work.hpp>

namespace trainwreck {

// Returns when the work is done, by polling. `suspect` is called once, when it has taken
// `suspicious` long. Throws the work's own error, or std::runtime_error after the timeout. Says
// whether `suspect` was called.
bool AwaitWork(c10d::Work& work, double timeout_s, std::chrono::milliseconds suspicious,
               const std::function<void()>& suspect);

// Makes a call that may block for ever, on a thread of its own. Throws what it throws, or
// std::runtime_error after the timeout; the thread is then left to the end of the process, so the
// call must own what it uses.
void BoundedCall(double timeout_s, std::function<void()> call);

}  // namespace trainwreck
