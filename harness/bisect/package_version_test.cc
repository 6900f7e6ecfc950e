#include "harness/bisect/package_version.h"

#include <gtest/gtest.h>

namespace trainwreck {
namespace {

// Each before the next one.
constexpr const char* kInOrder[] = {"0",
                                    "1.0.dev456",
                                    "1.0a1",
                                    "1.0a2.dev456",
                                    "1.0a12.dev456",
                                    "1.0a12",
                                    "1.0b1.dev1",
                                    "1.0b2",
                                    "1.0b2.post345.dev456",
                                    "1.0b2.post345",
                                    "1.0rc1.dev4",
                                    "1.0rc1",
                                    "1.0",
                                    "1.0+abc.5",
                                    "1.0+abc.7",
                                    "1.0+5",
                                    "1.0.post456.dev34",
                                    "1.0.post456",
                                    "1.0.15",
                                    "1.1.dev1",
                                    "1.9",
                                    "1.10",
                                    "2024.1",
                                    "1!0.1"};

TEST(PackageVersion, HasTheOrderOfPep440) {
  for (std::size_t i = 0; i < std::size(kInOrder); ++i) {
    for (std::size_t j = 0; j < std::size(kInOrder); ++j) {
      const auto a = PackageVersion::Parse(kInOrder[i]), b = PackageVersion::Parse(kInOrder[j]);
      ASSERT_TRUE(a && b) << kInOrder[i] << " " << kInOrder[j];
      EXPECT_EQ(*a < *b, i < j) << kInOrder[i] << " " << kInOrder[j];
      EXPECT_EQ(*a == *b, i == j) << kInOrder[i] << " " << kInOrder[j];
    }
  }
}

TEST(PackageVersion, TakesEverySpelling) {
  for (const auto& [one, other] : {std::pair("1.0", "1.0.0"),
                                   {"v1.0", "1"},
                                   {"1.0-1", "1.0.post1"},
                                   {"1.0.ALPHA.2", "1a2"},
                                   {"1.0c3", "1.0rc3"},
                                   {"1.0preview", "1.0rc0"},
                                   {"1.0_r4", "1.0.post4"},
                                   {"1.0+Ubuntu-1", "1.0+ubuntu.1"},
                                   {"0!2.3", "2.3"},
                                   {"1.0-dev", "1.0.dev0"}}) {
    EXPECT_EQ(*PackageVersion::Parse(one), *PackageVersion::Parse(other)) << one << " " << other;
  }
  for (const char* wrong :
       {"", "1.", "1.x", "1.0-", "1.0foo", "main", "1..2", "1.0+", "1 ", "-1"}) {
    EXPECT_FALSE(PackageVersion::Parse(wrong)) << wrong;
  }
}

TEST(PackageVersion, KnowsPreReleases) {
  for (const char* pre : {"1.0a1", "1.0.dev3", "1.0rc2", "1.0.post1.dev2", "1.0rc1.post2"}) {
    EXPECT_TRUE(PackageVersion::Parse(pre)->IsPreRelease()) << pre;
  }
  for (const char* final_one : {"1.0", "1.0.post1", "1.0+cpu"}) {
    EXPECT_FALSE(PackageVersion::Parse(final_one)->IsPreRelease()) << final_one;
  }
}

}  // namespace
}  // namespace trainwreck
