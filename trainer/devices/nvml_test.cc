#include "trainer/devices/nvml.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace trainwreck {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr char kGpu[] = "00000000:3B:00.0";

std::string FakeLibrary(const char* name = "libnvidia-ml-fake.so") {
  return std::string(std::getenv("TEST_SRCDIR")) + "/trainwreck/trainer/" + name;
}
std::string OldLibrary() { return FakeLibrary("libnvidia-ml-fake-old.so"); }

// A function of the fake that NVML does not have. The library stays loaded, as it would not for a
// test alone.
template <typename Function>
Function OfFake(const char* name) {
  static void* library = dlopen(FakeLibrary().c_str(), RTLD_NOW);
  return reinterpret_cast<Function>(dlsym(library, name));
}

void Raise(unsigned long long type, unsigned long long data) {
  OfFake<void (*)(unsigned long long, unsigned long long)>("FakeNvmlRaise")(type, data);
}
void RaiseXid(unsigned long long code) { Raise(8, code); }

std::vector<std::int64_t> CodesOf(const DeviceHealth& health) {
  std::vector<std::int64_t> codes;
  for (const XidError& xid : health.xids) codes.push_back(xid.code);
  return codes;
}

class NvmlTest : public testing::Test {
 protected:
  ~NvmlTest() override {
    unsetenv("FAKE_NVML");
    unsetenv("FAKE_NVML_REASONS");
  }
};

TEST_F(NvmlTest, ReadsTheSensorsOfTheGpuAtAnAddress) {
  const auto nvml = Nvml::Load(FakeLibrary());
  ASSERT_NE(nvml, nullptr);
  const DeviceHealth health = nvml->Read(kGpu);
  EXPECT_EQ(health.temperature_c, 61);
  EXPECT_EQ(health.clock_mhz, 1980);  // not those of memory, graphics or video
  EXPECT_EQ(health.power_w, 412.5);
  EXPECT_EQ(health.ecc_errors, 3);  // the uncorrected ones
  EXPECT_EQ(health.corrected_errors, 17);
  EXPECT_EQ(health.remapped_rows,
            (RemappedRows{.correctable = 5, .uncorrectable = 2, .pending = true, .failed = false}));
}

TEST_F(NvmlTest, SaysWhyClocksAreLow) {
  const auto nvml = Nvml::Load(FakeLibrary());
  const auto reasons = [&](const char* bits) {
    setenv("FAKE_NVML_REASONS", bits, 1);
    return nvml->Read(kGpu).throttled.value();
  };
  EXPECT_THAT(reasons("0"), IsEmpty());
  // Idle, clocks that somebody has set, boost together with others, clocks for the display.
  EXPECT_THAT(reasons("0x113"), IsEmpty());
  EXPECT_THAT(reasons("0x4"), ElementsAre("power_cap"));
  EXPECT_THAT(reasons("0x48"), ElementsAre("hw_slowdown", "hw_thermal"));
  EXPECT_THAT(reasons("0x1ff"),
              ElementsAre("power_cap", "hw_slowdown", "sw_thermal", "hw_thermal", "power_brake"));
}

TEST_F(NvmlTest, TellsOfCriticalErrorsOnceAndWaitsForNone) {
  const auto nvml = Nvml::Load(FakeLibrary());
  EXPECT_THAT(nvml->Read(kGpu).xids, IsEmpty()) << "nobody has asked for them";
  ASSERT_TRUE(nvml->Watch(kGpu));
  EXPECT_THAT(nvml->Read(kGpu).xids, IsEmpty());
  RaiseXid(48);
  Raise(1, 7);  // another kind of event: a single bit
  RaiseXid(79);
  RaiseXid(1234);
  const DeviceHealth health = nvml->Read(kGpu);
  ASSERT_THAT(CodesOf(health), ElementsAre(48, 79, 1234));
  EXPECT_EQ(health.xids[1].meaning, "GPU has fallen off the bus");
  EXPECT_EQ(health.xids[2].meaning, "") << "not of the well-known ones";
  EXPECT_THAT(nvml->Read(kGpu).xids, IsEmpty());
  const auto patience_ms = OfFake<unsigned (*)()>("FakeNvmlPatienceMs");
  EXPECT_EQ(patience_ms(), 0U);
  RaiseXid(31);
  EXPECT_EQ(CodesOf(nvml->Read(kGpu, std::chrono::milliseconds(70))).size(), 1U);
  EXPECT_EQ(patience_ms(), 70U) << "for the first one only";
}

TEST_F(NvmlTest, TellsOfCriticalErrorsOfAGpuThatHasGone) {
  const auto nvml = Nvml::Load(FakeLibrary());
  ASSERT_TRUE(nvml->Watch(kGpu));
  RaiseXid(79);
  EXPECT_THAT(CodesOf(nvml->Read("00000000:AF:00.0")), ElementsAre(79));
}

TEST_F(NvmlTest, GivesUpADriverThatSaysOneErrorOverAndOver) {
  const auto nvml = Nvml::Load(FakeLibrary());
  ASSERT_TRUE(nvml->Watch(kGpu));
  for (int i = 0; i < 100; ++i) RaiseXid(31);
  EXPECT_EQ(nvml->Read(kGpu).xids.size(), 64U);
  EXPECT_EQ(nvml->Read(kGpu).xids.size(), 36U);
}

TEST_F(NvmlTest, ReadsWhatADriverWithoutEventsHas) {
  setenv("FAKE_NVML", "events", 1);
  const auto nvml = Nvml::Load(FakeLibrary());
  EXPECT_FALSE(nvml->Watch(kGpu));
  EXPECT_EQ(OfFake<int (*)()>("FakeNvmlEventSets")(), 0);
  EXPECT_EQ(nvml->Read(kGpu).temperature_c, 61);
}

TEST_F(NvmlTest, ReadsWhatAnOldDriverHas) {
  const auto nvml = Nvml::Load(OldLibrary());
  ASSERT_NE(nvml, nullptr);
  EXPECT_FALSE(nvml->Watch(kGpu));
  setenv("FAKE_NVML_REASONS", "0x20", 1);
  const DeviceHealth health = nvml->Read(kGpu);
  EXPECT_EQ(health.clock_mhz, 1980);
  EXPECT_EQ(health.throttled, std::vector<std::string>{"sw_thermal"}) << "by the older name";
  EXPECT_FALSE(health.power_w || health.remapped_rows);
}

TEST_F(NvmlTest, LeavesOutWhatTheGpuDoesNotHave) {
  setenv("FAKE_NVML", "ecc", 1);
  const DeviceHealth health = Nvml::Load(FakeLibrary())->Read(kGpu);
  EXPECT_EQ(health.temperature_c, 61);
  EXPECT_FALSE(health.ecc_errors || health.corrected_errors || health.remapped_rows);
}

TEST_F(NvmlTest, SaysNothingOfAGpuThatIsNotThere) {
  const DeviceHealth health = Nvml::Load(FakeLibrary())->Read("00000000:AF:00.0");
  EXPECT_FALSE(health.temperature_c || health.clock_mhz || health.ecc_errors ||
               health.corrected_errors || health.power_w || health.remapped_rows ||
               health.throttled);
}

TEST_F(NvmlTest, IsAbsentWithoutLibraryOrDriver) {
  EXPECT_EQ(Nvml::Load("libno-such-nvml.so.1"), nullptr);
  EXPECT_EQ(Nvml::Load("libc.so.6"), nullptr);  // a library, but not this one
  setenv("FAKE_NVML", "driver", 1);
  EXPECT_EQ(Nvml::Load(FakeLibrary()), nullptr);
}

TEST_F(NvmlTest, EndsItsUseOfTheLibrary) {
  const auto uses = OfFake<int (*)()>("FakeNvmlUses");
  const auto event_sets = OfFake<int (*)()>("FakeNvmlEventSets");
  {
    const auto nvml = Nvml::Load(FakeLibrary());
    nvml->Watch(kGpu);
    EXPECT_TRUE(nvml->Watch(kGpu)) << "it is watched already";
    EXPECT_EQ(uses(), 1);
    EXPECT_EQ(event_sets(), 1);
  }
  EXPECT_EQ(uses(), 0);
  EXPECT_EQ(event_sets(), 0);
}

}  // namespace
}  // namespace trainwreck
