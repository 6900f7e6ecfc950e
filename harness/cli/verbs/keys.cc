// trainwreck keys: changes every recipe key of the target, one at a time, and says which change
// nothing that is observed.
#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <iterator>
#include <set>
#include <utility>

#include "harness/cli/table.h"
#include "harness/cli/verb.h"
#include "harness/keys/expected.h"
#include "harness/keys/key_runs.h"
#include "harness/keys/other_values.h"
#include "harness/keys/report.h"
#include "harness/keys/search.h"
#include "harness/session/chosen.h"
#include "harness/session/preflight.h"
#include "harness/session/storage.h"
#include "harness/text/glob.h"

namespace trainwreck {
namespace {

struct KeysOptions {
  CommonOptions common;
  std::vector<std::string> patterns;
  std::string recipe;
  std::vector<std::string> set;
  std::vector<std::string> values;
  std::vector<std::string> contexts;
  std::string expected;
  int seed = 0;
  int max_runs = 20000;
  int cores = 0;
  std::string json;
};

using Values = std::map<std::string, std::vector<Json>>;

// The recipe of the scenario's control arm, or the target's defaults; with --set.
Recipe BaseRecipe(const KeysOptions& options, const Session& session) {
  const Changes overrides = ParseOverrides(options.set, session.description);
  Recipe recipe;
  if (options.recipe.empty()) {
    for (const ParamInfo& key : session.description.recipe) recipe[key.name] = key.default_value;
    for (const auto& [key, value] : overrides.set) recipe[key] = value;
    return recipe;
  }
  PlanOptions plan;
  plan.seeds = 1;
  plan.overrides = overrides;
  const Chosen chosen = ChooseCases(session, {.paths = {options.recipe}}, plan, /*points=*/{});
  if (chosen.cases.size() != 1 || chosen.cases.front().arms.empty()) {
    throw UsageError("--recipe " + options.recipe + ": name one recipe that this target can have");
  }
  if (const auto& strength = chosen.scenarios.front().strength; strength && strength->calibrated) {
    std::cout << "# strength: " << strength->Text() << "\n";
  }
  return chosen.cases.front().arms.front().runs.front().plan.recipe;
}

// What each key is changed to: --value first.
Values ValuesOf(const Recipe& base, const KeysOptions& options, const Session& session) {
  Values values;
  for (const auto& [key, value] : ParseOverrides(options.values, session.description).set) {
    if (base.at(key) != value) values[key].push_back(value);
  }
  for (const ParamInfo& key : session.description.recipe) {
    if (!base.contains(key.name)) continue;
    std::vector<Json>& all = values[key.name];
    for (Json& value : OtherValues(key, base.at(key.name))) {
      if (std::find(all.begin(), all.end(), value) == all.end()) all.push_back(std::move(value));
    }
  }
  return values;
}

bool IsSwitch(const ParamInfo& key) { return key.type == ValueType::kBool || !key.choices.empty(); }

bool IsAsked(const std::string& key, const std::vector<std::string>& patterns) {
  return patterns.empty() ||
         std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return GlobMatches(pattern, key); });
}

SearchedContext SearchIn(KeyContext context, const KeysOptions& options, const Session& session,
                         const Recipe& base, KeyRuns& runs, const SearchResult* plain) {
  SearchedContext searched;
  searched.context = context;
  const ContextPlan plan = PlanContext(context, base, session.description);
  searched.lacking = plan.lacking;
  if (!plan.lacking.empty()) return searched;
  SearchInput input;
  input.base = plan.recipe;
  input.max_runs = options.max_runs;
  const Values values = ValuesOf(plan.recipe, options, session);
  for (const ParamInfo& key : session.description.recipe) {
    const auto found = values.find(key.name);
    if (found == values.end()) continue;
    std::string why = ReasonToLeaveOut(key.name, context, session.description);
    if (why.empty() && found->second.empty()) why = "no other value is known: say one with --value";
    // In other contexts than the plain one only switches make conditions: it has tried the others.
    if (why.empty() && IsSwitch(key)) input.switches[key.name] = found->second;
    if (why.empty() && !IsSwitch(key) && plain == nullptr) {
      input.numbers[key.name] = found->second;
    }
    if (!IsAsked(key.name, options.patterns)) continue;
    if (!why.empty()) {
      searched.left_out[key.name] = why;
      continue;
    }
    input.values[key.name] = found->second;
    if (plain == nullptr || !plain->keys.contains(key.name)) continue;
    if (const auto& witness = plain->keys.at(key.name).acts) input.known[key.name] = *witness;
  }
  searched.search = SearchKeys(input, runs.ObserverOf(plan));
  return searched;
}

// Throws ConfigurationError with all that is wrong with the file.
std::vector<ExpectedIgnored> ReadExpected(const KeysOptions& options, const Session& session) {
  if (options.expected.empty()) return {};
  const ExpectedFile file = LoadExpected(options.expected, session.description);
  for (const Diagnostic& diagnostic : file.errors) {
    std::cerr << Format(diagnostic, session.color);
  }
  if (!file.errors.empty()) throw ConfigurationError("errors in " + options.expected);
  return file.entries;
}

std::string OneLine(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

void Print(const KeysReport& report, bool verbose) {
  std::vector<std::vector<std::string>> rows = {{"key", "context", "", ""}};
  for (const KeyFinding& finding : report.findings) {
    const bool is_remarkable = finding.state == KeyState::kRefused ||
                               finding.state == KeyState::kIgnored ||
                               finding.state == KeyState::kStale;
    if (!is_remarkable && !verbose) continue;
    rows.push_back(
        {finding.key, ToString(finding.context), ToString(finding.state), OneLine(finding.text)});
  }
  if (rows.size() > 1) PrintTable(std::cout, rows);
  for (const SearchedContext& one : report.contexts) {
    std::cout << fmt::format("# {} ({}): ", ToString(one.context), MeaningOf(one.context));
    if (!one.lacking.empty()) {
      std::cout << "left out: " << one.lacking << "\n";
      continue;
    }
    for (const KeyState state :
         {KeyState::kActs, KeyState::kElsewhere, KeyState::kDeclared, KeyState::kRefused,
          KeyState::kLeftOut, KeyState::kIgnored, KeyState::kStale}) {
      const int count = report.Count(one.context, state);
      if (count > 0) std::cout << fmt::format("{} {}, ", count, ToString(state));
    }
    std::cout << fmt::format("{} runs\n", one.search.runs);
  }
}

// What keeps a context from being searched.
std::optional<int> Trouble(const SearchedContext& one) {
  if (!one.search.unsteady.empty()) {
    std::cerr << fmt::format(
        "trainwreck: {}: two equal runs differ in {}: whether a key changes something cannot be "
        "told by bits\n",
        ToString(one.context), one.search.unsteady);
    return kExitInconclusive;
  }
  if (!one.search.failure.empty()) {
    std::cerr << fmt::format("trainwreck: {}: the unchanged run failed: {}\n",
                             ToString(one.context), one.search.failure);
    return kExitInfrastructure;
  }
  return std::nullopt;
}

int KeysVerb(const KeysOptions& options) {
  if (!options.json.empty()) CheckWritable(options.json, "--json");
  const Session session = OpenSession(options.common, /*builds=*/true);
  const std::vector<ExpectedIgnored> expected = ReadExpected(options, session);
  const Recipe base = BaseRecipe(options, session);
  if (std::none_of(base.begin(), base.end(),
                   [&](const auto& key) { return IsAsked(key.first, options.patterns); })) {
    throw UsageError("no recipe key of the target matches");
  }
  RequirePreflight(options.common, session, {});
  KeyRuns runs(session, {.seed = options.seed, .cores = options.cores});
  std::vector<SearchedContext> judged;
  std::optional<SearchResult> plain;
  try {
    for (const KeyContext context : kKeyContexts) {
      const bool is_asked =
          options.contexts.empty() ||
          std::count(options.contexts.begin(), options.contexts.end(), ToString(context)) > 0;
      // The plain recipe says where a key acts, so it comes first in any case.
      if (!is_asked && context != KeyContext::kPlain) continue;
      SearchedContext searched =
          SearchIn(context, options, session, base, runs, plain ? &*plain : nullptr);
      if (const auto status = Trouble(searched)) return *status;
      if (context == KeyContext::kPlain) {
        plain = searched.search;
        std::cout << "# two runs of the unchanged recipe gave the same bits\n" << std::flush;
      }
      if (is_asked) judged.push_back(std::move(searched));
    }
  } catch (const SearchInterrupted&) {
    return kExitInterrupted;
  }
  const KeysReport report = ConcludeKeys(std::move(judged), *plain, expected);
  Print(report, options.common.verbose);
  if (!options.json.empty()) {
    WriteWholeFile(options.json, ToJson(report).dump(1) + "\n");
    std::cout << "# report: " << options.json << "\n";
  }
  return report.Fails() ? kExitFailed : kExitPassed;
}

void Declare(VerbArguments& arguments, KeysOptions& options) {
  std::vector<std::string> contexts;
  for (const KeyContext context : kKeyContexts) contexts.push_back(ToString(context));
  arguments.Positional("KEY", options.patterns, "Keys, or globs of them, as 'optimizer.*' [all]");
  arguments.Option("--recipe", options.recipe, "Begin from a scenario's healthy recipe",
                   "SCENARIO");
  arguments.Set(options.set);
  arguments.Option("--value", options.values, "Another value to change a key to, tried first",
                   "KEY=VALUE");
  arguments
      .Option("--context", options.contexts, "Only in this context; may be repeated [all]", "NAME")
      .OneOf(contexts);
  arguments.Option("--expected", options.expected, "Keys that are declared to change nothing",
                   "FILE");
  arguments.Option("--seed", options.seed, "The seed of all runs [0]", "N").Between(0, 1 << 30);
  arguments.Option("--max-runs", options.max_runs, "Runs in a context, about [20000]", "N")
      .Between(1, 10000000);
  arguments.Cores(options.cores);
  arguments.Option("--json", options.json, "Write a report as JSON", "FILE");
  arguments.Preflight(options.common);
  arguments.Common(options.common);
}

const VerbRegistration registration(
    "keys", "Change every recipe key and say which change nothing that is observed", kSearching + 5,
    Declare, KeysVerb);

}  // namespace
}  // namespace trainwreck
