// The layers of a stored run at one step, from the signals of single modules and parameters that
// its trace holds: "act_std{blocks.0.mlp}", "grad_norm{blocks.0.mlp.fc.weight}".
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/protocol/json.h"
#include "harness/protocol/run_trace.h"

namespace trainwreck {

// One module. What is not recorded is empty.
struct LayerRow {
  std::string module;  // "blocks.0.mlp.fc"; a parameter of no module has a row of its own
  int tensors = 0;     // its own parameters, as far as they are recorded
  std::optional<double> param_norm, grad_norm, update_norm;  // 2-norms over these parameters
  std::optional<double> act_mean, act_std;                   // of the output
  std::optional<double> dead;               // share of the output that is exactly 0
  std::optional<double> saturated;          // share of it of magnitude 0.99 or more
  std::map<std::string, double> nonfinite;  // "act", "grad", "param", "update": elements, above 0

  // The size of the update against that of the parameters.
  std::optional<double> update_share() const;
};

struct LayerTable {
  int step = -1;  // -1: no step has a signal of a module
  std::vector<LayerRow> rows;
  std::vector<std::string> missing;  // signals of the table that no row has: "act_std"
};

// The signals of the table: "param_norm", "act_std", ...
const std::vector<std::string>& LayerSignals();

// The table of a rank at a step; without one, at the last that has any of these signals. Rows are
// in the order of their names, in which blocks.2 comes before blocks.10.
LayerTable LayersAt(const RunTrace& trace, int rank, std::optional<int> step);

Json ToJson(const LayerTable& table);

}  // namespace trainwreck
