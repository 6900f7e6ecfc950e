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

// With buckets of one parameter each, or as many as fit.
TEST(Overlap, ChangesNoBit) {
  for (const char* kind : {"gpt+adamw", "mlp+sgd", "gpt+masters"}) {
    SCOPED_TRACE(kind);
    Recipe recipe = Small(kind);
    recipe["parallel.bucket_mb"] = 0.001;
    ExpectNoChange(recipe, 2, {{"parallel.overlap", true}});
  }
  ExpectNoChange(Small("gpt+adamw"), 2, {{"parallel.overlap", true}});
}

TEST(Overlap, ChangesNoBitOfThreeRanksWhoseShardsAreUneven) {
  Recipe recipe = Small("mlp+sgd");
  recipe.insert({{"data.samples", 101}, {"sampler.uneven", "join"}, {"parallel.bucket_mb", 0.001}});
  ExpectNoChange(recipe, 3, {{"parallel.overlap", true}});
}

TEST(Overlap, HidesCommunicationBesideTheBackwardPass) {
  TestRun run(Small("gpt+overlap"), 2);
  ExpectDone(run.Train());
  const RunTrace trace = run.Trace();
  for (const int rank : {0, 1}) {
    double hidden = 0;
    for (const double seconds : trace.Find("comm_hidden_s", rank)->values) hidden += seconds;
    EXPECT_GT(hidden, 0);
  }
}

}  // namespace
}  // namespace trainwreck
