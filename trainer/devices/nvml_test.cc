#include "trainer/devices/nvml.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace trainwreck {
namespace {

constexpr char kGpu[] = "00000000:3B:00.0";

std::string FakeLibrary() {
  return std::string(std::getenv("TEST_SRCDIR")) + "/trainwreck/trainer/libnvidia-ml-fake.so";
}

class NvmlTest : public testing::Test {
 protected:
  ~NvmlTest() override { unsetenv("FAKE_NVML"); }
};

TEST_F(NvmlTest, ReadsTheSensorsOfTheGpuAtAnAddress) {
  const auto nvml = Nvml::Load(FakeLibrary());
  ASSERT_NE(nvml, nullptr);
  const DeviceHealth health = nvml->Read(kGpu);
  EXPECT_EQ(health.temperature_c, 61);
  EXPECT_EQ(health.clock_mhz, 1980);  // not those of memory, graphics or video
  EXPECT_EQ(health.ecc_errors, 3);    // the uncorrected ones
}

TEST_F(NvmlTest, LeavesOutWhatTheGpuDoesNotHave) {
  setenv("FAKE_NVML", "ecc", 1);
  const DeviceHealth health = Nvml::Load(FakeLibrary())->Read(kGpu);
  EXPECT_EQ(health.temperature_c, 61);
  EXPECT_FALSE(health.ecc_errors.has_value());
}

TEST_F(NvmlTest, SaysNothingOfAGpuThatIsNotThere) {
  const DeviceHealth health = Nvml::Load(FakeLibrary())->Read("00000000:AF:00.0");
  EXPECT_FALSE(health.temperature_c || health.clock_mhz || health.ecc_errors);
}

TEST_F(NvmlTest, IsAbsentWithoutLibraryOrDriver) {
  EXPECT_EQ(Nvml::Load("libno-such-nvml.so.1"), nullptr);
  EXPECT_EQ(Nvml::Load("libc.so.6"), nullptr);  // a library, but not this one
  setenv("FAKE_NVML", "driver", 1);
  EXPECT_EQ(Nvml::Load(FakeLibrary()), nullptr);
}

TEST_F(NvmlTest, EndsItsUseOfTheLibrary) {
  void* library = dlopen(FakeLibrary().c_str(), RTLD_NOW);
  ASSERT_NE(library, nullptr);
  const auto uses = reinterpret_cast<int (*)()>(dlsym(library, "FakeNvmlUses"));
  {
    const auto nvml = Nvml::Load(FakeLibrary());
    EXPECT_EQ(uses(), 1);
  }
  EXPECT_EQ(uses(), 0);
  dlclose(library);
}

}  // namespace
}  // namespace trainwreck
