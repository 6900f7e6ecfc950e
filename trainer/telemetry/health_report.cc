#include "trainer/telemetry/health_report.h"

#include <algorithm>

namespace trainwreck {
namespace {

constexpr std::size_t kMostOfXids = 300;  // bytes: a broken GPU may say many

}  // namespace

void HealthReport::Take(const DeviceHealth& health) {
  for (const XidError& xid : health.xids) {
    events_.Report(events::kDeviceXid, {{"code", xid.code}, {"meaning", xid.meaning}});
    std::string words = "Xid " + std::to_string(xid.code);
    if (!xid.meaning.empty()) words += " (" + xid.meaning + ")";
    if (xids_.size() < kMostOfXids && codes_.insert(xid.code).second) {
      xids_ += (xids_.empty() ? "" : ", ") + words;
    }
  }
  if (health.throttled) {
    const auto is_new = [this](const std::string& reason) {
      return std::find(throttled_.begin(), throttled_.end(), reason) == throttled_.end();
    };
    if (std::any_of(health.throttled->begin(), health.throttled->end(), is_new)) {
      events_.Report(events::kDeviceThrottled, {{"reasons", *health.throttled}});
    }
    throttled_ = *health.throttled;
  }
  if (health.remapped_rows) {
    const RemappedRows& rows = *health.remapped_rows;
    // Rows that were replaced long ago are no news.
    if (rows_ ? rows != *rows_ : rows.pending || rows.failed) {
      events_.Report(events::kDeviceRowsRemapped, {{"correctable", rows.correctable},
                                                   {"uncorrectable", rows.uncorrectable},
                                                   {"pending", rows.pending},
                                                   {"failed", rows.failed}});
    }
    rows_ = rows;
  }
}

}  // namespace trainwreck
