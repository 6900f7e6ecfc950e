#include "harness/cli/verbs/glossary.h"

#include "harness/outcome/outcome.h"

namespace trainwreck {

std::vector<GlossaryEntry> Glossary() {
  std::vector<GlossaryEntry> entries;
  for (const VerdictInfo& verdict : AllVerdicts()) {
    entries.push_back({"verdict", verdict.name, verdict.meaning, verdict.remedy});
  }
  for (const ClassInfo& info : AllClasses()) {
    entries.push_back({"verdict class", info.name, info.meaning, info.remedy});
  }
  for (const ExitInfo& exit : AllExitStatuses()) {
    entries.push_back({"exit status", std::to_string(exit.status), exit.meaning, ""});
  }
  return entries;
}

}  // namespace trainwreck
