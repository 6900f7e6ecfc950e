// Faults of a machine by commands of the user's own: a slow link by `tc`, a cut one by `ip`, a full
// disk by `fallocate`. A probe, which prints what the command changes, is the evidence.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/protocol/json.h"

namespace trainwreck {

struct NodeCommand {
  std::string run;     // of the shell
  std::string undo;    // empty: there is nothing to undo
  std::string probe;   // its output before and after is what the command changed
  double seconds = 0;  // after which it is undone; 0: when the run has ended
};
Json ToJson(const NodeCommand& command);
NodeCommand NodeCommandFromJson(const Json& json);  // throws Json::exception

struct NodeAnswer {
  std::string before, after;  // of the probe
  int status = 0;             // of the command
  std::string words;          // that it printed
};

// The commands of one rank on this machine. What has to be undone is in a file of the run's folder
// until it was: who outlives this process does it when this one was killed (UndoLeft).
class NodeCommands {
 public:
  using Clock = std::chrono::steady_clock;

  NodeCommands(const std::string& run_folder, int rank);
  ~NodeCommands() { UndoAll(); }
  NodeCommands(const NodeCommands&) = delete;
  NodeCommands& operator=(const NodeCommands&) = delete;

  NodeAnswer Run(const NodeCommand& command);  // takes 10 s at most, and so does each part
  void UndoDue(Clock::time_point now = Clock::now());
  void UndoAll() { UndoDue(Clock::time_point::max()); }

 private:
  void WriteFile() const;

  std::string file_;
  std::vector<std::pair<Clock::time_point, std::string>> undo_;
};

// Does what processes that were killed have left to undo on this machine: those of all ranks, or
// that of one.
void UndoLeft(const std::string& run_folder, std::optional<int> rank = std::nullopt);

std::string HostName();

}  // namespace trainwreck
