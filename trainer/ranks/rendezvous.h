// Where the ranks of a run meet: a file that each writes its arrival into. The communicators of all
// backends share it, so that they name a missing rank in the same words.
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "trainer/parts.h"

namespace trainwreck {

std::chrono::milliseconds Milliseconds(double seconds);  // at least one

// Opens the file and writes this rank's arrival. Throws std::runtime_error when the options name no
// rank of a group.
c10::intrusive_ptr<c10d::Store> Arrive(const GroupOptions& options);

// Blocks until all ranks have arrived. Throws std::runtime_error after the timeout; it names the
// ranks that have not arrived.
void AwaitArrivals(c10d::Store& store, const GroupOptions& options);

// "rendezvous of rank 0 of 2 at FILE within 30 s: these ranks have not come: 1"; `what` replaces
// the ranks when all have come.
std::string RendezvousFailure(c10d::Store& store, const GroupOptions& options, const char* what);

// LibTorch's message without its C++ backtrace.
std::string FirstLine(const char* message);

// "all_reduce (call 3 of rank 0 of 2): WHAT", as every backend words a failed call.
std::string CallFailure(const char* op, int call, const GroupOptions& options, const char* what);

}  // namespace trainwreck
