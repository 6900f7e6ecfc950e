// The ranges that NVTX gives to a profiler, seen by a library in the place of one.
#include "trainer/devices/nvtx_ranges.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace trainwreck {
namespace {

// NVTX looks for it once, at its first call.
class NvtxRangesTest : public testing::Test {
 protected:
  NvtxRangesTest() {
    const std::string path =
        std::string(std::getenv("TEST_SRCDIR")) + "/trainwreck/trainer/libnvtx-fake.so";
    setenv("NVTX_INJECTION64_PATH", path.c_str(), /*overwrite=*/1);
    library_ = dlopen(path.c_str(), RTLD_NOW);
  }

  // "<a><b": range a has begun and ended, then b has begun.
  std::string Noted() const {
    const auto noted = reinterpret_cast<const char* (*)()>(dlsym(library_, "FakeNvtxNoted"));
    return noted();
  }

  void* library_;
};

TEST_F(NvtxRangesTest, ARangeLastsUntilTheNextOneAndTheLastOneToTheEnd) {
  ASSERT_NE(library_, nullptr) << dlerror();
  { const NvtxRanges unused; }
  EXPECT_EQ(Noted(), "") << "what was not begun does not end";
  {
    NvtxRanges ranges;
    ranges.Begin("forward");
    EXPECT_EQ(Noted(), "<forward");
    ranges.Begin("backward");
    EXPECT_EQ(Noted(), "<forward><backward");
    ranges.Begin("update");
    EXPECT_EQ(Noted(), "<forward><backward><update");
  }
  EXPECT_EQ(Noted(), "<forward><backward><update>");
}

}  // namespace
}  // namespace trainwreck
