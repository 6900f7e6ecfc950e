// The readings of a device's own sensors, and what its driver says of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace trainwreck {

// A critical error of an NVIDIA GPU, by the number that its driver writes into the kernel's log.
struct XidError {
  std::int64_t code = 0;
  std::string meaning;  // of NVIDIA's catalogue, for the well-known ones; else empty
};

// Rows of the GPU's memory that were replaced because of errors in them, in the life of the GPU.
struct RemappedRows {
  double correctable = 0;
  double uncorrectable = 0;
  bool pending = false;  // some will be replaced at the next reset
  bool failed = false;   // a row could not be replaced
  bool operator==(const RemappedRows&) const = default;
};

// Empty: the device has no such sensor, or does not report it.
struct DeviceHealth {
  std::optional<double> temperature_c;
  std::optional<double> clock_mhz;         // of the multiprocessors
  std::optional<double> power_w;           // of the whole board
  std::optional<double> ecc_errors;        // uncorrected ones since the driver was loaded
  std::optional<double> corrected_errors;  // likewise
  std::optional<RemappedRows> remapped_rows;
  // Why its clocks are lower than they could be: "power_cap", "hw_slowdown", "sw_thermal",
  // "hw_thermal", "power_brake". None: they are not.
  std::optional<std::vector<std::string>> throttled;
  std::vector<XidError> xids;  // since the reading before, of any program on the GPU
};

}  // namespace trainwreck
