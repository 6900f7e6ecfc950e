// The readings of a device's own sensors.
#pragma once

#include <optional>

namespace trainwreck {

// Empty: the device has no such sensor, or does not report it.
struct DeviceHealth {
  std::optional<double> temperature_c;
  std::optional<double> clock_mhz;   // of the multiprocessors
  std::optional<double> ecc_errors;  // uncorrected ones since the driver was loaded
};

}  // namespace trainwreck
