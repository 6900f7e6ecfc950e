#include "trainer/models/precision.h"

#include <ATen/autocast_mode.h>

namespace trainwreck {
namespace {

void Set(const Autocast& autocast) {
  at::autocast::set_autocast_enabled(autocast.device, autocast.dtype.has_value());
  if (autocast.dtype) at::autocast::set_autocast_dtype(autocast.device, *autocast.dtype);
}

}  // namespace

Autocast Autocast::Of(Precision precision, c10::DeviceType device) {
  switch (precision) {
    case Precision::kBf16:
      return {device, at::kBFloat16};
    case Precision::kFp16:
      return {device, at::kHalf};
    case Precision::kFp32:
      break;
  }
  return {device, std::nullopt};
}

Autocast Autocast::Current(c10::DeviceType device) {
  if (!at::autocast::is_autocast_enabled(device)) return {device, std::nullopt};
  return {device, at::autocast::get_autocast_dtype(device)};
}

AutocastGuard::AutocastGuard(const Autocast& autocast)
    : before_(Autocast::Current(autocast.device)) {
  Set(autocast);
}

AutocastGuard::~AutocastGuard() {
  // The copies of the weights in 16 bits are of no use after the next update.
  if (!before_.dtype) at::autocast::clear_cache();
  Set(before_);
}

}  // namespace trainwreck
