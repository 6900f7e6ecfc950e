// Events out of what a device's sensors and driver say: critical errors, throttled clocks, replaced
// rows of memory.
//
//   HealthReport report(events);
//   if (const auto health = device.Health()) report.Take(*health);
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "trainer/device_health.h"
#include "trainer/parts.h"

namespace trainwreck {

class HealthReport {
 public:
  explicit HealthReport(EventSink& events) : events_(events) {}

  // Reports what is new in it since the reading before: device_xid, device_throttled,
  // device_rows_remapped. A sensor that said nothing changes nothing.
  void Take(const DeviceHealth& health);

  // "Xid 79 (GPU has fallen off the bus), Xid 1234": all critical errors so far, for the error with
  // which a run ends; empty: there were none.
  const std::string& xids() const { return xids_; }

 private:
  EventSink& events_;
  std::set<std::int64_t> codes_;  // of xids_
  std::string xids_;
  std::vector<std::string> throttled_;  // the reasons of the last reading
  std::optional<RemappedRows> rows_;    // the last reading
};

}  // namespace trainwreck
