// Where the ranks of a run meet: a store, in a file or served by rank 0 over TCP, that each writes
// its arrival into. The communicators of all backends share it, so that they name a missing rank in
// the same words.
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

#include "trainer/parts.h"

namespace trainwreck {

std::chrono::milliseconds Milliseconds(double seconds);  // at least one

// The ranks did not meet. The message: "rendezvous of rank 0 of 2 at FILE within 30 s: these ranks
// have not come: 1".
class RendezvousError : public std::runtime_error {
 public:
  RendezvousError(const GroupOptions& options, std::vector<int> missing, const std::string& what);
  const std::string& where() const { return where_; }
  // The ranks that have not arrived; empty: this rank did not reach the store, or all came and the
  // group could not be made.
  const std::vector<int>& missing() const { return missing_; }

 private:
  std::string where_;
  std::vector<int> missing_;
};

// Whether all ranks are on this machine, as far as the options tell: no launcher has said that some
// are elsewhere, and they meet in a file, or at an address of the loopback interface.
bool IsLocalGroup(const GroupOptions& options);

// Opens the store and writes this rank's arrival. Throws std::runtime_error when the options name
// no rank of a group, RendezvousError when the store cannot be reached within the timeout.
c10::intrusive_ptr<c10d::Store> Arrive(const GroupOptions& options);

// Blocks until all ranks have arrived. Throws RendezvousError after the timeout.
void AwaitArrivals(c10d::Store& store, const GroupOptions& options);

// The error of a group that could not be made; `what` is said where all ranks have arrived.
RendezvousError RendezvousFailure(c10d::Store& store, const GroupOptions& options,
                                  const char* what);

// LibTorch's message without its C++ backtrace.
std::string FirstLine(const char* message);

// "all_reduce (call 3 of rank 0 of 2): WHAT", as every backend words a failed call.
std::string CallFailure(const char* op, int call, const GroupOptions& options, const char* what);

}  // namespace trainwreck
