// trainwreck explain: what a name means, wherever it is known.
#include <fmt/format.h>

#include <filesystem>
#include <iostream>

#include "harness/campaign/claims.h"
#include "harness/cli/verb.h"
#include "harness/cli/verbs/glossary.h"
#include "harness/session/chosen.h"
#include "harness/session/session.h"
#include "harness/text/nearest.h"
#include "harness/text/words.h"

namespace trainwreck {
namespace {

struct ExplainOptions {
  CommonOptions common;
  std::string name;
};

void Line(const std::string& label, const std::string& text) {
  if (text.empty()) return;
  std::cout << "  " << label << std::string(label.size() < 12 ? 12 - label.size() : 1, ' ') << text
            << "\n";
}

std::string ValuesText(const ParamInfo& info) {
  std::string text = ToString(info.type);
  if (!info.choices.empty()) text += ", one of " + Join(info.choices);
  if (info.min) text += ", at least " + Json(*info.min).dump();
  if (info.max) text += ", at most " + Json(*info.max).dump();
  if (!info.unit.empty()) text += ", in " + info.unit;
  if (!info.role.empty()) text += ", the target's " + info.role;
  return text;
}

bool ExplainGlossary(const std::string& name) {
  bool found = false;
  for (const GlossaryEntry& entry : Glossary()) {
    const bool is_asked = entry.name == name ||
                          (name == "exit-codes" && entry.kind == "exit status") ||
                          (name == "verdicts" && entry.kind != "exit status") ||
                          (entry.name == "requires" && name.rfind("requires:", 0) == 0);
    if (!is_asked) continue;
    found = true;
    std::cout << entry.kind << " " << entry.name << "\n";
    Line("means", entry.meaning);
    Line("do", entry.remedy);
  }
  return found;
}

bool ExplainFault(const TargetDescription& target, const std::string& name) {
  const FaultInfo* fault = target.FindFault(name);
  if (fault == nullptr) return false;
  std::cout << "fault " << fault->name << "\n";
  Line("does", fault->doc);
  Line("performed",
       fault->amends.empty() ? "in the target, while it trains" : "by the harness, on the recipe");
  for (const Amendment& amendment : fault->amends) {
    Line("amends", amendment.key + (amendment.op == Amendment::Op::kScale ? " times " : " = ") +
                       (amendment.param.empty() ? amendment.value.dump() : amendment.param));
  }
  for (const ParamInfo& param : fault->params) {
    Line("parameter",
         param.name + ": " + ValuesText(param) +
             (param.default_value.is_null() ? ", must be given"
                                            : ", default " + param.default_value.dump()));
    Line("", param.doc);
  }
  if (fault->has_trigger) {
    Line("trigger", "at, from, to, every (optimizer steps), ranks, phase, attempt, probability");
  }
  if (fault->min_ranks > 1) Line("needs", std::to_string(fault->min_ranks) + " ranks");
  Line("needs", Join(fault->features));
  Line("evidence", fault->evidence);
  std::string with;
  for (const ParamInfo& param : fault->params) {
    if (param.default_value.is_null()) with += (with.empty() ? "" : ", ") + param.name + ": ...";
  }
  Line("example", "inject: {my_fault: {fault: " + fault->name +
                      (with.empty() ? "" : ", with: {" + with + "}") + "}}");
  return true;
}

bool ExplainSignal(const TargetDescription& target, const std::string& name) {
  const SignalInfo* signal = target.FindSignal(name);
  if (signal == nullptr) return false;
  std::cout << "signal " << signal->name << "\n";
  Line("called", signal->own_name + (signal->own_name.empty() ? "" : " by the program"));
  Line("is", signal->doc);
  Line("unit", signal->unit);
  Line("compared",
       signal->scale == Scale::kLog ? "in octaves (log2 of the ratio)" : "by difference");
  Line("exact", signal->exact ? "yes: may be compared with ==" : "no");
  if (signal->per_module)
    Line("per module", signal->name + "{GLOB}, as " + signal->name + "{head.*}");
  if (signal->sparse) Line("recorded", "at some steps only; slices read the samples there are");
  return true;
}

bool ExplainEvent(const TargetDescription& target, const std::string& name) {
  const EventInfo* event = target.FindEvent(name);
  if (event == nullptr) return false;
  std::cout << "event " << event->name << "\n";
  Line("is", event->doc);
  Line("fields", Join(event->fields));
  Line("example", "eventually event(" + event->name + ")");
  return true;
}

bool ExplainRecipeKey(const TargetDescription& target, const std::string& name) {
  const ParamInfo* key = target.FindRecipeKey(name);
  if (key == nullptr) return false;
  std::cout << "recipe key " << key->name << "\n";
  Line("is", key->doc);
  Line("values", ValuesText(*key));
  Line("default", key->default_value.dump());
  Line("example", "--set " + key->name + "=" +
                      (key->default_value.is_string() ? key->default_value.get<std::string>()
                                                      : key->default_value.dump()));
  return true;
}

void ExplainArm(const Case& one, const ArmPlan& arm) {
  std::string text = std::string(ToString(arm.kind)) + " " + arm.name;
  if (arm.is_undo) text += " (undo: only takes the fault back, not run)";
  const std::string note = arm.remedy != nullptr  ? arm.remedy->note
                           : arm.decoy != nullptr ? arm.decoy->note
                                                  : "";
  if (arm.remedy != nullptr && !arm.remedy->is_correct) text += " (mitigates only)";
  Line("arm", text + (note.empty() ? "" : ": " + note));
  for (const Claim& claim : ClaimsOf(one, arm)) {
    Line("", (claim.expected ? "must hold: " : "must not hold: ") + claim.check->name + ": " +
                 claim.check->formula.text());
  }
}

std::string TwinText(const Twin& twin) {
  std::string text;
  for (const auto& [key, value] : twin.changes.set) text += ", " + key + ": " + value.dump();
  for (const auto& [key, factor] : twin.changes.scale)
    text += ", " + key + fmt::format(" * {}", factor);
  for (const Phase& phase : twin.phases) {
    text += ", " + phase.name + (phase.until ? " until " + std::to_string(*phase.until) : "");
  }
  if (!text.empty()) text = ":" + text.substr(1);
  return text + (twin.note.empty() ? "" : " (" + twin.note + ")");
}

bool ExplainScenario(const Session& session, const std::string& name) {
  const std::string bare = name.substr(0, name.find('['));
  const std::string file = session.scenarios_root + "/" + bare + ".yaml";
  if (!std::filesystem::is_regular_file(file) && !std::filesystem::is_regular_file(bare))
    return false;
  SelectionOptions selection;
  selection.paths = {name};
  const Chosen chosen = ChooseCases(session, selection, PlanOptions{}, {});
  const Scenario& scenario = chosen.scenarios.front();
  std::cout << "scenario " << scenario.name << "\n";
  Line("title", scenario.title);
  Line("file", scenario.file);
  Line("sources", Join(scenario.sources));
  Line("tags", Join(scenario.tags));
  Line("seeds", std::to_string(scenario.seed_require) + " of " +
                    std::to_string(scenario.seed_count) + " must agree");
  if (scenario.strength) Line("strength", scenario.strength->Text());
  for (const InjectedFault& fault : scenario.faults) Line("injects", fault.id + ": " + fault.fault);
  for (const Twin& twin : scenario.twins) Line("twin", twin.name + TwinText(twin));
  for (const Bug& bug : scenario.bugs) {
    Line("must notice", bug.fault.id + ": " + bug.fault.fault + ", in " + Join(bug.twins));
  }
  if (!scenario.expect.reason.empty()) {
    Line("expects", std::string(ToString(scenario.expect.verdict)) + " " +
                        scenario.expect.failure_class.text() + ": " + scenario.expect.reason);
  }
  Line("no remedy", scenario.no_remedy);
  for (const Case& one : chosen.cases) {
    std::cout << " case " << one.name << "\n";
    Line("skipped", one.skip_reason);
    for (const ArmPlan& arm : one.arms) ExplainArm(one, arm);
  }
  return true;
}

std::vector<std::string> KnownNames(const TargetDescription& target) {
  std::vector<std::string> names = {"verdicts", "exit-codes"};
  for (const GlossaryEntry& entry : Glossary()) names.push_back(entry.name);
  for (const FaultInfo& fault : target.faults) names.push_back(fault.name);
  for (const SignalInfo& signal : target.signals) names.push_back(signal.name);
  for (const EventInfo& event : target.events) names.push_back(event.name);
  for (const ParamInfo& key : target.recipe) names.push_back(key.name);
  return names;
}

int ExplainVerb(const ExplainOptions& options) {
  const std::string& name = options.name;
  if (ExplainGlossary(name)) return kExitPassed;
  const Session session = OpenSession(options.common);
  SayUnnamedTarget(session);
  bool found = ExplainScenario(session, name);
  found = ExplainFault(session.description, name) || found;
  found = ExplainSignal(session.description, name) || found;
  found = ExplainEvent(session.description, name) || found;
  found = ExplainRecipeKey(session.description, name) || found;
  if (!found) {
    throw UsageError(
        "nothing is called '" + name + "'" + NearestHint(name, KnownNames(session.description)) +
        "; `trainwreck list scenarios|faults|signals|recipe|events` lists what there is");
  }
  return kExitPassed;
}

void Declare(VerbArguments& arguments, ExplainOptions& options) {
  arguments.Positional("NAME", options.name, "What to explain").Required();
  arguments.Common(options.common);
}

const VerbRegistration registration(
    "explain", "Explain a scenario, fault, signal, event, recipe key, verdict class or exit status",
    kLooking + 1, Declare, ExplainVerb);

}  // namespace
}  // namespace trainwreck
