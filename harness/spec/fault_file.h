// Faults of the recipe that files describe (`kind: Fault`): those that come with trainwreck
// (faults/recipe.yaml) and those of users, below the folder of their scenarios. The harness
// performs them, so a target needs nothing but the keys. docs/guide/scenario.md describes the form.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/spec/scenario.h"

namespace trainwreck {

// Whether a document of the file says `kind: Fault`, so that it is no scenario.
bool IsFaultFile(const std::string& path);

// The text of faults/recipe.yaml, which is part of this program.
const std::string& SuiteFaults();

// The role for which the target lacks a key, so that it cannot have this fault of
// faults/recipe.yaml ("clip_norm"); empty: that is not the reason.
std::string RoleLackedForFault(const std::string& fault, const TargetDescription& target);

// JSON Schema (draft 7) of such a document for this target, for editors.
Json FaultFileSchema(const TargetDescription& target);

// Puts the faults of files into a description, beside the target's own.
class FaultCatalogue {
 public:
  explicit FaultCatalogue(TargetDescription& target);

  // Adds the faults of faults/recipe.yaml whose keys the target has with suitable types. A fault
  // that the target describes itself stays as it is.
  void AddSuite();

  // Adds all faults of a user's file, and reports all of its errors. Faults for another target are
  // left out, as scenarios are: see LoadOptions.
  std::vector<Diagnostic> AddFile(const std::string& path, const LoadOptions& options = {});
  std::vector<Diagnostic> AddText(const std::string& text, const std::string& file,
                                  const LoadOptions& options = {});

 private:
  TargetDescription& target_;
  std::map<std::string, std::string> places_;  // of each fault: "stands in a.yaml:3"
};

}  // namespace trainwreck
