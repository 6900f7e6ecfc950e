// What the trainer says of itself is what it does: signals and events described are those written.
#include "trainer/telemetry/vocabulary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <stdexcept>

#include "trainer/events.h"
#include "trainer/test_run.h"

namespace trainwreck {
namespace {

using testing::IsSubsetOf;

std::set<std::string> Described() {
  std::set<std::string> names;
  for (const SignalInfo& signal : TrainerSignals()) {
    EXPECT_TRUE(names.insert(signal.name).second) << signal.name << " is described twice";
  }
  return names;
}

// Everything that can be asked for, of all tensors together and of each.
std::vector<std::string> AllAsked() {
  std::vector<std::string> record;
  for (const SignalInfo& signal : TrainerSignals()) {
    record.push_back(signal.name);
    if (signal.per_module) record.push_back(signal.name + "{*}");
  }
  return record;
}

// The names in a trace, each without its {module}; `with_module` gets those that had one.
std::set<std::string> Written(const Outcome& outcome, std::set<std::string>& with_module) {
  std::set<std::string> names;
  for (const auto& [key, values] : BitsOf(outcome)) {
    const std::size_t brace = key.find('{');
    names.insert(key.substr(0, brace));
    if (brace != std::string::npos) with_module.insert(key.substr(0, brace));
  }
  return names;
}

TEST(VocabularyTest, AStepThatIsAskedForAllWritesWhatIsDescribed) {
  // The second step finds the end of an epoch.
  const Outcome outcome = RunOnce(With(Gpt(), {{"steps", 2},
                                               {"data.samples", 4},
                                               {"data.batch_size", 4},
                                               {"eval.every", 1},
                                               {"eval.free_running", true},
                                               {"optimizer.master_weights", "fp32"}}),
                                  AllAsked());
  ASSERT_EQ(outcome.code, 0);
  std::set<std::string> with_module;
  std::set<std::string> written = Written(outcome, with_module);
  const Outcome of_text = RunOnce(With(Gpt(), {{"steps", 1}, {"data.kind", "text"}}), AllAsked());
  written.merge(Written(of_text, with_module));
  // What is of time and memory, which BitsOf leaves out, and sensors that this machine may lack.
  const std::set<std::string> left_out = {"s", "1/s", "B"};
  for (const SignalInfo& signal : TrainerSignals()) {
    if (left_out.contains(signal.unit) || signal.name.starts_with("device_")) {
      written.insert(signal.name);
    }
    EXPECT_EQ(with_module.contains(signal.name), signal.per_module) << signal.name;
  }
  EXPECT_EQ(written, Described());
}

TEST(VocabularyTest, DurationsAndMemoryAreInEveryStep) {
  const Outcome outcome = RunOnce(With(Mlp(), {{"steps", 2}}));
  for (const SignalInfo& signal : TrainerSignals()) {
    if (signal.sparse || (signal.unit != "s" && signal.unit != "B")) continue;
    EXPECT_EQ(outcome.Values(signal.name).size(), 2u) << signal.name;
  }
}

TEST(VocabularyTest, AnEventIsDescribedByBeingThere) {
  std::set<std::string> described;
  for (const EventInfo& event : DescribeTrainer({}).events) described.insert(event.name);
  EXPECT_THAT((std::set<std::string>{events::kEvaluated.name(), events::kFirstNonfinite.name(),
                                     events::kResumed.name()}),
              IsSubsetOf(described));
  EXPECT_FALSE(described.contains(events::kFired.name())) << "the harness describes it";
}

TEST(VocabularyTest, AFieldThatIsNotDescribedIsRefused) {
  EXPECT_NO_THROW(events::kEvaluated.Check({{"loss", 1}, {"data", "training"}}));
  EXPECT_THROW(events::kEvaluated.Check({{"lost", 1}}), std::logic_error);
  EXPECT_NO_THROW(events::kFired.Check({{"whatever", 1}}));
}

}  // namespace
}  // namespace trainwreck
