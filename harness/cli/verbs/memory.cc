// trainwreck memory: whose a stored run's memory was at its peak, and whether it still grows.
#include <fmt/format.h>

#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "harness/cli/table.h"
#include "harness/cli/verb.h"
#include "harness/inspect/memory_report.h"
#include "harness/inspect/repeat.h"
#include "harness/session/session.h"
#include "harness/session/stored_trace.h"

namespace trainwreck {
namespace {

struct MemoryOptions {
  CommonOptions common;
  std::string run;
  int rank = 0;
  bool again = false;
  std::string format = "text";
};

std::string GrowthText(const std::optional<statistics::Estimate>& growth) {
  if (!growth) return "not known";
  if (growth->lo == growth->hi) return BytesText(growth->value);
  return fmt::format("{} ({} to {})", BytesText(growth->value), BytesText(growth->lo),
                     BytesText(growth->hi));
}

void PrintParts(const MemoryReport& use) {
  if (use.parts.empty()) return;
  std::vector<std::vector<std::string>> rows = {
      {"owner", "at the peak", "share", "growth per step (95%)"}};
  for (const MemoryPart& part : use.parts) {
    rows.push_back({part.owner, BytesText(part.at_peak),
                    fmt::format("{:.0f}%", use.peak > 0 ? 100 * part.at_peak / use.peak : 0),
                    GrowthText(part.growth)});
  }
  PrintTable(std::cout, rows);
}

void PrintBlocks(const MemoryReport& use) {
  double all = use.peak;
  if (use.out_of_memory) all = use.out_of_memory->fields.value("allocated_bytes", 0.0);
  const std::string text = BlocksText(use.blocks, all);
  if (text.empty()) return;
  std::cout << "# activations" << (use.out_of_memory ? " at the end" : "") << ": " << text << "\n";
}

void PrintSites(const MemoryReport& use) {
  const auto sites = LargestSites(use);
  if (sites.empty()) return;
  double all = 0;
  for (const auto& [site, bytes] : use.sites) all += bytes;
  std::vector<std::vector<std::string>> rows = {
      {"allocated by", use.out_of_memory ? "at the end" : "at the peak", "share"}};
  for (const auto& [site, bytes] : sites) {
    rows.push_back({site, BytesText(bytes), fmt::format("{:.0f}%", 100 * bytes / all)});
  }
  PrintTable(std::cout, rows);
}

void PrintTrend(const MemoryReport& use) {
  const std::string window = fmt::format("steps {} to {}", use.settled_from, use.settled_to);
  if (!use.growth) {
    std::cout << "# growth: not known from " << window << ": there are too few\n";
  } else if (use.growth->lo > 0) {
    std::cout << "# grows in " << window << ", by " << GrowthText(use.growth) << " a step\n";
  } else {
    std::cout << "# plateau in " << window << ": grows by at most "
              << BytesText(std::max(0.0, use.growth->hi)) << " a step\n";
  }
}

void PrintOutOfMemory(const MemoryReport& use) {
  const Event& event = *use.out_of_memory;
  const Json& fields = event.fields;
  std::cout << "# ran out of memory at step " << event.step;
  if (fields.contains("stage")) std::cout << ", stage " << fields["stage"].get<std::string>();
  const auto bytes = [&](const char* name) { return BytesText(fields[name].get<double>()); };
  if (fields.contains("requested_bytes") && fields.contains("allocated_bytes") &&
      fields.contains("limit_bytes")) {
    std::cout << ": " << bytes("requested_bytes") << " more than the " << bytes("allocated_bytes")
              << " in use exceed " << bytes("limit_bytes");
  }
  if (fields.contains("owner") && fields.contains("owner_share")) {
    std::cout << fmt::format(", {:.0f}% of them {}", 100 * fields["owner_share"].get<double>(),
                             fields["owner"].get<std::string>());
  }
  if (fields.contains("site") && fields.contains("site_at") && fields.contains("site_share")) {
    std::cout << fmt::format(
        ", {:.0f}% allocated by {} ({})", 100 * fields["site_share"].get<double>(),
        fields["site"].get<std::string>(), fields["site_at"].get<std::string>());
  }
  std::cout << "\n";
}

int StatusOf(const MemoryReport& use) {
  switch (use.verdict()) {
    case MemoryVerdict::kUnknown:
      return kExitInconclusive;
    case MemoryVerdict::kPlateau:
      return kExitPassed;
    case MemoryVerdict::kGrows:
    case MemoryVerdict::kRanOut:
      return kExitFailed;
  }
  return kExitInconclusive;
}

// What a target can tell of its memory and does not unless it is asked.
std::vector<std::string> MoreOfMemory(const TargetDescription& target) {
  std::vector<std::string> more;
  for (const SignalInfo& signal : target.signals) {
    if (signal.name.starts_with("memory_")) more.push_back(signal.name);
  }
  if (target.FindEvent("memory_blocks") != nullptr) more.push_back("memory_blocks");
  return more;
}

int MemoryVerb(const MemoryOptions& options) {
  const std::string folder = FindRunFolder(options.run);
  const StoredTrace stored = LoadStoredTrace(folder);
  RequireRank(stored, options.rank);
  RunTrace trace = stored.trace;
  if (options.again) {
    const Session session = OpenSession(options.common, /*builds=*/true);
    auto again = RecordAgain(stored, options.run, MoreOfMemory(session.description), session,
                             options.format == "json" ? std::cerr : std::cout);
    if (!again) return kExitInterrupted;
    trace = std::move(*again);
  }
  const MemoryReport use = MemoryOf(trace, options.rank);
  if (options.format == "json") {
    std::cout << ToJson(use).dump(1) << "\n";
    return StatusOf(use);
  }
  std::cout << "# memory of " << (stored.run ? stored.run->id : folder) << ", rank " << options.rank
            << "\n";
  if (use.signal.empty()) {
    std::cout << "# not recorded: memory_peak_bytes, or memory_bytes; name it in a formula\n";
  } else {
    const std::string shares = SharesText(use);
    std::cout << "# peak " << BytesText(use.peak) << " at step " << use.peak_step
              << (shares.empty() ? " of " + use.signal + "; its owners are not recorded"
                                 : ": " + shares)
              << "\n";
    PrintParts(use);
    if (!use.out_of_memory) PrintBlocks(use);
    PrintTrend(use);
  }
  if (use.out_of_memory) {
    PrintOutOfMemory(use);
    PrintBlocks(use);
  }
  PrintSites(use);
  return StatusOf(use);
}

void Declare(VerbArguments& arguments, MemoryOptions& options) {
  arguments.Positional("RUN", options.run, "Folder of a run, or its id as oom/activations/fault/0")
      .Required();
  arguments.Option("--rank", options.rank, "The rank [0]", "K").Between(0, 4096);
  arguments.Flag("--again", options.again,
                 "Repeat the run with all that the target can tell of its memory");
  arguments.Option("--format", options.format, "text or json [text]", "FORMAT")
      .OneOf({"text", "json"});
  arguments.Common(options.common);
}

const VerbRegistration registration("memory", "Show whose a stored run's memory was", kStored + 2,
                                    Declare, MemoryVerb);

}  // namespace
}  // namespace trainwreck
