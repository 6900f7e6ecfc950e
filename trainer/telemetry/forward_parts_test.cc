#include "trainer/telemetry/forward_parts.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "trainer/memory_owner.h"
#include "trainer/test_run.h"

namespace trainwreck {
namespace {

std::int64_t SumOf(const Json& by_block) {
  std::int64_t sum = 0;
  for (const auto& [block, bytes] : by_block.items()) sum += bytes.get<std::int64_t>();
  return sum;
}

TEST(BlockOf, IsTheModuleWithItsNumber) {
  EXPECT_EQ(BlockOf("blocks.3.attn.qkv"), "blocks.3");
  EXPECT_EQ(BlockOf("blocks.12"), "blocks.12");
  EXPECT_EQ(BlockOf("head"), "head");
  EXPECT_EQ(BlockOf("loss.softmax"), "loss");
  EXPECT_EQ(BlockOf("a.1b"), "a");
}

TEST(ForwardParts, NamesPartsByTheOutputBehindThem) {
  ForwardParts parts;
  at::Tensor none;
  for (int pass = 0; pass < 2; ++pass) {
    parts.Begin();
    EXPECT_EQ(CurrentForwardPart(), 0U);
    for (const char* module : {"embed", "blocks.0.norm", "blocks.0", "head"}) {
      parts.OnOutput(module, none);
    }
    EXPECT_EQ(CurrentForwardPart(), 4U);
  }
  EXPECT_EQ(parts.ByBlock({5, 7, 11, 0, 13}).dump(), R"({"blocks.0":18,"embed":5,"other":13})");
}

TEST(ForwardParts, ThePeakOfABudgetedRunIsSplitByBlock) {
  const Outcome plain = RunOnce(With(Gpt(), {{"model.layers", 4}, {"steps", 4}}));
  EXPECT_TRUE(plain.EventsOf("memory_blocks").empty()) << "nobody asked";
  const Recipe recipe = With(
      Gpt(),
      {{"model.layers", 4}, {"steps", 4}, {"memory.limit_bytes", 1 << 30}, {"accumulation", 2}});
  const Outcome outcome = RunOnce(recipe);
  const std::vector<Json> events = outcome.EventsOf("memory_blocks");
  ASSERT_FALSE(events.empty());
  for (const Json& event : events) {
    const auto step = event["step"].get<std::size_t>();
    EXPECT_EQ(event["peak_bytes"].get<double>(), outcome.Values("memory_peak_bytes").at(step));
    const double activations = outcome.Values("memory_activations_bytes").at(step);
    EXPECT_EQ(event["activations_bytes"].get<double>(), activations);
    EXPECT_EQ(static_cast<double>(SumOf(event["by_block"])), activations);
    const Json& blocks = event["by_block"];
    for (const char* block : {"blocks.0", "blocks.1", "blocks.2"}) {
      EXPECT_GT(blocks.value(block, 0), activations / 10) << block;
    }
    // Equal blocks keep equal activations. The first also has the sum of tokens and positions, and
    // the last what is at work when the peak is reached.
    EXPECT_EQ(blocks["blocks.1"], blocks["blocks.2"]);
  }
  const auto peaks = outcome.Values("memory_peak_bytes");
  EXPECT_EQ(events.back()["peak_bytes"].get<double>(),
            *std::max_element(peaks.begin(), peaks.end()));
}

TEST(ForwardParts, AnEndWithoutMemoryNamesTheBlocks) {
  const Recipe recipe = With(Gpt(), {{"model.layers", 3}});
  const double peak = RunOnce(recipe).Last("memory_peak_bytes");
  const Outcome outcome =
      RunOnce(With(recipe, {{"memory.limit_bytes", static_cast<std::int64_t>(0.8 * peak)}}));
  ASSERT_EQ(outcome.EventsOf("out_of_memory").size(), 1U);
  const Json event = outcome.EventsOf("out_of_memory")[0];
  EXPECT_EQ(SumOf(event["activations_by_block"]), event["bytes_by_owner"]["activations"]);
  EXPECT_TRUE(event["activations_by_block"].contains("blocks.0"));
}

}  // namespace
}  // namespace trainwreck
