// What must hold in every sound run, whatever its scenario: the formulas of DIR/invariants.yaml,
// where DIR is the folder of the scenarios. The judge reads them in every control, remedy and twin
// arm, over the runs that are made anyway. docs/guide/invariants.md describes the file.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/formula/formula.h"
#include "harness/protocol/description.h"
#include "harness/protocol/plan.h"
#include "harness/yaml/diagnostic.h"

namespace trainwreck {

inline constexpr char kInvariantsFile[] = "invariants.yaml";
bool IsInvariantsFile(const std::string& path);  // by its name, which no scenario can have

// A condition on one recipe key: it has one of these values, or is a number beyond this bound.
struct KeyCondition {
  std::string key;
  std::vector<Json> values;
  std::string op;  // "<", "<=", ">", ">="; empty: it is about values
  double bound = 0;
};

struct Invariant {
  std::string name;
  std::string title;  // what holds: "A frozen parameter is not updated"
  std::string part;   // of a training stack, to look at where it does not: "optimizer"
  std::vector<KeyCondition> given;
  std::vector<std::string> features;  // of the target
  formula::Formula formula;           // with recipe(KEY) for what the run was asked for
  Position position;
  std::string file;
};

struct InvariantsFile {
  std::shared_ptr<const std::vector<Invariant>> invariants;  // without those in error
  std::vector<Diagnostic> errors;
};

// Reads the invariants. Without a file there are no invariants and no errors. An invariant whose
// signals or keys the target lacks is no error: it is not checked.
InvariantsFile LoadInvariants(const std::string& scenarios_root, const TargetDescription& target);
InvariantsFile ParseInvariants(const std::string& text, const std::string& file,
                               const TargetDescription& target);

// The first thing that the invariant needs and the target lacks: "signal:applied_grad_norm",
// "recipe:optimizer.clip_norm", "feature:phases". Empty: the target has all.
std::string LackingFor(const Invariant& invariant, const TargetDescription& target);

// The formula with the numbers of this recipe; empty: the invariant does not apply to such a run.
// `changing`: keys that do not keep their value through the run.
std::optional<formula::Formula> AskedOf(const Invariant& invariant, const Recipe& recipe,
                                        const Recipe& changing, const TargetDescription& target);

}  // namespace trainwreck
