#include "trainer/test_run.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "harness/protocol/trace_reader.h"
#include "trainer/build.h"
#include "trainer/ranks/forked_ranks.h"

namespace trainwreck {

std::vector<double> Outcome::Values(const std::string& signal) const {
  const Series* series = trace.Find(signal, 0);
  return series == nullptr ? std::vector<double>() : series->values;
}

std::vector<Json> Outcome::EventsOf(const std::string& name) const {
  std::vector<Json> events;
  for (const Event& event : trace.events) {
    if (event.name == name) events.push_back(event.fields);
  }
  return events;
}

Outcome RunOnce(const Recipe& recipe, const std::vector<std::string>& record,
                const MakeWrapper& make_wrapper) {
  ScratchFolder folder;
  Plan plan;
  plan.run = "test";
  plan.seed = 3;
  plan.recipe = recipe;
  plan.record = record;
  plan.checkpoint_dir = folder.File("checkpoints");
  Outcome outcome;
  outcome.code =
      Train(plan, 0, 1, folder.path(), [&](const Plan&, int, int, const Clock&, EventSink&) {
        Wrappers wrappers;
        if (make_wrapper) wrappers.push_back(make_wrapper());
        return wrappers;
      });
  TraceReader reader(folder.path(), 1, 1000);
  reader.Poll(/*last=*/true);
  EXPECT_TRUE(reader.problems().empty()) << reader.problems().front();
  outcome.trace = reader.trace();
  std::error_code none;  // a run that is refused makes no folder
  for (const auto& entry : std::filesystem::directory_iterator(plan.checkpoint_dir, none)) {
    std::ifstream file(entry.path(), std::ios::binary);
    outcome.checkpoints[entry.path().filename()] = {std::istreambuf_iterator<char>(file), {}};
  }
  return outcome;
}

Recipe Mlp() { return {{"steps", 20}, {"data.batch_size", 8}, {"data.samples", 64}}; }

Recipe Gpt() {
  return {{"model.kind", "gpt"},       {"data.kind", "markov"}, {"steps", 12},
          {"model.width", 32},         {"data.seq_len", 32},    {"data.batch_size", 4},
          {"optimizer.kind", "adamw"}, {"optimizer.lr", 0.003}};
}

Recipe With(Recipe recipe, const Recipe& changes) {
  for (const auto& [key, value] : changes) recipe[key] = value;
  return recipe;
}

std::map<std::string, std::vector<double>> BitsOf(const Outcome& outcome) {
  std::map<std::string, std::vector<double>> bits;
  for (const auto& [key, series] : outcome.trace.series) {
    const std::string& name = key.first;
    if (name == "time" || name == "memory_bytes" || name.ends_with("_s")) continue;
    bits[name] = series.values;
  }
  return bits;
}

std::map<std::string, std::vector<double>> BitsWithoutMemory(const Outcome& outcome) {
  auto bits = BitsOf(outcome);
  std::erase_if(bits, [](const auto& signal) { return signal.first.starts_with("memory_"); });
  return bits;
}

}  // namespace trainwreck
