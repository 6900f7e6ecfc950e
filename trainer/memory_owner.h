// What a tensor's memory is for: said by a scope around the code that allocates, and remembered
// with each block by an allocator that counts (devices/cpu_memory.h).
//
//   MemoryScope scope(MemoryOwner::kActivations);
//   loss = model.Loss(batch);  // what the forward pass allocates, and what its graph keeps
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace trainwreck {

enum class MemoryOwner : std::uint8_t {
  kOther,  // data, telemetry, checkpoints
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

// Which part of its forward pass this thread computes, by its place in the pass: remembered with
// blocks of activations (telemetry/forward_parts.h). The last number is that of all later ones.
inline constexpr std::size_t kForwardParts = 512;
std::size_t CurrentForwardPart();
void SetForwardPart(std::size_t part);

// Makes `owner` the current one for as long as the scope lives. Scopes nest; the innermost counts.
class MemoryScope {
 public:
  explicit MemoryScope(MemoryOwner owner);
  ~MemoryScope();
  MemoryScope(const MemoryScope&) = delete;
  MemoryScope& operator=(const MemoryScope&) = delete;

 private:
  MemoryOwner before_;
};

}  // namespace trainwreck
