// Options that save time and change nothing else: whole runs with and without them, bit for bit.
#include <gtest/gtest.h>

#include "trainer/checkpoints/testing_runs.h"

namespace trainwreck {
namespace {

void ExpectNoChange(const Recipe& recipe, int ranks, const Recipe& changes) {
  Recipe changed = recipe;
  for (const auto& [key, value] : changes) changed[key] = value;
  TestRun plain(recipe, ranks), other(changed, ranks);
  ExpectDone(plain.Train());
  ExpectDone(other.Train());
  ExpectSameBits(plain.Trace(), other.Trace());
}

TEST(Workers, ChangeNoBitOfAnyRank) {
  ExpectNoChange(Small("gpt+adamw"), 2, {{"loader.workers", 3}});
  Recipe joins = Small("mlp+sgd");
  joins.insert({{"data.samples", 101}, {"sampler.uneven", "join"}});
  ExpectNoChange(joins, 2, {{"loader.workers", 2}, {"loader.prefetch", 3}});
}

}  // namespace
}  // namespace trainwreck
