// The memory of whole runs of one rank: its limit, and whose it is.
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "trainer/loop.h"
#include "trainer/memory_owner.h"
#include "trainer/telemetry/vocabulary.h"
#include "trainer/test_run.h"

namespace trainwreck {
namespace {

TEST(MemoryTest, ARunFitsIntoItsPeakAndNotIntoAByteLess) {
  RunOnce(Gpt());  // LibTorch keeps some tensors of a process's first run
  const Outcome free = RunOnce(Gpt());
  std::int64_t peak = 0;
  for (double bytes : free.Values("memory_peak_bytes")) {
    peak = std::max(peak, static_cast<std::int64_t>(bytes));
  }
  const Outcome tight = RunOnce(With(Gpt(), {{"memory.limit_bytes", peak}}));
  EXPECT_EQ(tight.code, 0);
  EXPECT_EQ(BitsOf(tight), BitsOf(free));

  const Outcome short_of_one = RunOnce(With(Gpt(), {{"memory.limit_bytes", peak - 1}}));
  EXPECT_EQ(short_of_one.code, 1);
  EXPECT_EQ(short_of_one.trace.end_why.at(0), "exception");
  ASSERT_EQ(short_of_one.EventsOf("out_of_memory").size(), 1u);
  const Json event = short_of_one.EventsOf("out_of_memory")[0];
  EXPECT_EQ(event["stage"], "backward");
  EXPECT_EQ(event["limit_bytes"], peak - 1);
  EXPECT_EQ(
      event["allocated_bytes"].get<std::int64_t>() + event["requested_bytes"].get<std::int64_t>(),
      peak);
  EXPECT_EQ(short_of_one.EventsOf("exception").size(), 1u);
}

TEST(MemoryTest, TheEventNamesTheStage) {
  const Recipe tiny = With(Gpt(), {{"memory.limit_bytes", 1000}});
  EXPECT_EQ(RunOnce(tiny).EventsOf("out_of_memory").at(0)["stage"], "build");
  const auto steady = static_cast<std::int64_t>(RunOnce(Gpt()).Last("memory_allocated_bytes"));
  const Recipe no_room = With(Gpt(), {{"memory.limit_bytes", steady + 200000}});
  EXPECT_EQ(RunOnce(no_room).EventsOf("out_of_memory").at(0)["stage"], "forward");
}

TEST(MemoryTest, TheEventNamesTheOwnerOfMostOfIt) {
  const auto steady = static_cast<std::int64_t>(RunOnce(Gpt()).Last("memory_allocated_bytes"));
  const Recipe wide = With(Gpt(), {{"data.batch_size", 64}, {"memory.limit_bytes", 4 * steady}});
  const Outcome outcome = RunOnce(wide);
  ASSERT_EQ(outcome.EventsOf("out_of_memory").size(), 1u);
  const Json event = outcome.EventsOf("out_of_memory")[0];
  EXPECT_EQ(event["owner"], "activations");
  EXPECT_GT(event["owner_share"], 0.5);
  std::int64_t sum = 0;
  for (const auto& [owner, bytes] : event["bytes_by_owner"].items())
    sum += bytes.get<std::int64_t>();
  EXPECT_EQ(sum, event["allocated_bytes"]);
}

TEST(MemoryTest, TheEventNamesTheContainerThatFilled) {
  using Kept = std::vector<at::Tensor>;
  class Hoard : public PartWrapper {
   public:
    explicit Hoard(Kept& kept) : kept_(kept) {}
    using PartWrapper::Wrap;
    std::unique_ptr<LoopHook> MakeHook() override { return std::make_unique<Hook>(kept_); }

   private:
    class Hook : public LoopHook {
     public:
      explicit Hook(Kept& kept) : kept_(kept) {}
      void OnLog(int /*step*/) override { Keep(); }

     private:
      void Keep() {
        MemoryScope memory(CurrentMemoryOwner());
        kept_.push_back(at::ones({100000}));
      }
      Kept& kept_;
    };
    Kept& kept_;
  };
  Kept history;
  const auto steady = static_cast<std::int64_t>(RunOnce(Mlp()).Last("memory_peak_bytes"));
  const Recipe recipe =
      With(Mlp(), {{"log.every", 1}, {"memory.limit_bytes", 2 * steady + 1000000}});
  const Outcome outcome = RunOnce(recipe, {}, [&] { return std::make_unique<Hoard>(history); });
  ASSERT_EQ(outcome.EventsOf("out_of_memory").size(), 1u);
  const Json event = outcome.EventsOf("out_of_memory")[0];
  EXPECT_EQ(event["owner"], "logging");
  EXPECT_THAT(event["site"].get<std::string>(), testing::EndsWith("Hook::Keep"));
  EXPECT_THAT(event["site_at"].get<std::string>(),
              testing::StartsWith("trainer/loop_memory_test.cc:"));
  std::int64_t sum = 0, kept = 0;
  for (const auto& [site, bytes] : event["bytes_by_site"].items()) {
    sum += bytes.get<std::int64_t>();
    if (site.find("Hook::Keep (") != std::string::npos) kept = bytes.get<std::int64_t>();
  }
  EXPECT_EQ(sum, event["allocated_bytes"]);
  EXPECT_EQ(kept % 400000, 0);
  EXPECT_GE(kept, 800000);
  EXPECT_DOUBLE_EQ(event["site_share"].get<double>(),
                   static_cast<double>(kept) / static_cast<double>(sum));
}

TEST(MemoryTest, ThePeakIsTheSumOverItsOwners) {
  const Outcome outcome = RunOnce(With(Gpt(), {{"log.every", 1}}));
  std::vector<double> sums(outcome.Values("loss").size());
  for (const char* owner :
       {"parameters", "gradients", "optimizer", "activations", "evaluation", "logging", "other"}) {
    const auto bytes = outcome.Values("memory_" + std::string(owner) + "_bytes");
    for (std::size_t step = 0; step < sums.size(); ++step) sums[step] += bytes.at(step);
  }
  EXPECT_EQ(sums, outcome.Values("memory_peak_bytes"));
  const double elements = outcome.Values("parameter_count").at(0);
  EXPECT_GE(outcome.Last("memory_parameters_bytes"), 4 * elements) << "and those of earlier runs";
}

TEST(MemoryTest, OneMomentOfAStageIsItsPeak) {
  const Outcome outcome = RunOnce(Gpt(), {"memory_by_stage", "memory_moments"});
  const auto stages = outcome.EventsOf("memory_by_stage");
  const auto moments = outcome.EventsOf("memory_moments");
  ASSERT_FALSE(stages.empty());
  ASSERT_EQ(moments.size(), stages.size());
  for (std::size_t step = 0; step < stages.size(); ++step) {
    ASSERT_EQ(moments[step]["stages"].size(), stages[step]["stages"].size());
    for (std::size_t i = 0; i < moments[step]["stages"].size(); ++i) {
      const Json& stage = stages[step]["stages"][i];
      const auto bytes = moments[step]["stages"][i]["bytes"].get<std::vector<double>>();
      EXPECT_EQ(moments[step]["stages"][i]["stage"], stage["stage"]);
      if (stage["stage"] == "backward") {
        EXPECT_GT(bytes.size(), 10u);
      }
      if (bytes.empty()) continue;
      EXPECT_EQ(*std::max_element(bytes.begin(), bytes.end()), stage["peak_bytes"]);
    }
  }
}

// Else a formula would change what it reads, and a run made again with all of its signals would die
// elsewhere.
TEST(MemoryTest, WhatIsRecordedTakesNoneOfIt) {
  const Recipe recipe =
      With(Gpt(), {{"log.every", 1}, {"eval.every", 2}, {"optimizer.clip_norm", 0.5}});
  std::vector<std::string> record = {"batch", "memory_blocks", "memory_moments"};
  for (const SignalInfo& signal : TrainerSignals()) {
    record.push_back(signal.name);
    if (signal.per_module) record.push_back(signal.name + "{*}");
  }
  RunOnce(recipe, record);  // LibTorch keeps some tensors of a process's first run
  const Outcome plain = RunOnce(recipe), recorded = RunOnce(recipe, record);
  EXPECT_FALSE(recorded.Values("update_norm").empty());
  for (const auto& [key, series] : plain.trace.series) {
    if (!key.first.starts_with("memory_") || key.first == "memory_bytes") continue;
    EXPECT_EQ(recorded.Values(key.first), plain.Values(key.first)) << key.first;
  }
}

TEST(MemoryTest, ThePeakOfAStepIsTheHighestOfItsStages) {
  const Recipe recipe = With(Gpt(), {{"log.every", 1}, {"checkpoint.every", 2}});
  RunOnce(recipe);  // LibTorch keeps some tensors of a process's first run
  const Outcome plain = RunOnce(recipe);
  const Outcome outcome = RunOnce(recipe, {"memory_by_stage"});
  EXPECT_EQ(outcome.Values("memory_peak_bytes"), plain.Values("memory_peak_bytes"));
  EXPECT_EQ(outcome.Values("memory_activations_bytes"), plain.Values("memory_activations_bytes"));
  const std::vector<Json> events = outcome.EventsOf("memory_by_stage");
  ASSERT_EQ(events.size(), plain.Values("loss").size());
  for (std::size_t step = 0; step < events.size(); ++step) {
    std::map<std::string, double> peaks;
    for (const Json& stage : events[step]["stages"]) {
      double in_use = 0;
      for (const auto& [owner, bytes] : stage["bytes"].items()) in_use += bytes.get<double>();
      EXPECT_GE(stage["peak_bytes"], in_use) << stage;
      if (stage["stage"] != "checkpoint") peaks[stage["stage"]] = stage["peak_bytes"];
    }
    const auto highest = std::max_element(peaks.begin(), peaks.end(), [](auto& one, auto& other) {
      return one.second < other.second;
    });
    EXPECT_EQ(highest->first, "backward");
    EXPECT_EQ(highest->second, outcome.Values("memory_peak_bytes").at(step));
    EXPECT_LT(peaks.at("data"), 0.9 * highest->second);
  }
}

}  // namespace
}  // namespace trainwreck
