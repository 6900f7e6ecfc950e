// Checkpoints that are written beside training (checkpoint.asynchronous): the same bytes, the same
// guarantees.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "trainer/test_run.h"

namespace trainwreck {
namespace {

using std::chrono::milliseconds;

// Does something before each save of the store that it wraps.
class BeforeSave : public PartWrapper {
 public:
  using PartWrapper::Wrap;
  explicit BeforeSave(std::function<void(int steps_done)> act) : act_(std::move(act)) {}
  std::unique_ptr<CheckpointStore> Wrap(std::unique_ptr<CheckpointStore> part) override {
    return std::make_unique<Store>(std::move(part), act_);
  }

 private:
  class Store : public CheckpointStore {
   public:
    Store(std::unique_ptr<CheckpointStore> inner, std::function<void(int)> act)
        : inner_(std::move(inner)), act_(std::move(act)) {}
    void Save(int steps_done, const StateDict& state) override {
      act_(steps_done);
      inner_->Save(steps_done, state);
    }
    std::vector<int> List() const override { return inner_->List(); }
    StateDict Load(int steps_done) const override { return inner_->Load(steps_done); }

   private:
    std::unique_ptr<CheckpointStore> inner_;
    std::function<void(int)> act_;
  };

  std::function<void(int)> act_;
};

Recipe Saving(bool asynchronous, const Recipe& more = {}) {
  return With(With(Mlp(), {{"steps", 40},
                           {"checkpoint.every", 5},
                           {"checkpoint.keep", 100},
                           {"checkpoint.asynchronous", asynchronous}}),
              more);
}

std::map<std::string, std::string> FilesOf(bool asynchronous, milliseconds slow) {
  const Outcome outcome = RunOnce(Saving(asynchronous), {}, [slow] {
    return std::make_unique<BeforeSave>([slow](int) { std::this_thread::sleep_for(slow); });
  });
  EXPECT_EQ(outcome.code, 0);
  return outcome.checkpoints;
}

TEST(Asynchronous, FilesHaveTheSameBytesThoughTrainingGoesOn) {
  const auto expected = FilesOf(/*asynchronous=*/false, milliseconds(0));
  ASSERT_EQ(expected.size(), 8u);
  EXPECT_TRUE(FilesOf(/*asynchronous=*/true, milliseconds(20)) == expected);
}

TEST(Asynchronous, TrainingGoesOnWhileASaveIsWrittenAndTheNextOneWaits) {
  std::atomic<int> at_once = 0, most = 0;
  const Outcome outcome = RunOnce(Saving(true), {}, [&] {
    return std::make_unique<BeforeSave>([&](int) {
      most = std::max(most.load(), ++at_once);
      std::this_thread::sleep_for(milliseconds(30));
      --at_once;
    });
  });
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(most, 1);
  std::vector<int> saved;
  for (const Json& event : outcome.EventsOf("checkpoint_saved")) {
    saved.push_back(event.at("steps_done"));
    // Steps take a fraction of the save: the step in progress is the next save's, or the last.
    if (saved.back() < 40) {
      EXPECT_GT(event.at("step").get<int>(), saved.back());
    }
  }
  EXPECT_EQ(saved, (std::vector<int>{5, 10, 15, 20, 25, 30, 35, 40}));
}

TEST(Asynchronous, AFailedSaveIsToldOrEndsTheRun) {
  const auto fail_at_20 = [] {
    return std::make_unique<BeforeSave>([](int steps_done) {
      if (steps_done == 20) throw std::runtime_error("no room");
    });
  };
  const Outcome on = RunOnce(Saving(true, {{"checkpoint.on_failure", "go_on"}}), {}, fail_at_20);
  EXPECT_EQ(on.code, 0);
  ASSERT_EQ(on.EventsOf("checkpoint_failed").size(), 1u);
  EXPECT_EQ(on.EventsOf("checkpoint_failed")[0].at("steps_done"), 20);
  EXPECT_EQ(on.EventsOf("checkpoint_failed")[0].at("what"), "no room");
  EXPECT_EQ(on.EventsOf("checkpoint_saved").size(), 7u);
  EXPECT_EQ(RunOnce(Saving(true), {}, fail_at_20).code, 1);
}

class ThrowAtStep : public PartWrapper {
 public:
  std::unique_ptr<LoopHook> MakeHook() override { return std::make_unique<Hook>(); }

 private:
  class Hook : public LoopHook {
    void OnStepBegin(int step) override {
      if (step == 10) throw std::runtime_error("a bad step");
    }
  };
};

// As with saves that training waits for, an error after a save does not cost the save.
TEST(Asynchronous, AnErrorOfTheLoopWaitsForTheSave) {
  class Both : public ThrowAtStep {
   public:
    using PartWrapper::Wrap;
    std::unique_ptr<CheckpointStore> Wrap(std::unique_ptr<CheckpointStore> part) override {
      return BeforeSave([](int) { std::this_thread::sleep_for(milliseconds(50)); })
          .Wrap(std::move(part));
    }
  };
  const Outcome outcome = RunOnce(Saving(true), {}, [] { return std::make_unique<Both>(); });
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.EventsOf("checkpoint_saved").size(), 2u);
  EXPECT_EQ(outcome.checkpoints.size(), 2u);
}

}  // namespace
}  // namespace trainwreck
