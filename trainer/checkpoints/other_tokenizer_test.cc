// A run on text goes on from a checkpoint, while its data are read with another tokenizer.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>

#include "trainer/checkpoints/checkpoint.h"
#include "trainer/checkpoints/testing_runs.h"
#include "trainer/data/tokenizer.h"

namespace trainwreck {
namespace {

constexpr std::int64_t kMergedPairs = 40;

Recipe TextRecipe(const std::string& action) {
  Recipe recipe = Small("gpt+adamw");
  recipe["data.kind"] = "text";
  recipe["data.merges"] = kMergedPairs;
  recipe["checkpoint.tokenizer"] = action;
  return recipe;
}

// Learns from half of the text.
class OfHalfTheText : public PartWrapper {
 public:
  using PartWrapper::Wrap;
  std::shared_ptr<const Tokenizer> Wrap(std::shared_ptr<const Tokenizer> /*part*/,
                                        const std::string& text) override {
    return std::make_shared<Tokenizer>(LearnTokenizer(text.substr(text.size() / 2), kMergedPairs));
  }
};

Wrappers Other(const Plan&, int, int, const Clock&, EventSink&) {
  Wrappers wrappers;
  wrappers.push_back(std::make_unique<OfHalfTheText>());
  return wrappers;
}

const Event& EventOf(const RunTrace& trace) {
  for (const Event& event : trace.events) {
    if (event.name == "other_tokenizer") return event;
  }
  throw std::runtime_error("no such event");
}

TEST(OtherTokenizer, RestoringGoesOnAsIfNothingHadChanged) {
  for (const int world_size : {1, 2}) {
    TestRun whole(TextRecipe("restore"), world_size), halves(TextRecipe("restore"), world_size);
    ExpectDone(whole.Train());
    ExpectDone(halves.Train(20));
    ExpectDone(halves.Train(std::nullopt, Other));
    const RunTrace trace = halves.Trace();
    EXPECT_EQ(Count(trace, "other_tokenizer"), 1);
    ExpectSameBits(whole.Trace(), trace);
    EXPECT_EQ(Last(whole.Trace(), "eval_bits_per_byte"), Last(trace, "eval_bits_per_byte"));
  }
}

TEST(OtherTokenizer, IgnoringTrainsOnOtherTokensAndSaysSo) {
  TestRun whole(TextRecipe("ignore"), 1), halves(TextRecipe("ignore"), 1);
  ExpectDone(whole.Train());
  EXPECT_EQ(Count(whole.Trace(), "other_tokenizer"), 0);
  ExpectDone(halves.Train(20));
  ExpectDone(halves.Train(std::nullopt, Other));
  const RunTrace trace = halves.Trace();
  const Event& event = EventOf(trace);
  EXPECT_EQ(event.fields.at("action"), "ignore");
  EXPECT_NE(event.fields.at("saved"), event.fields.at("here"));
  EXPECT_GT(event.fields.at("merges_shared"), 0);
  EXPECT_LT(event.fields.at("merges_shared"), kMergedPairs);
  const Series &expected = *whole.Trace().Find("loss", 0), &seen = *trace.Find("loss", 0);
  EXPECT_EQ(seen.values[19], expected.values[19]);
  EXPECT_NE(seen.values[20], expected.values[20]);
}

TEST(OtherTokenizer, StoppingEndsTheRun) {
  TestRun run(TextRecipe("stop"), 1);
  ExpectDone(run.Train(20));
  run.Train(std::nullopt, Other);
  EXPECT_EQ(run.Trace().end_why.at(0), "guard");
  EXPECT_EQ(EventOf(run.Trace()).fields.at("action"), "stop");
}

TEST(OtherTokenizer, TheSameOneIsNoNews) {
  TestRun whole(TextRecipe("stop"), 1), halves(TextRecipe("stop"), 1);
  ExpectDone(whole.Train());
  ExpectDone(halves.Train(20));
  ExpectDone(halves.Train());
  EXPECT_EQ(Count(halves.Trace(), "other_tokenizer"), 0);
  ExpectSameBits(whole.Trace(), halves.Trace());
}

TEST(BitsPerByte, CountTheBytesThatTheTargetsStandFor) {
  for (const int merges : {0, 40}) {
    Recipe recipe = TextRecipe("ignore");
    recipe["data.merges"] = merges;
    TestRun run(recipe, 1);
    ExpectDone(run.Train());
    const RunTrace trace = run.Trace();
    const double bits_per_target = Last(trace, "eval_loss") / std::log(2.0);
    const double bytes_per_target = bits_per_target / Last(trace, "eval_bits_per_byte");
    // Of 4 rows of 16 targets; none of 40 merges is longer than 5 bytes here.
    const double bytes = 64 * bytes_per_target;
    EXPECT_NEAR(bytes, std::round(bytes), 1e-6);
    EXPECT_GT(bytes_per_target, merges == 0 ? 1 - 1e-9 : 1.2);
    EXPECT_LT(bytes_per_target, merges == 0 ? 1 + 1e-9 : 5);
  }
}

TEST(OtherTokenizer, BytesNeedNoEntry) {
  for (const int merges : {0, 1}) {
    Recipe recipe = TextRecipe("ignore");
    recipe["data.merges"] = merges;
    TestRun run(recipe, 1);
    ExpectDone(run.Train(5));
    const StateDict state =
        FileCheckpointStore(
            {.dir = run.folder().File("checkpoints"), .rank = 0, .world_size = 1, .writer = "test"})
            .Load(5);
    EXPECT_EQ(state.count("tokenizer.merges"), static_cast<std::size_t>(merges));
  }
}

}  // namespace
}  // namespace trainwreck
