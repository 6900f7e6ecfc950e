// Mixed precision: matrix products and attention run in 16 bits, weights and everything that sums
// stay in 32 (LibTorch's autocast lists say which op is which).
#pragma once

#include <c10/core/DeviceType.h>
#include <c10/core/ScalarType.h>

#include <optional>

#include "trainer/recipe/recipe.h"

namespace trainwreck {

// The autocast settings for one type of device.
struct Autocast {
  c10::DeviceType device = c10::kCPU;
  std::optional<c10::ScalarType> dtype;  // empty: off

  static Autocast Of(Precision precision, c10::DeviceType device);
  static Autocast Current(c10::DeviceType device);  // of this thread
};

// Sets autocast for this thread as long as it lives, and then restores the previous setting.
class AutocastGuard {
 public:
  explicit AutocastGuard(const Autocast& autocast);
  ~AutocastGuard();
  AutocastGuard(const AutocastGuard&) = delete;
  AutocastGuard& operator=(const AutocastGuard&) = delete;

 private:
  Autocast before_;
};

}  // namespace trainwreck
