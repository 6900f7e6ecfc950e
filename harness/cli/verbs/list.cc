// trainwreck list: scenarios, faults, signals, recipe keys, events; for people, programs and Bazel.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>

#include "harness/cli/table.h"
#include "harness/cli/verb.h"
#include "harness/protocol/recipe_view.h"
#include "harness/session/chosen.h"
#include "harness/session/session.h"
#include "harness/text/words.h"

namespace trainwreck {
namespace {

struct ListOptions {
  CommonOptions common;
  std::string what = "scenarios";
  std::string format = "text";
  SelectionOptions selection;
};

using Rows = std::vector<std::vector<std::string>>;

std::string RangeText(const ParamInfo& info) {
  if (!info.choices.empty()) return Join(info.choices, "|");
  auto number = [&](double value) {
    if (info.type == ValueType::kInt) return std::to_string(static_cast<std::int64_t>(value));
    return Json(value).dump();
  };
  if (info.min && info.max) return number(*info.min) + ".." + number(*info.max);
  if (info.min) return ">= " + number(*info.min);
  if (info.max) return "<= " + number(*info.max);
  return "";
}

std::string FirstSentence(const std::string& text) {
  std::size_t end = text.find(". ");
  while (end != std::string::npos && text.substr(0, end).ends_with(" et al")) {
    end = text.find(". ", end + 1);
  }
  return text.substr(0, std::min(text.find('\n'), end));
}

Rows FaultRows(const TargetDescription& target) {
  Rows rows = {{"fault", "parameters", "what it does"}};
  for (const FaultInfo& fault : target.faults) {
    std::vector<std::string> params;
    for (const ParamInfo& param : fault.params) params.push_back(param.name);
    rows.push_back({fault.name, Join(params, ","), FirstSentence(fault.doc)});
  }
  return rows;
}

Rows SignalRows(const TargetDescription& target) {
  Rows rows = {{"signal", "unit", "kind", "what it is"}};
  for (const SignalInfo& signal : target.signals) {
    std::vector<std::string> kinds;
    if (signal.exact) kinds.push_back("exact");
    if (signal.scale == Scale::kLog) kinds.push_back("log");
    if (signal.per_module) kinds.push_back("per-module");
    if (signal.sparse) kinds.push_back("sparse");
    std::string what = FirstSentence(signal.doc);
    if (!signal.own_name.empty()) {
      what = signal.own_name + " of the program" + (what.empty() ? "" : ": ") + what;
    }
    rows.push_back({signal.name, signal.unit.empty() ? "-" : signal.unit,
                    kinds.empty() ? "-" : Join(kinds, ","), what});
  }
  return rows;
}

Rows RecipeRows(const TargetDescription& target) {
  Rows rows = {{"key", "type", "default", "values", "what it is"}};
  for (const ParamInfo& key : target.recipe) {
    const std::string range = RangeText(key);
    rows.push_back({key.name, ToString(key.type), key.default_value.dump(),
                    range.empty() ? "-" : range, FirstSentence(key.doc)});
  }
  return rows;
}

Rows EventRows(const TargetDescription& target) {
  Rows rows = {{"event", "fields", "what happened"}};
  for (const EventInfo& event : target.events) {
    rows.push_back({event.name, event.fields.empty() ? "-" : Join(event.fields, ","),
                    FirstSentence(event.doc)});
  }
  return rows;
}

// Beside each what the target lacks to be asked.
Rows InvariantRows(const std::vector<Invariant>& invariants, const TargetDescription& target) {
  Rows rows = {{"invariant", "part", "lacking", "what holds"}};
  for (const Invariant& invariant : invariants) {
    const std::string lacking = LackingFor(invariant, target);
    rows.push_back(
        {invariant.name, invariant.part, lacking.empty() ? "-" : lacking, invariant.title});
  }
  return rows;
}

Json InvariantsJson(const std::vector<Invariant>& invariants, const TargetDescription& target) {
  Json list = Json::array();
  for (const Invariant& invariant : invariants) {
    list.push_back({{"name", invariant.name},
                    {"title", invariant.title},
                    {"part", invariant.part},
                    {"assert", invariant.formula.text()},
                    {"lacking", LackingFor(invariant, target)}});
  }
  return list;
}

// What all points of one scenario take, with one core.
struct Size {
  double seconds = 0;
  int ranks = 1;
  int runs = 0;
};

// The time of a small model on one core, multiplied by the keys that the cost is proportional to.
double SecondsPerStep(const Recipe& recipe, const TargetDescription& target) {
  double seconds = 0.010;
  for (const ParamInfo& key : target.recipe) {
    const bool counts = key.role == ToString(KeyRole::kCost) ||
                        key.role == ToString(KeyRole::kBatchSize) ||
                        key.role == ToString(KeyRole::kAccumulation);
    if (!counts || !key.default_value.is_number()) continue;
    const double usual = std::max(1.0, key.default_value.get<double>());
    seconds *= RecipeView(recipe).Number(key.name).value_or(usual) / usual;
  }
  return seconds;
}

Size SizeOf(const Scenario& scenario, const std::vector<Case>& cases,
            const TargetDescription& target) {
  Size size;
  for (const Case& one : cases) {
    if (one.scenario->name != scenario.name) continue;
    for (const ArmPlan& arm : one.arms) {
      for (const Run& run : arm.runs) {
        size.seconds += 0.02 + run.steps * run.ranks * SecondsPerStep(run.plan.recipe, target);
        size.ranks = std::max(size.ranks, run.ranks);
        ++size.runs;
      }
    }
  }
  return size;
}

// Bazel's sizes bound a test's time: 1, 5, 15 and 60 minutes. Four times the estimate must fit.
std::string BazelSize(const Size& size) {
  if (size.seconds < 15) return "small";
  if (size.seconds < 75) return "medium";
  return size.seconds < 225 ? "large" : "enormous";
}

// The path of the scenario's file below the root, as scenarios/BUILD needs it.
std::string BelowRoot(const std::string& file, const std::string& root) {
  return std::filesystem::path(file)
      .lexically_normal()
      .lexically_relative(std::filesystem::path(root).lexically_normal())
      .string();
}

void PrintBazel(const Session& session, const Chosen& chosen) {
  std::cout
      << "\"\"\"The scenarios, for defs.bzl. Written by `trainwreck list --format bazel`; do not "
         "edit.\"\"\"\n\nSCENARIOS = [\n";
  for (const Scenario& scenario : chosen.scenarios) {
    const Size size = SizeOf(scenario, chosen.cases, session.description);
    std::cout << "    struct(\n        name = " << Json(scenario.name).dump()
              << ",\n        file = "
              << Json(BelowRoot(scenario.file, session.scenarios_root)).dump()
              << ",\n        extended = [";
    for (std::size_t i = 0; i < scenario.extended.size(); ++i) {
      std::cout << (i == 0 ? "" : ", ")
                << Json(BelowRoot(scenario.extended[i], session.scenarios_root)).dump();
    }
    std::cout << "],\n        tags = [";
    for (std::size_t i = 0; i < scenario.tags.size(); ++i) {
      std::cout << (i == 0 ? "" : ", ") << Json(scenario.tags[i]).dump();
    }
    std::cout << "],\n        size = \"" << BazelSize(size) << "\",\n        cores = " << size.ranks
              << ",\n    ),\n";
  }
  std::cout << "]\n";
}

void PrintScenarios(const Session& session, const Chosen& chosen, const std::string& format) {
  if (format == "bazel") {
    PrintBazel(session, chosen);
    return;
  }
  Json list = Json::array();
  Rows rows = {{"scenario", "runs", "tags", "title"}};
  for (const Scenario& scenario : chosen.scenarios) {
    std::vector<std::string> names;
    for (const Case& one : chosen.cases) {
      if (one.scenario->name == scenario.name) names.push_back(one.name);
    }
    if (names.empty()) continue;  // all its cases were left out by -k or -t
    const Size size = SizeOf(scenario, chosen.cases, session.description);
    list.push_back({{"name", scenario.name},
                    {"file", scenario.file},
                    {"title", scenario.title},
                    {"tags", scenario.tags},
                    {"sources", scenario.sources},
                    {"cases", names},
                    {"runs", size.runs},
                    {"ranks", size.ranks}});
    rows.push_back({scenario.name, std::to_string(size.runs),
                    scenario.tags.empty() ? "-" : Join(scenario.tags, ","), scenario.title});
  }
  if (format == "json") {
    std::cout << list.dump(2) << "\n";
  } else {
    PrintTable(std::cout, rows);
  }
}

int ListVerb(const ListOptions& options) {
  const ListOptions& list = options;
  if (list.format == "bazel" && list.what != "scenarios") {
    throw UsageError("--format bazel is for scenarios, not for " + list.what);
  }
  const Session session = OpenSession(options.common);
  SayUnnamedTarget(session);
  if (list.what == "scenarios") {
    const Chosen chosen = ChooseCases(session, list.selection, PlanOptions{}, {});
    PrintScenarios(session, chosen, list.format);
    return kExitPassed;
  }
  if (list.what == "invariants") {
    const auto invariants = LoadStandingInvariants(session);
    if (list.format == "json") {
      std::cout << InvariantsJson(*invariants, session.description).dump(2) << "\n";
    } else {
      PrintTable(std::cout, InvariantRows(*invariants, session.description));
    }
    return kExitPassed;
  }
  if (list.format == "json") {
    std::cout << ToJson(session.description).at(list.what).dump(2) << "\n";
    return kExitPassed;
  }
  PrintTable(std::cout, list.what == "faults"    ? FaultRows(session.description)
                        : list.what == "signals" ? SignalRows(session.description)
                        : list.what == "recipe"  ? RecipeRows(session.description)
                                                 : EventRows(session.description));
  return kExitPassed;
}

void Declare(VerbArguments& arguments, ListOptions& options) {
  arguments
      .Positional("WHAT", options.what,
                  "scenarios, faults, signals, recipe, events or invariants [scenarios]")
      .OneOf({"scenarios", "faults", "signals", "recipe", "events", "invariants"});
  arguments
      .Option("--format", options.format, "text, json or bazel (scenarios only) [text]", "FORMAT")
      .OneOf({"text", "json", "bazel"});
  arguments.Selection(options.selection);
  arguments.Common(options.common);
}

const VerbRegistration registration("list",
                                    "List scenarios, faults, signals, recipe keys, events or "
                                    "invariants",
                                    kFirst + 1, Declare, ListVerb);

}  // namespace
}  // namespace trainwreck
