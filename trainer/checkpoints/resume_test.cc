// Whole runs of the loop, each rank a process: a run that was stopped and resumed equals the one
// that never stopped, bit for bit; ranks that end at different times end well; uneven shards do
// what their mode says.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>

#include "harness/protocol/plan.h"
#include "harness/protocol/trace_reader.h"
#include "trainer/build.h"
#include "trainer/checkpoints/checkpoint.h"
#include "trainer/checkpoints/testing_runs.h"
#include "trainer/ranks/forked_ranks.h"

namespace trainwreck {
namespace {

struct ResumeCase {
  std::string kind;
  int world_size;
};

class Resume : public ::testing::TestWithParam<ResumeCase> {};
INSTANTIATE_TEST_SUITE_P(Kinds, Resume,
                         ::testing::Values(ResumeCase{"gpt+adamw", 1}, ResumeCase{"mlp+sgd", 1},
                                           ResumeCase{"gpt+bf16", 1}, ResumeCase{"gpt+fp16", 1},
                                           ResumeCase{"gpt+masters", 2}, ResumeCase{"gpt+fp16", 2},
                                           ResumeCase{"gpt+adamw", 2}, ResumeCase{"mlp+sgd", 2},
                                           ResumeCase{"gpt+workers", 1},
                                           ResumeCase{"gpt+workers", 2},
                                           ResumeCase{"gpt+overlap", 2}));

TEST_P(Resume, EqualsTheRunThatNeverStopped) {
  const auto& [kind, world_size] = GetParam();
  TestRun whole(Small(kind), world_size);
  ExpectDone(whole.Train());
  // 13: the step after which an epoch of one rank without accumulation has been drawn in halves;
  // 26: just at its end.
  for (int stop : {1, 13, 20, 26}) {
    TestRun halves(Small(kind), world_size);
    ExpectDone(halves.Train(stop));
    EXPECT_EQ(halves.Trace().end_why.at(0), "phase_done");
    ExpectDone(halves.Train());
    const RunTrace trace = halves.Trace();
    EXPECT_EQ(Count(trace, "resumed"), 1);
    ExpectSameBits(whole.Trace(), trace);
  }
}

// What a run saves after it was loaded is what it would have saved: each entry, not only what comes
// of it later.
TEST_P(Resume, SavesWhatTheRunThatNeverStoppedSaves) {
  const std::string& kind = GetParam().kind;
  const int world_size = GetParam().world_size;
  TestRun whole(Small(kind), world_size), halves(Small(kind), world_size);
  ExpectDone(whole.Train(20));
  for (int until : {19, 20}) ExpectDone(halves.Train(until));
  for (int rank = 0; rank < world_size; ++rank) {
    const auto saved_by = [&](const TestRun& run) {
      return FileCheckpointStore({.dir = run.folder().File("checkpoints"),
                                  .rank = rank,
                                  .world_size = world_size,
                                  .writer = "test"})
          .Load(20);
    };
    const StateDict expected = saved_by(whole), state = saved_by(halves);
    EXPECT_EQ(state.size(), expected.size());
    for (const auto& [name, tensor] : expected) {
      ASSERT_TRUE(state.contains(name)) << name;
      ASSERT_EQ(state.at(name).scalar_type(), tensor.scalar_type()) << name;
      EXPECT_TRUE(state.at(name).equal(tensor)) << name << " of rank " << rank;
    }
  }
}

TEST(LossScale, MovesBothWaysInTheRunsThatAreCompared) {
  TestRun run(Small("gpt+fp16"), 1);
  ExpectDone(run.Train());
  const RunTrace trace = run.Trace();
  const std::vector<double>& scale = trace.Find("loss_scale", 0)->values;
  EXPECT_GT(scale.front(), 2 * Last(trace, "loss_scale"));
  EXPECT_FALSE(std::is_sorted(scale.rbegin(), scale.rend())) << "it never grew";
  EXPECT_GT(Last(trace, "skipped_updates"), 3);
  EXPECT_LT(Last(trace, "skipped_updates"), kSteps / 2);
}

// Says that gradients overflowed at one step.
class AlarmingScaler : public LossScaler {
 public:
  AlarmingScaler(std::unique_ptr<LossScaler> inner, const Clock& clock, int step)
      : inner_(std::move(inner)), clock_(clock), step_(step) {}
  double scale() const override { return inner_->scale(); }
  bool skips_updates() const override { return inner_->skips_updates(); }
  bool Unscale(const std::vector<at::Tensor>& gradients) override {
    return inner_->Unscale(gradients) || clock_.step == step_;
  }
  void Update(bool overflowed) override { inner_->Update(overflowed); }
  void Save(StateDict& state) const override { inner_->Save(state); }
  void Load(const StateDict& state) override { inner_->Load(state); }

 private:
  std::unique_ptr<LossScaler> inner_;
  const Clock& clock_;
  int step_;
};

class AlarmAt : public PartWrapper {
 public:
  AlarmAt(const Clock& clock, int step) : clock_(clock), step_(step) {}
  using PartWrapper::Wrap;
  std::unique_ptr<LossScaler> Wrap(std::unique_ptr<LossScaler> part) override {
    return std::make_unique<AlarmingScaler>(std::move(part), clock_, step_);
  }

 private:
  const Clock& clock_;
  int step_;
};

TEST(LossScale, AnOverflowOnOneRankSkipsTheUpdateOnAll) {
  Recipe recipe = Small("mlp+sgd");
  recipe.insert({{"scaler.kind", "dynamic"}, {"scaler.init_scale", 1024}});
  TestRun run(recipe, 2);
  ExpectDone(
      run.Train(std::nullopt, [](const Plan&, int rank, int, const Clock& clock, EventSink&) {
        Wrappers wrappers;
        if (rank == 1) wrappers.push_back(std::make_unique<AlarmAt>(clock, 7));
        return wrappers;
      }));
  const RunTrace trace = run.Trace();
  for (int rank : {0, 1}) {
    for (int step = 0; step < kSteps; ++step) {
      EXPECT_EQ(trace.Find("overflow", rank)->values.at(step), step == 7 ? 1 : 0) << rank;
    }
    EXPECT_EQ(Last(trace, "loss_scale", rank), 512);
    EXPECT_EQ(Last(trace, "skipped_updates", rank), 1);
  }
  EXPECT_EQ(trace.Find("param_digest", 0)->values, trace.Find("param_digest", 1)->values);
}

TEST(ResumeTwice, ThroughManyPhases) {
  TestRun whole(Small("gpt+adamw"), 1), parts(Small("gpt+adamw"), 1);
  ExpectDone(whole.Train());
  for (int until : {7, 8, 19, 33}) ExpectDone(parts.Train(until));
  ExpectDone(parts.Train());
  ExpectSameBits(whole.Trace(), parts.Trace());
}

TEST(Ranks, HoldTheSameParametersAtEveryStep) {
  TestRun run(Small("gpt+adamw"), 2);
  ExpectDone(run.Train());
  const RunTrace trace = run.Trace();
  EXPECT_EQ(trace.Find("param_digest", 0)->values, trace.Find("param_digest", 1)->values);
  EXPECT_NE(trace.Find("sample_digest", 0)->values, trace.Find("sample_digest", 1)->values);
  EXPECT_EQ(trace.collectives.at(0), trace.collectives.at(1));
  EXPECT_FALSE(trace.collectives.at(0).empty());
}

// Else all ranks drop the same elements of their batches.
TEST(Ranks, DrawNumbersOfTheirOwn) {
  TestRun run(Small("mlp+sgd"), 2);
  ExpectDone(run.Train(1));
  const auto generator_of = [&](int rank) {
    return FileCheckpointStore(
               {.dir = run.folder().File("checkpoints"), .rank = rank, .world_size = 2})
        .Load(1)
        .at("rng.torch");
  };
  EXPECT_FALSE(generator_of(0).equal(generator_of(1)));
}

TEST(Ranks, TwentyHealthyRunsEndWell) {
  for (int i = 0; i < 20; ++i) {
    TestRun run(Small("mlp+sgd"), 2);
    ExpectDone(run.Train());
  }
}

class AtStep : public LoopHook {
 public:
  AtStep(int step, int signal) : step_(step), signal_(signal) {}
  void OnStepBegin(int step) override {
    if (step == step_) raise(signal_);
  }

 private:
  int step_, signal_;
};

class KillAt : public PartWrapper {
 public:
  explicit KillAt(int step) : step_(step) {}
  using PartWrapper::Wrap;
  std::unique_ptr<LoopHook> MakeHook() override { return std::make_unique<AtStep>(step_, SIGKILL); }

 private:
  int step_;
};

WrapperFactory KillRankOneAt(int step) {
  return [step](const Plan&, int rank, int, const Clock&, EventSink&) {
    Wrappers wrappers;
    if (rank == 1) wrappers.push_back(std::make_unique<KillAt>(step));
    return wrappers;
  };
}

TEST(Restart, AfterADeathAtAnyStepEqualsTheRunThatNeverStopped) {
  Recipe recipe = Small("gpt+adamw");
  recipe["checkpoint.every"] = 5;
  TestRun whole(recipe, 2);
  ExpectDone(whole.Train());
  for (int step : {3, 5, 14, 20, 39}) {
    TestRun killed(recipe, 2);
    const auto ends = killed.Train(std::nullopt, KillRankOneAt(step));
    EXPECT_EQ(ends[1].signal, SIGKILL);
    EXPECT_EQ(ends[0].exit_code, 1) << ends[0].output;
    EXPECT_LT(ends[0].seconds - ends[1].seconds, 3.0);
    EXPECT_EQ(killed.Trace().end_why.at(0), "exception");
    EXPECT_EQ(Count(killed.Trace(), "exception"), 1);
    ExpectDone(killed.Train());
    ExpectSameBits(whole.Trace(), killed.Trace());
    // At most one interval is done again.
    for (const Event& event : killed.Trace().events) {
      if (event.name == "resumed") {
        EXPECT_GT(event.fields.at("from_step").get<int>() + 5, step - 1) << "killed at " << step;
      }
    }
  }
}

TEST(Restart, PassesOverADamagedCheckpoint) {
  Recipe recipe = Small("mlp+sgd");
  recipe["checkpoint.every"] = 10;
  TestRun whole(recipe, 2);
  ExpectDone(whole.Train());
  TestRun run(recipe, 2);
  ExpectDone(run.Train(30));
  // One byte short on one rank: step 30 is no longer whole, step 20 is.
  const std::string damaged = run.folder().File("checkpoints/step-00000030.rank1.ckpt");
  std::filesystem::resize_file(damaged, std::filesystem::file_size(damaged) - 1);
  ExpectDone(run.Train());
  EXPECT_EQ(Count(run.Trace(), "checkpoint_damaged", 1), 1);
  for (const Event& event : run.Trace().events) {
    if (event.name == "resumed") {
      EXPECT_EQ(event.fields.at("from_step"), 20);
    } else if (event.name == "checkpoint_damaged") {
      EXPECT_EQ(event.fields.at("file_rank"), 1);
    }
  }
  ExpectSameBits(whole.Trace(), run.Trace());
}

// Saves without the optimizer's state at one step.
class ForgetfulStore : public CheckpointStore {
 public:
  ForgetfulStore(std::unique_ptr<CheckpointStore> inner, int step)
      : inner_(std::move(inner)), step_(step) {}
  void Save(int steps_done, const StateDict& state) override {
    StateDict kept = state;
    if (steps_done == step_) {
      std::erase_if(kept, [](const auto& entry) { return entry.first.starts_with("optimizer."); });
    }
    inner_->Save(steps_done, kept);
  }
  std::vector<int> List() const override { return inner_->List(); }
  StateDict Load(int steps_done) const override { return inner_->Load(steps_done); }

 private:
  std::unique_ptr<CheckpointStore> inner_;
  int step_;
};

class ForgetAt : public PartWrapper {
 public:
  explicit ForgetAt(int step) : step_(step) {}
  using PartWrapper::Wrap;
  std::unique_ptr<CheckpointStore> Wrap(std::unique_ptr<CheckpointStore> part) override {
    return std::make_unique<ForgetfulStore>(std::move(part), step_);
  }

 private:
  int step_;
};

TEST(Restart, RanksGoBackTogetherWhenOneLacksEntries) {
  Recipe recipe = Small("gpt+adamw");
  recipe["checkpoint.every"] = 10;
  recipe["checkpoint.require_complete"] = true;
  recipe["parallel.timeout_s"] = 5;
  TestRun whole(recipe, 2), run(recipe, 2);
  ExpectDone(whole.Train());
  ExpectDone(run.Train(20, [](const Plan&, int rank, int, const Clock&, EventSink&) {
    Wrappers wrappers;
    if (rank == 1) wrappers.push_back(std::make_unique<ForgetAt>(20));
    return wrappers;
  }));
  ExpectDone(run.Train());
  const RunTrace trace = run.Trace();
  EXPECT_EQ(Count(trace, "checkpoint_incomplete", 0), 0);
  EXPECT_EQ(Count(trace, "checkpoint_incomplete", 1), 1);
  for (const Event& event : trace.events) {
    if (event.name == "resumed") {
      EXPECT_EQ(event.fields.at("from_step"), 10) << event.rank;
    }
  }
  ExpectSameBits(whole.Trace(), trace);
}

// Rank 1 has 12 samples less than rank 0.
class ShortShards : public Shards {
 public:
  explicit ShortShards(std::unique_ptr<Shards> inner) : inner_(std::move(inner)) {}
  std::vector<std::int64_t> IdsOf(int rank, std::int64_t epoch) const override {
    auto ids = inner_->IdsOf(rank, epoch);
    if (rank == 1) ids.resize(ids.size() - 12);
    return ids;
  }

 private:
  std::unique_ptr<Shards> inner_;
};

class Shorten : public PartWrapper {
 public:
  using PartWrapper::Wrap;
  std::unique_ptr<Shards> Wrap(std::unique_ptr<Shards> part) override {
    return std::make_unique<ShortShards>(std::move(part));
  }
};

Wrappers MakeShorten(const Plan&, int, int, const Clock&, EventSink&) {
  Wrappers wrappers;
  wrappers.push_back(std::make_unique<Shorten>());
  return wrappers;
}

class UnevenRun : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Modes, UnevenRun, ::testing::Values("drop_last", "pad", "join"));

TEST_P(UnevenRun, CompletesInStep) {
  for (const char* kind : {"gpt+adamw", "gpt+masters", "mlp+sgd"}) {
    Recipe recipe = Small(kind);
    recipe["sampler.uneven"] = GetParam();
    recipe["parallel.timeout_s"] = 5;
    TestRun whole(recipe, 2);
    ExpectDone(whole.Train(std::nullopt, MakeShorten));
    const RunTrace trace = whole.Trace();
    EXPECT_EQ(trace.Find("param_digest", 0)->values, trace.Find("param_digest", 1)->values);
    EXPECT_EQ(trace.Find("epoch", 0)->values, trace.Find("epoch", 1)->values);
    EXPECT_EQ(trace.collectives.at(0), trace.collectives.at(1));
    EXPECT_GT(Last(trace, "epoch"), 1);
    // Resumed in the middle of an epoch whose short rank is at its end.
    TestRun halves(recipe, 2);
    ExpectDone(halves.Train(12, MakeShorten));
    ExpectDone(halves.Train(std::nullopt, MakeShorten));
    ExpectSameBits(trace, halves.Trace());
  }
}

TEST(UnevenShards, WithoutAModeTheRanksHang) {
  Recipe recipe = Small("gpt+adamw");
  recipe["parallel.timeout_s"] = 3;
  TestRun run(recipe, 2);
  const auto ends = run.Train(std::nullopt, MakeShorten);
  EXPECT_EQ(ends[0].exit_code, 1) << ends[0].output;
  EXPECT_EQ(ends[1].exit_code, 1) << ends[1].output;
  // What each waited in is the last record of its collectives.
  const RunTrace trace = run.Trace();
  EXPECT_EQ(trace.collectives.at(1).back().op, "barrier");
  EXPECT_EQ(trace.collectives.at(0).back().op, "all_reduce");
  EXPECT_EQ(trace.collectives.at(0).back().call, trace.collectives.at(1).back().call);
}

}  // namespace
}  // namespace trainwreck
