// For tests: whole runs of the loop, each rank a process, in phases; and what must be the same in
// two of them.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "harness/protocol/plan.h"
#include "harness/protocol/trace_reader.h"
#include "trainer/build.h"
#include "trainer/ranks/forked_ranks.h"

namespace trainwreck {

inline constexpr int kSteps = 40;

// A run in a folder of its own: traces, checkpoints and rendezvous files.
class TestRun {
 public:
  TestRun(Recipe recipe, int world_size) : recipe_(std::move(recipe)), world_size_(world_size) {
    recipe_["parallel.ranks"] = world_size;
  }

  std::vector<RankEnd> Train(std::optional<int> until = std::nullopt,
                             const WrapperFactory& make_wrappers = nullptr) {
    Plan plan;
    plan.run = "test";
    plan.seed = 11;
    plan.recipe = recipe_;
    plan.phase = "train";
    plan.attempt = attempts_;
    plan.until = until;
    plan.resume = attempts_ > 0;
    plan.checkpoint_dir = folder_.File("checkpoints");
    plan.rendezvous = folder_.File("rendezvous." + std::to_string(attempts_++));
    plan.record = {"param_digest"};
    return RunForked(world_size_, [&](int rank) {
      const int code = trainwreck::Train(plan, rank, world_size_, folder_.path(), make_wrappers);
      if (code != 0) throw std::runtime_error("exit code " + std::to_string(code));
      return std::string("done");
    });
  }

  RunTrace Trace() const {
    TraceReader reader(folder_.path(), world_size_, kSteps);
    reader.Poll(/*last=*/true);
    EXPECT_TRUE(reader.problems().empty()) << reader.problems().front();
    return reader.trace();
  }

  const ScratchFolder& folder() const { return folder_; }
  Recipe& recipe() { return recipe_; }  // of the phases that follow

 private:
  ScratchFolder folder_;
  Recipe recipe_;
  int world_size_;
  int attempts_ = 0;
};

inline Recipe Small(const std::string& kind) {
  Recipe recipe = {{"steps", kSteps},
                   {"data.batch_size", 4},
                   {"data.samples", 104},  // epochs end in the middle of everything
                   {"eval.batches", 1},
                   {"schedule.kind", "warmup_cosine"},
                   {"schedule.warmup_steps", 10},
                   {"model.width", 16}};
  if (kind == "mlp+sgd") {
    recipe.insert({{"model.kind", "mlp"},
                   {"data.kind", "features"},
                   {"optimizer.kind", "sgd"},
                   {"optimizer.lr", 0.1},
                   {"accumulation", 2}});
  } else {
    recipe.insert({{"model.kind", "gpt"},
                   {"model.heads", 2},
                   {"data.kind", "markov"},
                   {"data.seq_len", 16},
                   {"data.vocab", 16},
                   {"optimizer.kind", "adamw"},
                   {"optimizer.lr", 0.01},
                   {"optimizer.weight_decay", 0.1},
                   {"optimizer.clip_norm", 1.0}});
    if (kind == "gpt+workers") {
      recipe.insert({{"loader.workers", 3}, {"loader.prefetch", 2}, {"loader.cache", true}});
    }
    if (kind == "gpt+overlap")
      recipe.insert({{"parallel.overlap", true}, {"parallel.bucket_mb", 0.005}});
    if (kind == "gpt+bf16") recipe["precision"] = "bf16";
    if (kind == "gpt+masters") recipe["model.dtype"] = "bf16";
    if (kind == "gpt+fp16") {
      // Too high at first, then growing into an overflow again and again.
      recipe.insert({{"precision", "fp16"},
                     {"scaler.kind", "dynamic"},
                     {"scaler.init_scale", 1 << 26},
                     {"scaler.growth_interval", 3}});
    }
  }
  return recipe;
}

inline void ExpectDone(const std::vector<RankEnd>& ends) {
  for (std::size_t rank = 0; rank < ends.size(); ++rank) {
    EXPECT_EQ(ends[rank].output, "done") << "rank " << rank;
    EXPECT_EQ(ends[rank].exit_code, 0) << "rank " << rank;
    EXPECT_EQ(ends[rank].signal, 0) << "rank " << rank;
  }
}

// Every step of both runs, on every rank: what was trained on, what came out, what the parameters
// became.
inline void ExpectSameBits(const RunTrace& expected, const RunTrace& actual) {
  for (int rank = 0; rank < expected.world_size; ++rank) {
    EXPECT_EQ(actual.end_why.at(rank), "completed");
    for (const char* signal : {"loss", "grad_norm", "lr", "sample_digest", "param_digest", "epoch",
                               "loss_scale", "overflow", "skipped_updates"}) {
      const Series* a = expected.Find(signal, rank);
      const Series* b = actual.Find(signal, rank);
      ASSERT_NE(a, nullptr) << signal;
      ASSERT_NE(b, nullptr) << signal;
      for (int step = 0; step < kSteps; ++step) {
        // A shadow (join mode) has no samples to digest; everything else is there at every step.
        ASSERT_EQ(a->Has(step), b->Has(step)) << signal << " at " << step;
        if (!a->Has(step) && std::string(signal) == "sample_digest") continue;
        ASSERT_TRUE(a->Has(step)) << signal << " at " << step;
        ASSERT_EQ(std::memcmp(&a->values[step], &b->values[step], sizeof(double)), 0)
            << signal << " of rank " << rank << " at step " << step << ": " << a->values[step]
            << " and " << b->values[step];
      }
    }
  }
}

inline double Last(const RunTrace& trace, const std::string& signal, int rank = 0) {
  return trace.Find(signal, rank)->values.at(kSteps - 1);
}

inline int Count(const RunTrace& trace, const std::string& event, int rank = 0) {
  int count = 0;
  for (const Event& e : trace.events) count += e.name == event && e.rank == rank;
  return count;
}

}  // namespace trainwreck
