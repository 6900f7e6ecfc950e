// trainwreck swarm: random combinations of faults, and what must hold whatever is injected.
#include "harness/swarm/swarm.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>

#include "harness/cli/verb.h"
#include "harness/protocol/parse_json.h"
#include "harness/session/chosen.h"
#include "harness/session/storage.h"

namespace trainwreck {
namespace {

constexpr int kAtOnce = 24;  // combinations whose results are written together

struct SwarmVerbOptions {
  CommonOptions common;
  SelectionOptions selection;
  int seed = 0;
  int runs = 100;
  int cores = 0;
  double budget_s = 60;
  std::optional<int> only;
  std::vector<int> with;
  std::vector<std::string> set;
  std::string output;
};

// The records that an earlier call left in the folder, by number. Throws ConfigurationError where
// they are of another seed.
std::map<int, Json> ReadRecords(const std::string& file, int seed) {
  std::map<int, Json> records;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const Json json = TryParseJson(line);
    if (!json.is_object() || !json.contains("number")) continue;  // cut off
    if (json.value("seed", -1) != seed) {
      throw ConfigurationError(file + " is of seed " + json["seed"].dump() +
                               ": give another --output, or --seed " + json["seed"].dump());
    }
    records[json["number"].get<int>()] = json;
  }
  return records;
}

Json Summarise(const std::map<int, Json>& records, int seed) {
  Json summary = {{"schema", "trainwreck/swarm"}, {"seed", seed}, {"combinations", records.size()}};
  std::map<std::string, int> ends, fired, idle, broken, ranks, faults;
  int compared = 0, restarted = 0;
  Json failing = Json::array();
  for (const auto& [number, record] : records) {
    ++ends[record.at("end").get<std::string>()];
    ++ranks[record.at("recipe").value("parallel.ranks", Json(1)).dump()];
    ++faults[std::to_string(record.at("faults").size())];
    compared += record.at("is_compared").get<bool>() ? 1 : 0;
    restarted += record.at("restarts").get<int>() > 0 ? 1 : 0;
    for (const Json& name : record.at("fired")) ++fired[name.get<std::string>()];
    for (const Json& name : record.at("idle")) ++idle[name.get<std::string>()];
    for (const Json& finding : record.at("findings"))
      ++broken[finding.at("rule").get<std::string>()];
    if (!record.at("findings").empty()) failing.push_back(record);
  }
  summary["ends"] = ends;
  summary["ranks"] = ranks;
  summary["faults"] = faults;
  summary["fired"] = fired;
  summary["idle"] = idle;
  summary["compared"] = compared;
  summary["restarted"] = restarted;
  summary["broken"] = broken;
  summary["failing"] = failing;
  return summary;
}

void PrintFailing(const SwarmRecord& record) {
  if (record.findings.empty()) return;
  std::cout << "FAIL  combination " << record.drawn.number << "\n";
  for (const BrokenRule& finding : record.findings) {
    std::cout << "  " << finding.rule << ": " << finding.text << "\n";
  }
  std::cout << "  with " << ToJson(record.drawn, record.with).dump() << "\n";
  if (!record.repeats) std::cout << "  a second run did not show it\n";
  std::cout << "  repeat: " << LineOf(record) << "\n" << std::flush;
}

int SwarmVerb(const SwarmVerbOptions& options) {
  const Session session = OpenSession(options.common, /*builds=*/true);
  if (session.description.level < 2) {
    throw ConfigurationError(
        "swarm injects faults: it needs a target that performs them (level 2)");
  }
  SwarmOptions swarm_options{.seed = static_cast<std::uint64_t>(options.seed),
                             .cores = options.cores,
                             .budget_s = options.budget_s};
  swarm_options.overrides = ParseOverrides(options.set, session.description);
  swarm_options.with.insert(options.with.begin(), options.with.end());
  SelectionOptions selection = options.selection;
  if (selection.paths.empty() && selection.tag.empty()) selection.tag = "not negative";
  const SwarmPool pool = PoolOf(ChooseCases(session, selection, PlanOptions{.seeds = 1}, {}).cases,
                                session.description);
  if (pool.sources.empty()) {
    std::cerr << "trainwreck: nothing to draw from: no scenario with a fault was selected\n";
    return kExitNothingRun;
  }
  const int first = options.only.value_or(0), end = options.only ? first + 1 : options.runs;
  if (!swarm_options.with.empty()) {
    const Combination drawn = DrawCombination(pool, session.description, swarm_options.seed, first);
    const int count = static_cast<int>(drawn.ingredients.size());
    if (!options.only || *swarm_options.with.begin() < 0 || *swarm_options.with.rbegin() >= count) {
      throw UsageError("--with wants --only K, and indices from 0 to " + std::to_string(count - 1));
    }
  }
  swarm_options.output = MakeOutputFolder(options.output, /*is_latest=*/false);
  const std::string file = swarm_options.output + "/swarm.jsonl";
  std::map<int, Json> records = ReadRecords(file, options.seed);
  std::ofstream out(file, std::ios::app);
  Swarm swarm(session, pool, swarm_options);
  for (int next = first; next < end;) {
    std::vector<int> numbers;
    for (; next < end && numbers.size() < kAtOnce; ++next) {
      if (options.only || !records.contains(next)) numbers.push_back(next);
    }
    if (numbers.empty()) continue;
    const auto checked = swarm.Check(numbers);
    if (!checked) return kExitInterrupted;
    for (const SwarmRecord& record : *checked) {
      PrintFailing(record);
      Json json = ToJson(record);
      json["seed"] = options.seed;
      out << json.dump(-1, ' ', false, Json::error_handler_t::replace) << "\n" << std::flush;
      records[record.drawn.number] = std::move(json);
    }
  }
  const Json summary = Summarise(records, options.seed);
  WriteWholeFile(swarm_options.output + "/swarm.json",
                 summary.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
  std::cout << fmt::format(
      "# {} combinations of seed {}: {} broke a rule; {} restarted, {} compared bit for bit\n",
      records.size(), options.seed, summary["failing"].size(), summary["restarted"].dump(),
      summary["compared"].dump());
  std::cout << "# ends: " << summary["ends"].dump() << "\n# report: " << swarm_options.output
            << "/swarm.json\n";
  if (!summary["failing"].empty()) return kExitFailed;
  return summary["ends"].contains("infrastructure") ? kExitInfrastructure : kExitPassed;
}

void Declare(VerbArguments& arguments, SwarmVerbOptions& options) {
  arguments.Selection(options.selection);
  arguments.Option("--seed", options.seed, "The seed of all combinations [0]", "N")
      .Between(0, 1 << 30);
  arguments.Option("--runs", options.runs, "How many combinations [100]", "N").Between(1, 1000000);
  arguments.Option("--only", options.only, "Only this combination", "K").Between(0, 1 << 30);
  arguments.ParsedEach(
      "--with",
      [&options](const std::vector<std::string>& texts) {
        for (const std::string& text : texts) {
          std::istringstream words(text);
          for (std::string word; std::getline(words, word, ',');) {
            const Json index = TryParseJson(word);
            if (!index.is_number_integer()) {
              throw BadValue("'" + word + "' is no index: say --with 0,3");
            }
            options.with.push_back(index.get<int>());
          }
        }
      },
      "With --only: only these of its faults and recipe keys", "I,J");
  arguments.Set(options.set);
  arguments.Cores(options.cores);
  arguments.Option("--budget", options.budget_s, "Seconds that a run may take [60]", "SECONDS")
      .Positive();
  arguments.Option(
      "--output", options.output,
      "Folder for swarm.json and swarm.jsonl; one with a part of the combinations goes "
      "on from there [.trainwreck/runs/<UTC time>]",
      "DIR");
  arguments.Common(options.common);
}

const VerbRegistration registration(
    "swarm", "Draw random combinations of faults, and check what must hold in any of them",
    kSearching + 6, Declare, SwarmVerb);

}  // namespace
}  // namespace trainwreck
