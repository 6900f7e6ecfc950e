#include "harness/checkup/calibrate.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace trainwreck {
namespace calibrate_test {

Strength From(double from, double to) { return {.own = from, .from = from, .to = to}; }

TEST(OctavesOf, GoesFromTheWeakestToTheStrongest) {
  EXPECT_EQ(OctavesOf(From(2, 17)), (std::vector<double>{2, 4, 8, 16}));
  EXPECT_EQ(OctavesOf(From(0.5, 0.0625)), (std::vector<double>{0.5, 0.25, 0.125, 0.0625}));
  EXPECT_EQ(OctavesOf(From(3, 3)), (std::vector<double>{3}));
}

// A stack in which the symptom shows from `weakest` on and the remedy works up to `strongest`.
struct Stack {
  double weakest, strongest;
  std::set<double> unlucky = {};  // fail for another reason
  int quick = 0, thorough = 0;

  StrengthSearch Search(const std::vector<double>& octaves) {
    return FindStrength(octaves, [&](double strength, StrengthLook look) {
      ++(look == StrengthLook::kFault ? quick : thorough);
      StrengthAnswer answer = StrengthAnswer::kPasses;
      if (strength < weakest) answer = StrengthAnswer::kTooWeak;
      const bool fails = strength > strongest || unlucky.contains(strength);
      if (fails && look == StrengthLook::kAll) answer = StrengthAnswer::kFails;
      return StrengthTrial{strength, look, answer, ""};
    });
  }
};

const std::vector<double> kOctaves = OctavesOf(From(2, 1 << 20));

TEST(FindStrength, TakesTheMiddleOfTheWeakestThreeOctavesThatPass) {
  Stack stack{10, 1e9};
  const StrengthSearch search = stack.Search(kOctaves);
  ASSERT_TRUE(search.found);
  EXPECT_EQ(*search.found, 32);
  EXPECT_EQ(search.passed, (std::pair<double, double>(16, 64)));
  EXPECT_LE(stack.quick, 5) << "20 octaves are halved";
  EXPECT_EQ(stack.thorough, 3);
}

TEST(FindStrength, StepsOverAnOctaveThatFails) {
  Stack stack{10, 1e9, {32}};
  const StrengthSearch search = stack.Search(kOctaves);
  ASSERT_TRUE(search.found);
  EXPECT_EQ(*search.found, 128);
}

TEST(FindStrength, FindsNoneWithoutRoomOnBothSides) {
  EXPECT_FALSE((Stack{10, 40}).Search(kOctaves).found) << "16 and 32 pass, 64 does not";
  EXPECT_FALSE((Stack{1e9, 1e10}).Search(kOctaves).found) << "all are too weak";
  EXPECT_FALSE((Stack{1, 1e9}).Search({2, 4}).found) << "two octaves are not three";
}

TEST(FindStrength, DoesNotGoOnForEver) {
  Stack stack{10, 0};
  EXPECT_FALSE(stack.Search(kOctaves).found);
  EXPECT_LE(stack.thorough, 6);
}

TEST(FindStrength, EndsWhereControlFails) {
  int looks = 0;
  const StrengthSearch search = FindStrength(kOctaves, [&](double strength, StrengthLook look) {
    ++looks;
    return StrengthTrial{strength, look, StrengthAnswer::kNoControl, ""};
  });
  EXPECT_FALSE(search.found);
  EXPECT_EQ(looks, 1);
}

}  // namespace calibrate_test
}  // namespace trainwreck
