// That the user wants this process to end: set by its signal handler, read by all that works or
// waits. What ends for another reason, as --fail-fast, does not come by here.
#pragma once

namespace trainwreck {

// Thrown by what cannot go on: a command that was waited for has been ended.
struct Interrupted {};

// From now on interruptions can be waited for. Throws std::system_error.
void PrepareForInterruption();

// Async-signal-safe. It cannot be taken back.
void Interrupt();
bool WasInterrupted();

// Readable since Interrupt(), for poll; -1 before PrepareForInterruption().
int InterruptionDescriptor();

}  // namespace trainwreck
