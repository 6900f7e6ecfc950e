// ZeRO in whole runs of several ranks: each stage trains as plain ranks do, and a rank's memory is
// what Rajbhandari et al. (2020) say.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "trainer/checkpoints/testing_runs.h"

namespace trainwreck {
namespace {

Recipe Of(Recipe recipe, const Recipe& changes) {
  for (const auto& [key, value] : changes) recipe[key] = value;
  return recipe;
}

RunTrace TraceOf(const Recipe& recipe, int ranks) {
  TestRun run(recipe, ranks);
  ExpectDone(run.Train());
  return run.Trace();
}

// Layers of 66 kB in fp32, larger than all activations; each weight is a bucket.
constexpr double kLayerBytes = 4 * 128 * 128;
Recipe Wide(int stage) {
  return {{"steps", kSteps},
          {"parallel.zero_stage", stage},
          {"parallel.bucket_mb", 0.01},
          {"model.kind", "mlp"},
          {"model.layers", 8},
          {"model.width", 128},
          {"data.kind", "features"},
          {"data.batch_size", 2},
          {"eval.batches", 1},
          {"optimizer.kind", "adamw"},
          {"optimizer.lr", 0.001},
          {"diagnose.nonfinite", false}};
}

// The largest over the ranks, of a step in the middle of the run.
double BytesOf(const RunTrace& trace, const std::string& owner) {
  double bytes = 0;
  for (int rank = 0; rank < trace.world_size; ++rank) {
    bytes = std::max(bytes, trace.Find("memory_" + owner + "_bytes", rank)->values.at(kSteps / 2));
  }
  return bytes;
}

// Of all elements, in fp32: what a rank of n has of parameters, gradients and Adam's two moments.
struct Shares {
  double parameters, gradients, state;
};
Shares SharesOf(int stage, double n) {
  return {stage >= 3 ? 1 / n : 1, stage >= 2 ? 1 / n : 1, stage >= 1 ? 2 / n : 2};
}

TEST(Zero, ARankHasItsShareOfTheMemory) {
  for (const int ranks : {2, 4}) {
    for (const int stage : {0, 1, 2, 3}) {
      SCOPED_TRACE(std::to_string(ranks) + " ranks, stage " + std::to_string(stage));
      const RunTrace trace = TraceOf(Wide(stage), ranks);
      const double all = 4 * trace.Find("parameter_count", 0)->values.at(0);
      const Shares of = SharesOf(stage, ranks);
      const double few = 20000;  // losses, batches, counts
      EXPECT_NEAR(BytesOf(trace, "allocated"), (of.parameters + of.gradients + of.state) * all, few)
          << "between steps";
      EXPECT_NEAR(BytesOf(trace, "optimizer"), of.state * all, few);
      const double section = stage >= 3 ? kLayerBytes : 0;
      EXPECT_NEAR(BytesOf(trace, "parameters"), of.parameters * all + section, few);
      // A bucket is there twice, as gradients and as what is sent.
      EXPECT_LE(BytesOf(trace, "gradients"), of.gradients * all + 2 * kLayerBytes + few);
    }
  }
}

void ExpectSame(const RunTrace& expected, const RunTrace& actual,
                const std::vector<std::string>& signals, double relative) {
  for (const std::string& signal : signals) {
    const Series* a = expected.Find(signal, 0);
    const Series* b = actual.Find(signal, 0);
    ASSERT_TRUE(a != nullptr && b != nullptr) << signal;
    for (int step = 0; step < kSteps; ++step) {
      const bool overflowed = !std::isfinite(a->values[step]) && !std::isfinite(b->values[step]);
      if (overflowed) continue;
      ASSERT_NEAR(a->values[step], b->values[step], relative * std::abs(a->values[step]))
          << signal << " at step " << step;
    }
  }
}

TEST(Zero, TwoRanksHaveTheBitsOfWholeOnes) {
  for (const char* kind : {"gpt+adamw", "gpt+fp16", "gpt+bf16"}) {
    const Recipe recipe =
        Of(Small(kind), {{"optimizer.clip_norm", 0.0}, {"diagnose.nonfinite", false}});
    const RunTrace whole = TraceOf(Of(recipe, {{"parallel.zero_stage", 1}}), 2);
    for (const int stage : {2, 3}) {
      SCOPED_TRACE(std::string(kind) + ", stage " + std::to_string(stage));
      const RunTrace divided = TraceOf(Of(recipe, {{"parallel.zero_stage", stage}}), 2);
      ExpectSame(whole, divided, {"loss", "param_digest", "overflow", "loss_scale"}, 0);
      ExpectSame(whole, divided, {"grad_norm"}, 1e-12);
    }
  }
}

// The backward pass of a block begins with its forward pass then.
TEST(Zero, ASectionThatIsComputedAgainIsGatheredForIt) {
  const Recipe recipe = Of(Small("gpt+adamw"), {{"optimizer.clip_norm", 0.0},
                                                {"diagnose.nonfinite", false},
                                                {"model.tied_embeddings", true}});
  const RunTrace whole = TraceOf(Of(recipe, {{"parallel.zero_stage", 1}}), 2);
  const RunTrace divided = TraceOf(
      Of(recipe, {{"parallel.zero_stage", 3}, {"model.activation_checkpointing", true}}), 2);
  ExpectSame(whole, divided, {"loss", "param_digest"}, 0);
}

TEST(Zero, TheAuditSeesWholeParameters) {
  const Recipe recipe =
      Of(Small("gpt+adamw"), {{"diagnose.nonfinite", false}, {"audit.coverage", "stop"}});
  for (const int stage : {2, 3}) TraceOf(Of(recipe, {{"parallel.zero_stage", stage}}), 2);
}

// A layer is broadcast by its owner, or by both in parts: as its forward pass begins, and again as
// its backward pass does, but for the last one, which is there.
class LateBroadcasts : public PartWrapper {
 public:
  using PartWrapper::Wrap;
  std::unique_ptr<Communicator> Wrap(std::unique_ptr<Communicator> inner) override {
    return std::make_unique<Late>(std::move(inner));
  }

 private:
  class Late : public Communicator {
   public:
    explicit Late(std::unique_ptr<Communicator> inner) : inner_(std::move(inner)) {}
    int rank() const override { return inner_->rank(); }
    int world_size() const override { return inner_->world_size(); }
    void AllReduce(at::Tensor& tensor, Reduction reduction) override {
      inner_->AllReduce(tensor, reduction);
    }
    void Broadcast(at::Tensor& tensor, int root) override {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      inner_->Broadcast(tensor, root);
    }
    void Barrier() override { inner_->Barrier(); }

   private:
    std::unique_ptr<Communicator> inner_;
  };
};

TEST(Zero, GatheringIsWaitingForRanksAndNoComputing) {
  TestRun run(Wide(3), 2);
  ExpectDone(run.Train(std::nullopt, [](const Plan&, int, int, const Clock&, EventSink&) {
    Wrappers wrappers;
    wrappers.push_back(std::make_unique<LateBroadcasts>());
    return wrappers;
  }));
  const RunTrace trace = run.Trace();
  const double late = (2 * 8 - 1) * 0.002;
  for (const double comm_s : trace.Find("comm_s", 0)->values) EXPECT_GE(comm_s, late);
}

TEST(Zero, ClipsByTheNormOfAllRanks) {
  const Recipe recipe = Of(Small("gpt+adamw"), {{"optimizer.clip_norm", 0.3}});
  const RunTrace whole = TraceOf(recipe, 2);
  const RunTrace divided = TraceOf(Of(recipe, {{"parallel.zero_stage", 2}}), 2);
  ExpectSame(whole, divided, {"loss", "grad_norm", "clipped"}, 1e-4);
  EXPECT_EQ(Last(divided, "clipped"), 1);
}

TEST(Zero, RanksWithUnevenShardsMakeTheSameSteps) {
  const Recipe recipe = Of(Small("mlp+sgd"), {{"data.samples", 101}, {"sampler.uneven", "join"}});
  const RunTrace whole = TraceOf(recipe, 3);
  const RunTrace divided = TraceOf(Of(recipe, {{"parallel.zero_stage", 2}}), 3);
  ExpectSame(whole, divided, {"loss", "grad_norm"}, 1e-4);
}

TEST(Zero, ResumesWithTheBitsOfARunThatWasNotStopped) {
  for (const int stage : {2, 3}) {
    SCOPED_TRACE("stage " + std::to_string(stage));
    const Recipe recipe =
        Of(Small("gpt+adamw"), {{"parallel.zero_stage", stage}, {"diagnose.nonfinite", false}});
    TestRun whole(recipe, 2), stopped(recipe, 2);
    ExpectDone(whole.Train());
    ExpectDone(stopped.Train(/*until=*/13));
    ExpectDone(stopped.Train());
    ExpectSameBits(whole.Trace(), stopped.Trace());
  }
}

// Its optimizer's state is divided otherwise: the run says so, and begins again.
TEST(Zero, PassesOverTheCheckpointOfAnotherStage) {
  for (const auto& [before, after] : {std::pair(0, 2), std::pair(2, 0), std::pair(0, 3)}) {
    SCOPED_TRACE(std::to_string(before) + " to " + std::to_string(after));
    const Recipe recipe = Of(Small("gpt+adamw"), {{"diagnose.nonfinite", false}});
    TestRun run(Of(recipe, {{"parallel.zero_stage", before}}), 2);
    ExpectDone(run.Train(/*until=*/13));
    run.recipe()["parallel.zero_stage"] = after;
    ExpectDone(run.Train());
    int misfits = 0;
    for (const Event& event : run.Trace().events) {
      EXPECT_NE(event.name, "resumed");
      if (event.name != "checkpoint_misfit") continue;
      ++misfits;
      EXPECT_TRUE(event.fields.at("entry").get<std::string>().starts_with("optimizer."));
      EXPECT_NE(event.fields.at("why").get<std::string>().find("the optimizer has"),
                std::string::npos);
    }
    EXPECT_GE(misfits, 1);
  }
}

}  // namespace
}  // namespace trainwreck
