// Merging the reports of shards, for the verbs that have shards.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/session/options.h"

namespace trainwreck {

struct MergeOptions {
  CommonOptions common;
  std::vector<std::string> folders;
  std::string output;
  std::vector<std::string> require;
  std::optional<int> max_skips;
  std::vector<ReportRequest> reports;
  bool html = true;
  std::string history;
};

// Merges, prints, writes the reports and the history, and returns the exit status. `why` are
// reasons for shards that are missing, by their number. Throws UsageError for shards that do not
// belong together.
int MergeShards(const MergeOptions& options, const std::map<int, std::string>& why);

}  // namespace trainwreck
