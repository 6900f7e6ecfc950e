// trainwreck dose: how strong a fault must be before each symptom shows, and how strong it may be
// before each remedy fails.
#include <cmath>
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "harness/bisect/dose_search.h"
#include "harness/cli/table.h"
#include "harness/cli/verb.h"
#include "harness/pages/pages.h"
#include "harness/session/preflight.h"
#include "harness/session/session.h"
#include "harness/session/storage.h"

namespace trainwreck {
namespace {

struct DoseOptions {
  CommonOptions common;
  DoseRequest request;
  std::string output;
};

// How often it was so, from the weakest dose to the strongest; a dot where nobody looked.
std::string Sparkline(const DoseAnswer& answer, int doses) {
  constexpr const char* kBlocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  std::string line;
  for (int dose = 0; dose < doses; ++dose) {
    const auto seen = answer.seen.find(dose);
    if (seen == answer.seen.end()) {
      line += "·";
      continue;
    }
    const double share = static_cast<double>(seen->second.first) / seen->second.second;
    line += kBlocks[std::lround(share * 7)];
  }
  return line;
}

// Whether all questions have their answers.
bool PrintAnswers(const DoseSearch& search) {
  std::vector<std::vector<std::string>> rows = {
      {"question", "dose", "confidence", "rates", "weak to strong"}};
  bool is_decided = true;
  for (const DoseAnswer& answer : search.Answers()) {
    is_decided = is_decided && answer.is_decided;
    char confidence[16];
    std::snprintf(confidence, sizeof confidence, "%.1f%%", 100 * answer.confidence);
    rows.push_back({answer.is_remedy ? "strongest that " + answer.name + " holds"
                                     : "weakest that shows " + answer.name,
                    answer.text, answer.limit ? confidence : "-",
                    answer.rates
                        ? DoseText(answer.rates->first) + " -> " + DoseText(answer.rates->second)
                        : "-",
                    Sparkline(answer, static_cast<int>(search.doses().size()))});
  }
  PrintTable(std::cout, rows);
  std::cout << "# " << search.seeds() << " seeds with all arms\n";
  return is_decided;
}

int DoseVerb(const DoseOptions& options) {
  const Session session = OpenSession(options.common);
  DoseSearch search(session, options.request);
  RequirePreflight(options.common, session, {search.strongest()});
  const std::string output = MakeOutputFolder(options.output, /*is_latest=*/false);
  std::cout << "# " << search.doses().size() << " doses of " << options.request.parameter
            << " from " << DoseText(search.doses().front()) << " to "
            << DoseText(search.doses().back()) << "\n";
  if (!search.Run(output)) return kExitInterrupted;
  const bool is_decided = PrintAnswers(search);
  const Json json = search.ToJson();
  WriteWholeFile(output + "/dose.json", json.dump(1) + "\n");
  WriteWholeFile(output + "/dose.html", PageOf(json, kVersion));
  std::cout << "# report: " << output << "/dose.json, " << output << "/dose.html\n";
  return is_decided ? kExitPassed : kExitInconclusive;
}

void Declare(VerbArguments& arguments, DoseOptions& options) {
  arguments
      .Positional("SCENARIO", options.request.scenario,
                  "File or name, as nan/lr-too-high or 'nan/x[sgd]'")
      .Required();
  arguments
      .Option("--param", options.request.parameter, "What to vary, as inject.hot_lr.with.factor",
              "PATH")
      .Required();
  arguments.Option("--from", options.request.from,
                   "The weakest dose [the least that the fault takes]", "VALUE");
  arguments.Option("--to", options.request.to, "The strongest dose [the most that the fault takes]",
                   "VALUE");
  arguments.Option("--levels", options.request.levels, "How many doses, ends included [33]", "N")
      .Between(3, 1025);
  arguments.Flag("--linear", options.request.linear, "Even steps, not of the logarithm");
  arguments
      .Option("--confidence", options.request.confidence, "Name a dose only when this sure [0.95]",
              "P")
      .Between(0.5, 0.9999);
  arguments.Option("--max-runs", options.request.max_runs, "Seeds per question at most [400]", "N")
      .Between(1, 100000);
  arguments
      .Option("-j,--jobs", options.request.cores, "Cores to use [all that this process may use]",
              "N")
      .Between(1, 4096);
  arguments.Option("--output", options.output,
                   "Folder for dose.json and dose.html [.trainwreck/runs/<UTC time>]", "DIR");
  arguments.Preflight(options.common);
  arguments.Common(options.common);
}

const VerbRegistration registration(
    "dose", "Find the weakest fault that shows, and the strongest that each remedy holds",
    kSearching + 1, Declare, DoseVerb);

}  // namespace
}  // namespace trainwreck
