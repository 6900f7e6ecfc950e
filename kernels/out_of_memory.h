// The memory of a device, or pinned memory of the host, did not suffice for a buffer of the
// kernels.
#pragma once

#include <cstddef>
#include <new>

namespace trainwreck::kernels {

class OutOfDeviceMemory : public std::bad_alloc {
 public:
  explicit OutOfDeviceMemory(std::size_t bytes) : bytes_(bytes) {}
  std::size_t bytes() const { return bytes_; }
  const char* what() const noexcept override { return "the device's memory does not suffice"; }

 private:
  std::size_t bytes_;
};

class OutOfPinnedMemory : public std::bad_alloc {
 public:
  const char* what() const noexcept override {
    return "the host's memory does not suffice for a pinned buffer";
  }
};

}  // namespace trainwreck::kernels
