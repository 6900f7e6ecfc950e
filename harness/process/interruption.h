// The user's wish to end this process: set by its signal handler, read wherever the process works
// or waits. Other reasons to end, such as --fail-fast, do not use it.
#pragma once

namespace trainwreck {

// Thrown where the work cannot go on because a command was ended.
struct Interrupted {};

// Prepares for waiting on interruptions. Throws std::system_error.
void PrepareForInterruption();

// Sets the wish, which a signal brought. Async-signal-safe. It cannot be taken back.
void Interrupt(int signal);
bool WasInterrupted();
int InterruptingSignal();  // the first one; 0: none

// A descriptor for poll, readable after Interrupt; -1 before PrepareForInterruption().
int InterruptionDescriptor();

// Waits for the exclusive flock(2) of an open file. Throws Interrupted.
void AwaitLock(int descriptor);

}  // namespace trainwreck
