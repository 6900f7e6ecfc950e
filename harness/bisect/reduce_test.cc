#include "harness/bisect/reduce.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace trainwreck {
namespace reduce_test {

ChangeSet Numbers(int count) {
  ChangeSet all;
  for (int i = 0; i < count; ++i) all.insert(i);
  return all;
}

bool Has(const ChangeSet& changes, const ChangeSet& part) {
  return std::includes(changes.begin(), changes.end(), part.begin(), part.end());
}

TEST(Reduce, FindsEachSingleChange) {
  for (int count = 1; count <= 20; ++count) {
    for (int cause = 0; cause < count; ++cause) {
      int asked = 0;
      const ChangeSet found = Reduce(Numbers(count), [&](const ChangeSet& changes) {
        ++asked;
        return changes.count(cause) == 1;
      });
      EXPECT_EQ(found, ChangeSet{cause});
      EXPECT_LE(asked, 10);  // 2 log2(20)
    }
  }
}

TEST(Reduce, FindsChangesThatOnlyActTogether) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 200; ++trial) {
    const int count = 2 + static_cast<int>(random() % 15);
    ChangeSet cause;
    while (cause.empty() || random() % 2 == 0) cause.insert(static_cast<int>(random() % count));
    EXPECT_EQ(Reduce(Numbers(count), [&](const ChangeSet& changes) { return Has(changes, cause); }),
              cause);
  }
}

// One of several causes is enough, and nothing more stays.
TEST(Reduce, KeepsNothingThatCanBeLeftOut) {
  const ChangeSet one = {2, 9}, other = {5};
  auto flips = [&](const ChangeSet& changes) { return Has(changes, one) || Has(changes, other); };
  const ChangeSet found = Reduce(Numbers(12), flips);
  EXPECT_TRUE(flips(found));
  for (int change : found) {
    ChangeSet rest = found;
    rest.erase(change);
    EXPECT_FALSE(flips(rest));
  }
}

TEST(Reduce, AsksNothingTwice) {
  std::set<ChangeSet> asked;
  Reduce(Numbers(16), [&](const ChangeSet& changes) {
    EXPECT_TRUE(asked.insert(changes).second);
    return Has(changes, {1, 6, 11, 15});
  });
}

}  // namespace reduce_test
}  // namespace trainwreck
