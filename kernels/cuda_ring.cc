#include "kernels/cuda_ring.h"

#include <algorithm>

namespace trainwreck::kernels::cuda {

void Buffer::Free() noexcept {
  if (data_ == nullptr) return;
  kind_ == Kind::kDevice ? FreeDevice(data_) : FreePinned(data_);
  data_ = nullptr;
  bytes_ = 0;
}

void* Buffer::Reserve(std::size_t bytes) {
  if (bytes <= bytes_) return data_;
  Free();
  data_ = kind_ == Kind::kDevice ? AllocateDevice(bytes) : AllocatePinned(bytes);
  bytes_ = bytes;
  return data_;
}

Ring::Ring(int slots) {
  for (int i = 0; i < std::max(slots, 1); ++i) {
    slots_.push_back(std::make_unique<RingSlot>());
    free_.push_back(slots_.back().get());
  }
}

Ring::~Ring() {
  // A copy into memory that is given back would be worse than a late end.
  for (RingSlot* slot : flying_) {
    try {
      WaitFor(slot->done);
    } catch (const std::exception&) {
      return;  // the device is gone, and its copies with it
    }
  }
}

RingSlot* Ring::Free() {
  if (free_.empty()) return nullptr;
  RingSlot* slot = free_.back();
  return slot;
}

void Ring::Submit(RingSlot* slot) {
  free_.erase(std::find(free_.begin(), free_.end(), slot));
  flying_.push_back(slot);
}

RingSlot* Ring::Oldest(bool wait) {
  if (flying_.empty()) return nullptr;
  RingSlot* slot = flying_.front();
  if (wait) {
    WaitFor(slot->done);
  } else if (!IsDone(slot->done)) {
    return nullptr;
  }
  return slot;
}

void Ring::Release(RingSlot* slot) {
  flying_.pop_front();
  free_.push_back(slot);
}

}  // namespace trainwreck::kernels::cuda
