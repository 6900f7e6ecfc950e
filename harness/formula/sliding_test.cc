#include "harness/formula/sliding.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

namespace trainwreck::formula {
namespace {

// Windows whose ends do not go back: some are empty, some reach over an end of the sequence.
Windows RandomWindows(int places, int size, std::mt19937& random) {
  std::uniform_int_distribution<int> begin(-4, 4), step(0, 3);
  Windows windows;
  int from = begin(random) - 4, to = begin(random);
  for (int place = 0; place < places; ++place) {
    windows.from.push_back(from);
    windows.to.push_back(to);
    from += from < size + 4 ? step(random) : 0;
    to += to < size + 4 ? step(random) : 0;
  }
  return windows;
}

template <typename Wins>
void ExpectEachWindowsExtreme(Wins wins) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    const int size = 1 + round % 40;
    std::vector<double> values(size);
    for (double& value : values) value = static_cast<double>(random() % 10);
    const double before = static_cast<double>(random() % 10);
    const double after = static_cast<double>(random() % 10);
    const Windows windows = RandomWindows(2 + size, size, random);
    const std::vector<double> found = SlidingExtreme(values, windows, before, after, wins);
    for (std::size_t place = 0; place < found.size(); ++place) {
      const int from = windows.from[place], to = windows.to[place];
      EXPECT_EQ(found[place], WindowExtreme(values, from, to, before, after, wins))
          << "round " << round << ", [" << from << ", " << to << "] of " << size;
    }
  }
}

TEST(SlidingExtreme, IsThatOfEachWindow) {
  ExpectEachWindowsExtreme(std::greater_equal<double>());
  ExpectEachWindowsExtreme(std::less_equal<double>());
}

}  // namespace
}  // namespace trainwreck::formula
