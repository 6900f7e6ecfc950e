// A training program without a model that lies on command, for tests of the judge: the recipe's
// `lies.script` says what its runs do, arm by arm and seed by seed.
//
//   lies.script: "control:exit0@10 lower_lr/2:nan@5 *:same"
//
// An entry is ARM[/SEED]:ACTION[@STEP]; `*` is every arm. Without a script it is a model citizen:
// its loss falls, blows up when optimizer.lr is above 1, and turns NaN by the fault data.bad_batch.
#include <signal.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <limits>
#include <map>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>

#include "harness/process/spawn.h"
#include "harness/protocol/description.h"
#include "harness/protocol/plan.h"
#include "harness/protocol/trace.h"

namespace trainwreck {
namespace {

constexpr double kStableLr = 1.0;  // above, the loss blows up
constexpr double kFirstLoss = 4.0;

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

ParamInfo Key(const std::string& name, ValueType type, Json value, const std::string& doc) {
  ParamInfo info;
  info.name = name;
  info.type = type;
  info.default_value = std::move(value);
  info.doc = doc;
  return info;
}

TargetDescription Description() {
  TargetDescription target;
  target.name = "liar";
  target.version = "1";
  target.recipe = {
      Key("optimizer.lr", ValueType::kNumber, 0.1, "Learning rate; above 1 it blows up."),
      Key("optimizer.clip_norm", ValueType::kNumber, 0.0, "Above 0, nothing blows up."),
      Key("optimizer.weight_decay", ValueType::kNumber, 0.0, "Moves the loss a little."),
      Key("loader.guard", ValueType::kBool, false, "Leaves bad batches out."),
      Key("unread", ValueType::kNumber, 0.0, "Nothing reads it."),
      Key("parallel.ranks", ValueType::kInt, 1, "Ranks."),
      Key("steps", ValueType::kInt, 30, "Steps."),
      Key("lies.script", ValueType::kString, "", "ARM[/SEED]:ACTION[@STEP] ..."),
  };
  target.signals.push_back({"loss", "nats", Scale::kLog, false, false, false, "The loss."});
  target.signals.push_back({"grad_norm", "", Scale::kLog, false, false, false, "Its slope."});
  target.signals.push_back({"samples", "", Scale::kLinear, true, false, false, "Samples seen."});
  target.events.push_back({"batch_skipped", {"step"}, "The guard left a batch out."});
  target.features = {"device:cpu", "fork-server"};
  target.faults.push_back(
      {.name = "recipe.high_lr",
       .doc = "Scales the learning rate.",
       .params = {{.name = "factor", .default_value = 15.0, .max = 1e6, .doc = "Of the rate."}},
       .amends = {{.key = "optimizer.lr", .op = Amendment::Op::kScale, .param = "factor"}},
       .has_trigger = false});
  target.faults.push_back({.name = "data.bad_batch", .doc = "A batch of NaN."});
  return target;
}

// What the script says of this run: action -> step, -1 where none is given.
std::map<std::string, int> ActionsOf(const std::string& script, const std::string& arm,
                                     std::uint64_t seed) {
  std::map<std::string, int> actions;
  std::istringstream entries(script);
  for (std::string entry; entries >> entry;) {
    const std::size_t colon = entry.find(':');
    if (colon == std::string::npos) throw std::runtime_error("no action in " + entry);
    std::string who = entry.substr(0, colon), action = entry.substr(colon + 1);
    if (const std::size_t slash = who.find('/'); slash != std::string::npos) {
      if (std::stoull(who.substr(slash + 1)) != seed) continue;
      who.resize(slash);
    }
    if (who != "*" && who != arm) continue;
    int step = -1;
    if (const std::size_t at = action.find('@'); at != std::string::npos) {
      step = std::stoi(action.substr(at + 1));
      action.resize(at);
    }
    actions[action] = step;
  }
  return actions;
}

class LyingRank {
 public:
  explicit LyingRank(Plan plan)
      : plan_(std::move(plan)),
        rank_(std::atoi(Variable("RANK").c_str())),
        actions_(
            ActionsOf(plan_.recipe.at("lies.script").get<std::string>(), plan_.arm, plan_.seed)),
        trace_(Variable("TRAINWRECK_TRACE") + "/rank" + std::to_string(rank_) + ".jsonl") {}

  int Run();

 private:
  bool Does(const std::string& action) const { return actions_.count(action) > 0; }
  bool DoesAt(const std::string& action, int step) const {
    const auto found = actions_.find(action);
    return found != actions_.end() && found->second == step;
  }
  double Number(const char* key) const { return plan_.recipe.at(key).get<double>(); }

  std::optional<int> EndAt(int step);
  void PerformFaults(int step);
  double LossAt(int step) const;
  void WriteStep(int step);

  Plan plan_;
  int rank_;
  std::map<std::string, int> actions_;
  TraceWriter trace_;
  int poisoned_at_ = -1;  // the step from which on the loss is NaN
};

// An exit code when the run ends here.
std::optional<int> LyingRank::EndAt(int step) {
  if (plan_.attempt > 0 && Does("once")) return std::nullopt;
  if (DoesAt("exit0", step)) {
    trace_.Write({{"t", "end"}, {"why", "completed"}, {"step", step}});
    return 0;
  }
  if (DoesAt("silent", step)) return 0;
  if (DoesAt("exit1", step)) return 1;
  if (DoesAt("exit3", step)) return 3;
  if (DoesAt("abort", step)) std::abort();
  if (DoesAt("kill", step)) raise(SIGKILL);
  if (DoesAt("stop", step)) raise(SIGSTOP);
  if (DoesAt("hang", step)) {
    for (;;) pause();
  }
  return std::nullopt;
}

void LyingRank::PerformFaults(int step) {
  for (const PlannedFault& fault : plan_.faults) {
    if (step != fault.trigger.at.value_or(5)) continue;
    if (Does("nofire")) continue;
    Json record = {{"t", "event"},
                   {"event", "fired"},
                   {"step", step},
                   {"id", fault.id},
                   {"fault", fault.fault},
                   {"before", 1.0},
                   {"after", Does("firesame") ? Json(1.0) : Json("nan")}};
    if (Does("fireempty")) {
      record.erase("before");
      record.erase("after");
    }
    trace_.Write(record);
    const bool guarded = plan_.recipe.at("loader.guard").get<bool>();
    if (guarded) trace_.Write({{"t", "event"}, {"event", "batch_skipped"}, {"step", step}});
    if (!guarded && !Does("harmless")) poisoned_at_ = step;
  }
  if (DoesAt("fires", step)) {
    trace_.Write({{"t", "event"},
                  {"event", "fired"},
                  {"step", step},
                  {"id", "hot"},
                  {"fault", "recipe.high_lr"},
                  {"before", 0.1},
                  {"after", 1.5}});
  }
}

double LyingRank::LossAt(int step) const {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto from = [&](const char* action) {
    const auto found = actions_.find(action);
    return found != actions_.end() && step >= found->second;
  };
  if (from("nan") || DoesAt("nan1", step)) return nan;
  if (poisoned_at_ >= 0 && step >= poisoned_at_) return nan;
  if (from("high")) return kFirstLoss;
  if (Does("flat")) return 1.0;
  if (Does("zero")) return 0.0;
  double lr = Number("optimizer.lr");
  if (Number("optimizer.clip_norm") > 0) lr = std::min(lr, 0.5);
  if (Does("healthy")) lr = 0.1;
  if (lr > kStableLr && step >= 5) return nan;
  if (Does("worse")) lr /= 4;
  if (lr > kStableLr) return kFirstLoss * (1 + step);
  const std::uint64_t seed = Does("same") ? 0 : plan_.seed;
  const double jitter = 1 + 1e-3 * static_cast<double>(seed) * std::sin(step + 1.0);
  return kFirstLoss * std::exp(-std::min(lr, 0.2) * step) * jitter *
             (1 + Number("optimizer.weight_decay")) +
         0.2;
}

void LyingRank::WriteStep(int step) {
  if (Does("nostep") || DoesAt("skip", step)) return;
  const double loss = LossAt(step);
  Json record = {{"t", "step"},
                 {"step", step},
                 {"time", 0.001 * step},
                 {"loss", EncodeNumber(loss)},
                 {"grad_norm", EncodeNumber(0.5 * loss + 0.1)},
                 {"samples", 8 * (step + 1)}};
  if (DoesAt("noloss", step)) record.erase("loss");
  if (DoesAt("text", step)) record["loss"] = "a lot";
  trace_.Write(record);
  if (DoesAt("garbage", step)) trace_.WriteLine("{\"t\":\"step\",");
  if (DoesAt("beyond", step)) {
    trace_.Write({{"t", "step"}, {"step", 100'000}, {"loss", 0.1}});
  }
}

int LyingRank::Run() {
  trace_.Write({{"t", "start"},
                {"rank", rank_},
                {"phase", plan_.phase},
                {"attempt", plan_.attempt},
                {"pid", getpid()}});
  const int steps = plan_.recipe.at("steps").get<int>();
  for (int step = 0; step < plan_.until.value_or(steps); ++step) {
    if (const auto code = EndAt(step)) return *code;
    PerformFaults(step);
    WriteStep(step);
  }
  if (const auto code = EndAt(steps)) return *code;
  if (!Does("noend")) trace_.Write({{"t", "end"}, {"why", "completed"}, {"step", steps}});
  return Does("late1") ? 1 : 0;
}

int RunRank() {
  std::ifstream file(Variable("TRAINWRECK_PLAN"));
  return LyingRank(PlanFromJson(Json::parse(file))).Run();
}

int Main(int argc, char** argv) {
  const std::string verb = argc > 1 ? argv[1] : "";
  if (verb == "--describe") {
    std::cout << ToJson(Description()).dump(1) << "\n";
    return 0;
  }
  if (verb == "--fork-server") {
    return ServeSpawns(std::stoi(Variable(kSpawnFdVariable)),
                       [](const SpawnRequest&) { return RunRank(); });
  }
  return RunRank();
}

}  // namespace
}  // namespace trainwreck

int main(int argc, char** argv) {
  try {
    return trainwreck::Main(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "liar: %s\n", error.what());
    return 1;
  }
}
