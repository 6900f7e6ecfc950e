// trainwreck replay and inspect: one step of a stored run made again; and the batch that it works
// with.
#include "harness/inspect/replay.h"

#include <fmt/format.h>

#include <iostream>
#include <random>
#include <utility>

#include "harness/cli/table.h"
#include "harness/cli/verb.h"
#include "harness/report/text.h"
#include "harness/text/words.h"

namespace trainwreck {
namespace {

constexpr std::size_t kValuesShown = 16;
constexpr std::size_t kSamplesShown = 4;

struct ReplayOptions {
  CommonOptions common;
  std::string run;
  std::optional<int> step;
  bool random = false;
  int rank = 0;
  bool all = false;
};

int StepOf(const RunTrace& trace, const ReplayOptions& options) {
  const int last = std::max(0, trace.last_step(0));
  if (options.random && options.step) throw UsageError("--random draws the step: leave out --step");
  if (options.random) {
    std::random_device source;
    return std::uniform_int_distribution<int>(0, last)(source);
  }
  return options.step.value_or(FailingStep(trace).value_or(last));
}

std::optional<Replay> MakeReplay(const ReplayOptions& options) {
  const std::string folder = FindRunFolder(options.run);
  const StoredTrace stored = LoadStoredTrace(folder);
  if (!stored.run) throw UsageError("'" + folder + "' has no run.json: its plan is not known");
  RequireRank(stored, options.rank);
  const Session session = OpenSession(options.common, /*builds=*/true);
  const int step = StepOf(stored.trace, options);
  std::cout << "# step " << step << " of " << stored.run->id << ", rank " << options.rank << "\n";
  auto replay = ReplayStep(stored, folder, step, session);
  if (replay && replay->from_saved_state) {
    std::cout << "# from the state that the run saved at this step\n";
  } else if (replay && replay->saved_state_differs) {
    std::cout << "# made again from the beginning: the state that the run saved at this step leads "
                 "to other bits\n";
  }
  if (replay && replay->checkpoint_differs) {
    std::cout
        << "# made again in one piece: after a checkpoint the step has other bits or another end, "
           "so the run carries something from step to step that its checkpoints lack\n";
  }
  return replay;
}

void PrintSignals(const Replay& replay, const ReplayOptions& options) {
  std::vector<std::vector<std::string>> rows = {{"signal", "stored", "now", ""}};
  for (const ReplayedSignal& one : replay.signals) {
    const bool is_main =
        one.signal == "loss" || one.signal == "grad_norm" || one.signal == "lr" || !one.same;
    if (one.rank != options.rank || !(is_main || options.all)) continue;
    rows.push_back({one.signal, fmt::format("{:.17g}", one.stored), fmt::format("{:.17g}", one.now),
                    one.same ? "" : "differs"});
  }
  if (rows.size() > 1) PrintTable(std::cout, rows);
}

void PrintFailure(const Replay& replay, int rank) {
  const auto text = [](const Json& fields, const char* name) {
    if (!fields.contains(name)) return std::string();
    return fields[name].is_string() ? fields[name].get<std::string>() : fields[name].dump();
  };
  if (const Event* first = replay.EventOf("first_nonfinite", rank)) {
    const Json& fields = first->fields;
    std::cout << "first " << text(fields, "kind") << ": stage " << text(fields, "stage")
              << ", module " << text(fields, "module") << ", tensor " << text(fields, "tensor")
              << ", " << text(fields, "count") << " of " << text(fields, "elements") << " elements";
    const std::string op = text(fields, "backward_op");
    std::cout << (op.empty() ? "" : "; first backward op with it: " + op) << "\n";
    if (const Json stack = fields.value("forward_stack", Json::array()); !stack.empty()) {
      std::cout << "  which is of the forward pass's "
                << Join(stack.get<std::vector<std::string>>(), " > ") << "\n";
    }
  }
  if (const Event* exception = replay.EventOf("exception", rank)) {
    std::cout << "exception: " << text(exception->fields, "what") << "\n";
  }
}

std::string DeathsText(const Deaths& deaths) {
  std::vector<std::string> ranks;
  for (const auto& [rank, stage] : deaths) {
    ranks.push_back("rank " + std::to_string(rank) + " in stage " + stage);
  }
  return ranks.empty() ? "no rank" : Join(ranks, ", ");
}

std::string EndOf(const Replay& replay) {
  return std::string("the replay ") + ToString(replay.end) +
         (replay.detail.empty() ? "" : ": " + replay.detail);
}

void PrintNoRecord(const Replay& replay) {
  std::cout << "# the stored run has no record of this step to compare with; " << EndOf(replay)
            << "\n";
}

// What the replay shows: as in the stored run or not, or that there is nothing to compare with.
int ReplayVerb(const ReplayOptions& options) {
  const auto replay = MakeReplay(options);
  if (!replay) return kExitInterrupted;
  PrintSignals(*replay, options);
  PrintFailure(*replay, options.rank);
  if (!replay->has_record()) {
    PrintNoRecord(*replay);
    return kExitInconclusive;
  }
  if (!replay->signals.empty()) {
    std::cout << "# " << replay->signals.size() - replay->different() << " of "
              << replay->signals.size() << " signals have the same bits\n";
  }
  if (replay->deaths != replay->stored_deaths) {
    std::cout << "# the stored run failed otherwise: " << DeathsText(replay->stored_deaths)
              << "; now " << DeathsText(replay->deaths) << " (" << EndOf(*replay) << ")\n";
  } else if (!replay->deaths.empty()) {
    std::cout << "# failed as in the stored run: " << DeathsText(replay->deaths) << "\n";
  }
  return replay->is_same() ? kExitPassed : kExitFailed;
}

std::string ValuesText(const Json& values) {
  std::string text;
  for (std::size_t i = 0; i < std::min(values.size(), kValuesShown); ++i) {
    const Json& value = values[i];
    text += (text.empty() ? "" : " ") + (value.is_number_float()
                                             ? fmt::format("{:.4g}", value.get<double>())
                                         : value.is_string() ? value.get<std::string>()
                                                             : value.dump());
  }
  return text + (values.size() > kValuesShown ? " ..." : "");
}

void PrintTensors(const Json& tensors) {
  std::vector<std::vector<std::string>> rows = {
      {"tensor", "shape", "type", "least", "mean", "largest", "not finite"}};
  const auto number = [](const Json& tensor, const char* name) {
    return tensor.contains(name) ? FormatNumber(tensor[name].get<double>()) : "";
  };
  for (const auto& [name, tensor] : tensors.items()) {
    rows.push_back({name, tensor.value("shape", Json()).dump(), tensor.value("dtype", ""),
                    number(tensor, "min"), number(tensor, "mean"), number(tensor, "max"),
                    tensor.value("nonfinite", Json(0)).dump()});
  }
  PrintTable(std::cout, rows);
}

void PrintBatch(const Json& batch, bool all) {
  PrintTensors(batch.value("tensors", Json::object()));
  const Json samples = batch.value("samples", Json::array());
  const std::size_t shown = all ? samples.size() : std::min(samples.size(), kSamplesShown);
  for (std::size_t i = 0; i < shown; ++i) {
    std::cout << "sample " << samples[i].value("id", Json()).dump() << "\n";
    for (const auto& [name, value] : samples[i].items()) {
      if (name == "id") continue;
      std::cout << "  " << fmt::format("{:<10}", name)
                << (value.is_array() ? ValuesText(value) : value.dump()) << "\n";
    }
  }
  const std::size_t more = samples.size() - shown + batch.value("left_out", std::size_t{0});
  if (more > 0) std::cout << "# and " << more << " more samples\n";
}

int InspectVerb(const ReplayOptions& options) {
  const auto replay = MakeReplay(options);
  if (!replay) return kExitInterrupted;
  const std::vector<const Event*> batches = replay->Batches(options.rank);
  if (batches.empty()) {
    std::cout << (replay->reports_batches
                      ? "# this rank drew no batch in the step\n"
                      : "# the target does not report batches: it has no event `batch`\n");
    return kExitInconclusive;
  }
  for (const Event* batch : batches) {
    if (batches.size() > 1) {
      std::cout << "# micro-batch " << batch->fields.value("micro_batch", Json()).dump() << "\n";
    }
    PrintBatch(batch->fields, options.all);
  }
  if (const Event* bad = replay->EventOf("nonfinite_batch", options.rank)) {
    std::cout << "# not finite from here on; samples at fault: "
              << bad->fields.value("samples", Json::array()).dump() << "\n";
  }
  if (!replay->has_record()) {
    PrintNoRecord(*replay);
    return kExitInconclusive;
  }
  return replay->is_same() ? kExitPassed : kExitFailed;
}

void DeclareCommon(VerbArguments& arguments, ReplayOptions& options) {
  arguments
      .Positional("RUN", options.run, "Folder of a run, or its id as nan/lr-too-high/sgd/fault/3")
      .Required();
  arguments.Option("--step", options.step, "The step [the one that failed, else the last]", "N")
      .Between(0, 1 << 30);
  arguments.Option("--rank", options.rank, "The rank [0]", "K").Between(0, 4096);
  arguments.Common(options.common);
}

void DeclareReplay(VerbArguments& arguments, ReplayOptions& options) {
  DeclareCommon(arguments, options);
  arguments.Flag("--all", options.all, "Show all signals of the step");
}

void DeclareInspect(VerbArguments& arguments, ReplayOptions& options) {
  DeclareCommon(arguments, options);
  arguments.Flag("--random", options.random, "A step that is drawn from those of the run");
  arguments.Flag("--all", options.all, "Show all samples that the target reports");
}

const VerbRegistration replay_registration(
    "replay", "Repeat one step of a stored run, and say where it fails", kStored + 3, DeclareReplay,
    ReplayVerb);
const VerbRegistration inspect_registration("inspect", "Show the batch of a step of a stored run",
                                            kStored + 4, DeclareInspect, InspectVerb);

}  // namespace
}  // namespace trainwreck
