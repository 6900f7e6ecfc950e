// Events out of the readings of a device, and what a run does with them.
#include "trainer/telemetry/health_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainwreck {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class HealthEvents : public EventSink {
 public:
  void Write(const std::string& name, Json fields) override {
    fields["name"] = name;
    all.push_back(std::move(fields));
  }
  std::vector<Json> all;
};

class HealthReportTest : public testing::Test {
 protected:
  // The events of this reading.
  std::vector<Json> Take(const DeviceHealth& health) {
    events_.all.clear();
    report_.Take(health);
    return events_.all;
  }
  HealthEvents events_;
  HealthReport report_{events_};
};

TEST_F(HealthReportTest, ReportsEachCriticalErrorAndKeepsItForTheEnd) {
  EXPECT_EQ(report_.xids(), "");
  EXPECT_THAT(
      Take({.xids = {{79, "GPU has fallen off the bus"}, {1234, ""}}}),
      ElementsAre(
          Json{{"name", "device_xid"}, {"code", 79}, {"meaning", "GPU has fallen off the bus"}},
          Json{{"name", "device_xid"}, {"code", 1234}, {"meaning", ""}}));
  EXPECT_THAT(Take({}), IsEmpty());
  EXPECT_EQ(Take({.xids = {{1234, ""}, {123, ""}}}).size(), 2U);
  EXPECT_EQ(report_.xids(), "Xid 79 (GPU has fallen off the bus), Xid 1234, Xid 123");
}

TEST_F(HealthReportTest, DoesNotBuryAnErrorUnderWhatABrokenGpuSays) {
  for (int code = 1000; code < 2000; ++code) Take({.xids = {{code, ""}}});
  EXPECT_LT(report_.xids().size(), 320U);
}

TEST_F(HealthReportTest, ReportsWhenThrottlingBeginsOrHasAnotherReason) {
  using Reasons = std::vector<std::string>;
  EXPECT_THAT(Take({.throttled = Reasons{}}), IsEmpty());
  EXPECT_THAT(Take({.throttled = Reasons{"power_cap"}}),
              ElementsAre(Json{{"name", "device_throttled"}, {"reasons", {"power_cap"}}}));
  EXPECT_THAT(Take({.throttled = Reasons{"power_cap"}}), IsEmpty()) << "it goes on";
  EXPECT_THAT(Take({}), IsEmpty()) << "the sensor said nothing";
  EXPECT_EQ(Take({.throttled = Reasons{"power_cap", "sw_thermal"}}).size(), 1U);
  EXPECT_THAT(Take({.throttled = Reasons{"power_cap"}}), IsEmpty()) << "one reason less";
  EXPECT_THAT(Take({.throttled = Reasons{}}), IsEmpty());
  EXPECT_EQ(Take({.throttled = Reasons{"power_cap"}}).size(), 1U) << "it begins again";
}

TEST_F(HealthReportTest, ReportsRowsThatWereReplacedInTheRunOrNeedSomebody) {
  EXPECT_THAT(Take({.remapped_rows = RemappedRows{.correctable = 2}}), IsEmpty()) << "long ago";
  EXPECT_THAT(Take({.remapped_rows = RemappedRows{.correctable = 2}}), IsEmpty());
  EXPECT_THAT(
      Take({.remapped_rows = RemappedRows{.correctable = 2, .uncorrectable = 1, .pending = true}}),
      ElementsAre(Json{{"name", "device_rows_remapped"},
                       {"correctable", 2.0},
                       {"uncorrectable", 1.0},
                       {"pending", true},
                       {"failed", false}}));
  HealthEvents events;
  HealthReport(events).Take({.remapped_rows = RemappedRows{.failed = true}});
  EXPECT_EQ(events.all.size(), 1U) << "a run begins with it";
}

}  // namespace
}  // namespace trainwreck
