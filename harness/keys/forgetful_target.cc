// A target without a model, for tests: it trains nothing and forgets some of its options.
//   optimizer.clip_norm   nothing reads it
//   schedule.warmup       after a resume the checkpoint's value is used
//   loss.smoothing        ignored under accumulation
//   parallel.bucket       acts with several ranks only, as it should
//   optimizer.momentum    acts with sgd only, as it should
//   model.heads           any but 4 is refused
// With FORGETFUL_DRIFTS in the environment no two runs are equal.
#include <unistd.h>

#include <fstream>
#include <stdexcept>
#include <string>
#include <utility>

#include "harness/launch/target_main.h"
#include "harness/protocol/trace.h"

namespace trainwreck {
namespace {

TargetDescription Description() {
  TargetDescription target;
  target.name = "forgetful";
  target.version = "1";
  const auto key = [&](const char* name, ValueType type, Json value, double min = 0) {
    ParamInfo info;
    info.name = name;
    info.type = type;
    info.default_value = std::move(value);
    if (type != ValueType::kString) info.min = min;
    target.recipe.push_back(std::move(info));
  };
  key("accumulation", ValueType::kInt, 1, 1);
  target.recipe.back().role = "accumulation";
  key("loss.smoothing", ValueType::kNumber, 0.1);
  key("model.heads", ValueType::kInt, 4, 1);
  key("optimizer.clip_norm", ValueType::kNumber, 0.0);
  key("optimizer.kind", ValueType::kString, "adam");
  target.recipe.back().choices = {"adam", "sgd"};
  key("optimizer.lr", ValueType::kNumber, 0.1);
  key("optimizer.momentum", ValueType::kNumber, 0.9);
  key("parallel.bucket", ValueType::kInt, 8, 1);
  key("parallel.ranks", ValueType::kInt, 1, 1);
  target.recipe.back().max = 2;
  key("schedule.warmup", ValueType::kInt, 0);
  key("steps", ValueType::kInt, 4, 1);
  target.signals.push_back({.name = "loss", .unit = "nats"});
  target.signals.push_back({.name = "step_s", .unit = "s"});
  target.signals.push_back({.name = "memory_bytes", .unit = "B"});
  target.events.push_back({"resumed", {"from_step", "folder"}, "Went on from a checkpoint."});
  target.features = {"device:cpu", "fork-server"};
  return target;
}

int Train(const Plan& plan) {
  const auto number = [&](const char* key) { return plan.recipe.at(key).get<double>(); };
  if (number("model.heads") != 4) throw std::runtime_error("heads: must be 4");
  const std::string rank = Variable("RANK", "0");
  TraceWriter trace(Variable("TRAINWRECK_TRACE") + "/rank" + rank + ".jsonl");
  const std::string saved = plan.checkpoint_dir + "/rank" + rank;
  int step = 0;
  double warmup = number("schedule.warmup");
  trace.Write({{"t", "start"}, {"rank", std::stoi(rank)}, {"phase", plan.phase}});
  if (plan.resume && std::ifstream(saved) >> step >> warmup) {
    trace.Write({{"t", "event"},
                 {"event", "resumed"},
                 {"step", step},
                 {"from_step", step},
                 {"folder", plan.checkpoint_dir}});
  }
  const int end = plan.until.value_or(static_cast<int>(number("steps")));
  const double drift = Variable("FORGETFUL_DRIFTS").empty() ? 0 : 1e-9 * getpid();
  for (; step < end; ++step) {
    double loss = 10 - number("optimizer.lr") * step - 0.01 * warmup + drift;
    if (number("accumulation") == 1) loss += number("loss.smoothing");
    if (plan.recipe.at("optimizer.kind") == "sgd") loss += 1 + number("optimizer.momentum");
    loss += 0.1 * number("accumulation");
    if (number("parallel.ranks") > 1) loss += 0.001 * number("parallel.bucket");
    trace.Write({{"t", "step"},
                 {"step", step},
                 {"loss", loss},
                 {"step_s", 1e-6 * getpid()},
                 {"memory_bytes", getpid()}});
  }
  std::ofstream(saved) << step << " " << warmup;
  trace.Write({{"t", "end"}, {"why", "completed"}, {"step", step}});
  return 0;
}

}  // namespace
}  // namespace trainwreck

int main(int argc, char** argv) {
  return trainwreck::TargetMain(argc, argv, trainwreck::Description, trainwreck::Train);
}
