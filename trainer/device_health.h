// What a device's own sensors say.
#pragma once

#include <optional>

namespace trainwreck {

// Empty: it has no such sensor, or does not tell.
struct DeviceHealth {
  std::optional<double> temperature_c;
  std::optional<double> clock_mhz;   // of the multiprocessors
  std::optional<double> ecc_errors;  // uncorrected ones since the driver was loaded
};

}  // namespace trainwreck
