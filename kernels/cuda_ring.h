// Brings results of kernels to the host without waiting. Each launch takes a slot of a ring; then
// its results are copied into pinned memory, and an event, which is polled, tells when they are
// there. Used by the classes of tensor_stats_cuda.h and digest_cuda.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "kernels/cuda_calls.h"

namespace trainwreck::kernels::cuda {

// A block of device or pinned memory that only grows.
class Buffer {
 public:
  enum class Kind { kDevice, kPinned };
  explicit Buffer(Kind kind) : kind_(kind) {}
  Buffer(const Buffer&) = delete;
  ~Buffer() { Free(); }

  // A block of at least `bytes`. Its content is lost when it grows, and growing synchronises.
  void* Reserve(std::size_t bytes);
  template <typename T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  void Free() noexcept;

  Kind kind_;
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

struct RingSlot {
  Buffer host_table{Buffer::Kind::kPinned}, table{Buffer::Kind::kDevice};
  Buffer host_results{Buffer::Kind::kPinned}, results{Buffer::Kind::kDevice};
  Buffer scratch{Buffer::Kind::kDevice};
  Event done = nullptr;
  std::int64_t tag = 0;
  std::size_t items = 0;

  RingSlot() : done(MakeEvent()) {}
  RingSlot(const RingSlot&) = delete;
  ~RingSlot() { FreeEvent(done); }
};

class Ring {
 public:
  explicit Ring(int slots);
  ~Ring();  // waits for what is in flight

  RingSlot* Free();             // null: all are in flight
  void Submit(RingSlot* slot);  // its event is recorded
  // The oldest slot in flight if it is done, else null; with `wait`, null only if none is in
  // flight. Release it after its results are read.
  RingSlot* Oldest(bool wait);
  void Release(RingSlot* slot);
  int in_flight() const { return static_cast<int>(flying_.size()); }

 private:
  std::vector<std::unique_ptr<RingSlot>> slots_;
  std::vector<RingSlot*> free_;
  std::deque<RingSlot*> flying_;
};

}  // namespace trainwreck::kernels::cuda
