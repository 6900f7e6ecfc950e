// trainwreck layers: a stored run's layers at one step, in one table.
#include <fmt/format.h>

#include <iostream>
#include <utility>

#include "harness/cli/table.h"
#include "harness/cli/verb.h"
#include "harness/inspect/layer_table.h"
#include "harness/inspect/repeat.h"
#include "harness/report/text.h"
#include "harness/session/stored_trace.h"
#include "harness/text/words.h"

namespace trainwreck {
namespace {

struct LayersOptions {
  CommonOptions common;
  std::string run;
  std::optional<int> step;
  int rank = 0;
  bool again = false;
  std::string format = "text";
};

std::string Cell(const std::optional<double>& value) {
  return value ? fmt::format("{:.3g}", *value) : "";
}

std::string NonfiniteCell(const LayerRow& row) {
  std::string text;
  for (const auto& [family, count] : row.nonfinite) {
    text += fmt::format("{}{} {:g}", text.empty() ? "" : ", ", family, count);
  }
  return text;
}

// Columns that no row fills are left out.
void PrintLayers(const LayerTable& table) {
  std::vector<std::vector<std::string>> rows = {{"module", "tensors", "params", "gradient",
                                                 "update", "upd/par", "act mean", "act std", "dead",
                                                 "saturated", "nonfinite"}};
  for (const LayerRow& row : table.rows) {
    rows.push_back({row.module, row.tensors > 0 ? std::to_string(row.tensors) : "",
                    Cell(row.param_norm), Cell(row.grad_norm), Cell(row.update_norm),
                    Cell(row.update_share()), Cell(row.act_mean), Cell(row.act_std), Cell(row.dead),
                    Cell(row.saturated), NonfiniteCell(row)});
  }
  for (std::size_t column = rows[0].size(); column-- > 1;) {
    bool is_empty = true;
    for (std::size_t row = 1; row < rows.size(); ++row) is_empty &= rows[row][column].empty();
    if (!is_empty) continue;
    for (auto& row : rows) row.erase(row.begin() + static_cast<std::ptrdiff_t>(column));
  }
  PrintTable(std::cout, rows);
}

// What the table could have had; and what the target does not measure at all.
void PrintMissing(const LayerTable& table, const TargetDescription* target, bool again) {
  std::vector<std::string> askable, unknown;
  for (const std::string& signal : table.missing) {
    const bool is_known = target == nullptr || target->FindSignal(signal) != nullptr;
    (is_known ? askable : unknown).push_back(signal + "{*}");
  }
  if (!askable.empty()) {
    std::cout << "# not recorded: " << Join(askable)
              << (again ? "; the run, made again with them, does not get so far\n"
                        : "; --again repeats the run with them, or name them in a formula of the "
                          "scenario\n");
  }
  if (!unknown.empty()) std::cout << "# the target has no signal " << Join(unknown) << "\n";
}

// The trace of the same run with all signals of the table. Empty when interrupted.
std::optional<RunTrace> Again(const StoredTrace& stored, const LayersOptions& options) {
  const Session session = OpenSession(options.common, /*builds=*/true);
  std::vector<std::string> more;
  for (const std::string& signal : LayerSignals()) {
    if (session.description.FindSignal(signal) != nullptr) more.push_back(signal + "{*}");
  }
  return RecordAgain(stored, options.run, more, session,
                     options.format == "json" ? std::cerr : std::cout);
}

int LayersVerb(const LayersOptions& options) {
  const std::string folder = FindRunFolder(options.run);
  const StoredTrace stored = LoadStoredTrace(folder);
  RequireRank(stored, options.rank);
  RunTrace trace = stored.trace;
  if (options.again) {
    auto again = Again(stored, options);
    if (!again) return kExitInterrupted;
    trace = std::move(*again);
  }
  const LayerTable table = LayersAt(trace, options.rank, options.step);
  if (options.format == "json") {
    std::cout << ToJson(table).dump(1) << "\n";
    return table.rows.empty() ? kExitInconclusive : kExitPassed;
  }
  const std::string name = stored.run ? stored.run->id : folder;
  const auto target = FindStoredDescription(folder);
  if (table.rows.empty()) {
    std::cout << "# no layers of " << name << " are recorded"
              << (options.step ? " at step " + std::to_string(*options.step) : "") << "\n";
  } else {
    const Series* loss = trace.Find("loss", options.rank);
    std::cout << "# layers of " << name << ", rank " << options.rank << ", step " << table.step
              << (loss != nullptr && loss->Has(table.step)
                      ? ", loss " + FormatNumber(loss->values[table.step])
                      : "")
              << "\n";
    PrintLayers(table);
  }
  PrintMissing(table, target ? &*target : nullptr, options.again);
  return table.rows.empty() ? kExitInconclusive : kExitPassed;
}

void Declare(VerbArguments& arguments, LayersOptions& options) {
  arguments
      .Positional("RUN", options.run, "Folder of a run, or its id as nan/lr-too-high/sgd/fault/3")
      .Required();
  arguments.Option("--step", options.step, "The step [the last that has layers]", "N")
      .Between(0, 1 << 30);
  arguments.Option("--rank", options.rank, "The rank [0]", "K").Between(0, 4096);
  arguments.Flag("--again", options.again,
                 "Repeat the run with all signals of layers, and compare the rest bit by bit");
  arguments.Option("--format", options.format, "text or json [text]", "FORMAT")
      .OneOf({"text", "json"});
  arguments.Common(options.common);
}

const VerbRegistration registration("layers", "Show a stored run's layers at one step", kStored + 1,
                                    Declare, LayersVerb);

}  // namespace
}  // namespace trainwreck
