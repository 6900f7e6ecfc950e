// trainwreck timeline: stored runs as a timeline that Perfetto and chrome://tracing open.
#include "harness/report/timeline.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <utility>

#include "harness/cli/verb.h"
#include "harness/inspect/repeat.h"
#include "harness/protocol/trace_record.h"
#include "harness/session/session.h"
#include "harness/session/storage.h"
#include "harness/session/stored_trace.h"

namespace trainwreck {
namespace {

namespace fs = std::filesystem;

struct TimelineOptions {
  CommonOptions common;
  std::vector<std::string> runs;
  bool again = false;
  std::string output = "timeline.json";
};

constexpr char kMemoryByStage[] = "memory_by_stage";

constexpr std::size_t kMostBytes = 1 << 20;  // of a record, as everywhere

RankRecords ReadRecords(const fs::path& file) {
  RankRecords rank;
  std::ifstream lines(file);
  if (!lines) throw UsageError("cannot read " + file.string());
  for (std::string line; std::getline(lines, line);) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    Json record = line.size() > kMostBytes ? Json() : ParseRecord(line);
    if (record.is_object()) {
      rank.records.push_back(std::move(record));
    } else {
      ++rank.unreadable;
    }
  }
  return rank;
}

// rank<N>.jsonl: N; launcher.jsonl: -1; empty: another file.
std::optional<int> RankOf(const std::string& name) {
  if (name == "launcher.jsonl") return -1;
  for (int rank = 0; rank < 4096; ++rank) {
    if (name == "rank" + std::to_string(rank) + ".jsonl") return rank;
  }
  return std::nullopt;
}

TimelineRun ReadRun(const std::string& name, const std::string& folder) {
  TimelineRun run{.name = name, .ranks = {}};
  for (const auto& entry : fs::directory_iterator(folder)) {
    const auto rank = RankOf(entry.path().filename().string());
    if (rank && entry.is_regular_file()) run.ranks[*rank] = ReadRecords(entry.path());
  }
  if (run.ranks.empty() || run.ranks.rbegin()->first < 0) {
    throw UsageError("'" + folder + "' holds no trace: there is no rank0.jsonl");
  }
  return run;
}

// The same run, made again with the memory of each stage. Empty when interrupted.
std::optional<TimelineRun> Again(const std::string& name, const std::string& folder,
                                 const Session& session) {
  Run run = RunToRepeat(LoadStoredTrace(folder), name);
  run.plan.record.push_back(kMemoryByStage);
  std::optional<TimelineRun> timeline;
  RepeatAside(run, session,
              [&](const RunResult& result) { timeline = ReadRun(name, result.folder); });
  return timeline;
}

int TimelineVerb(const TimelineOptions& options) {
  std::vector<TimelineRun> runs;
  std::optional<Session> session;
  if (options.again) {
    session = OpenSession(options.common, /*builds=*/true);
    if (session->description.FindEvent(kMemoryByStage) == nullptr) {
      throw UsageError("--again: the target has no event `memory_by_stage`");
    }
  }
  for (const std::string& name : options.runs) {
    const std::string folder = fs::is_directory(name) ? name : FindRunFolder(name);
    if (!session) {
      runs.push_back(ReadRun(name, folder));
    } else if (auto again = Again(name, folder, *session)) {
      runs.push_back(std::move(*again));
    } else {
      return kExitInterrupted;
    }
  }
  const Timeline timeline = MakeTimeline(runs);
  const std::string text =
      timeline.json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  if (options.output == "-") {
    std::cout << text;
  } else {
    WriteWholeFile(options.output, text);
  }
  std::ostream& said = options.output == "-" ? std::cerr : std::cout;
  const TimelineCounts& counts = timeline.counts;
  said << (options.output == "-" ? "" : "wrote " + options.output + ": ") << counts.steps
       << " steps, " << counts.collectives << " collectives (" << counts.flows
       << " matched over ranks), " << counts.events << " events, " << counts.memory
       << " points of memory\n";
  for (const std::string& sentence : timeline.left_out) said << "left out: " << sentence << "\n";
  return kExitPassed;
}

void Declare(VerbArguments& arguments, TimelineOptions& options) {
  arguments
      .Positional("RUN", options.runs,
                  "Folders of stored runs, or ids of runs of the newest invocation that kept them")
      .Required();
  arguments.Flag("--again", options.again,
                 "Repeat the runs with the memory in use as each stage of a step begins, by owner");
  arguments.Option("-o,--output", options.output, "Where the timeline goes; -: standard output",
                   "FILE");
  arguments.Common(options.common);
}

const VerbRegistration registration("timeline", "Draw stored runs for Perfetto (Chrome's format)",
                                    kStored, Declare, TimelineVerb);

}  // namespace
}  // namespace trainwreck
