// What a tensor's memory is for: said by a scope around the code that allocates, and remembered
// with each block by an allocator that counts (devices/cpu_memory.h).
//
//   MemoryScope scope(MemoryOwner::kActivations);
//   loss = model.Loss(batch);  // what the forward pass allocates, and what its graph keeps
//
// The place of the scope in the code is remembered, too: the call site of what it allocates. What
// fills a container that lives on opens a scope of its own there, so that a leak has a name.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <source_location>
#include <string>
#include <vector>

namespace trainwreck {

enum class MemoryOwner : std::uint8_t {
  kOther,  // data, checkpoints
  kParameters,
  kGradients,  // of parameters and, within the backward pass, of activations
  kOptimizer,  // its state, and what an update needs for a moment
  kActivations,
  kEvaluation,
  kLogging,
};
inline constexpr std::size_t kMemoryOwners = 7;
const char* ToString(MemoryOwner owner);  // "other", "parameters", ...

// Bytes of each owner, by its number.
using MemoryByOwner = std::array<std::int64_t, kMemoryOwners>;
inline std::int64_t BytesOf(const MemoryByOwner& bytes, MemoryOwner owner) {
  return bytes[static_cast<std::size_t>(owner)];
}

// The owner of what this thread allocates now.
MemoryOwner CurrentMemoryOwner();

// Whether what this thread allocates now is the training's (UncountedMemory).
bool MemoryIsCounted();

// Which part of its forward pass this thread computes, by its place in the pass: remembered with
// blocks of activations (telemetry/forward_parts.h). The last number is that of all later ones.
inline constexpr std::size_t kForwardParts = 512;
std::size_t CurrentForwardPart();
void SetForwardPart(std::size_t part);

// A place in the code that opens scopes of an owner.
struct MemorySite {
  MemoryOwner owner = MemoryOwner::kOther;
  std::string function;  // "TrainingLoop::LogStep"
  std::string at;        // "trainer/loop.cc:425"
};

// All sites that opened a scope in this process, by their number. The first stands for memory
// without a scope, and for all beyond the last number.
inline constexpr std::size_t kMemorySites = 64;
std::vector<MemorySite> MemorySites();

// That of the innermost scope of this thread.
std::size_t CurrentMemorySite();

// Makes `owner` the current one for as long as the scope lives. Scopes nest; the innermost counts.
class MemoryScope {
 public:
  explicit MemoryScope(MemoryOwner owner,
                       std::source_location place = std::source_location::current());
  ~MemoryScope();
  MemoryScope(const MemoryScope&) = delete;
  MemoryScope& operator=(const MemoryScope&) = delete;

 private:
  MemoryOwner owner_before_;
  std::size_t site_before_;
};

// What a measurement takes is not the training's: for as long as this lives, what the thread
// allocates is in no count, and no limit refuses it, whatever scopes are opened within. So a run
// that records more needs no more, and one that dies of its memory dies at the same allocation.
class UncountedMemory {
 public:
  UncountedMemory();
  ~UncountedMemory();
  UncountedMemory(const UncountedMemory&) = delete;
  UncountedMemory& operator=(const UncountedMemory&) = delete;
};

}  // namespace trainwreck
