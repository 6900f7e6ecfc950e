// A device's memory did not suffice for a buffer of the kernels.
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

}  // namespace trainwreck::kernels
