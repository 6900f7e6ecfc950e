// trainwreck new: a commented scenario or fault to begin with.
#include <filesystem>
#include <iostream>
#include <regex>

#include "harness/cli/verb.h"
#include "harness/cli/verbs/templates.h"
#include "harness/protocol/recipe_view.h"
#include "harness/session/session.h"
#include "harness/session/storage.h"
#include "harness/spec/canonical.h"

namespace trainwreck {
namespace {

struct NewOptions {
  CommonOptions common;
  std::string kind;  // "scenario" or "fault"
  std::string name;
};

namespace fs = std::filesystem;

void WriteNew(const std::string& path, const std::string& text) {
  if (fs::exists(path)) throw UsageError(path + " is there already");
  WriteWholeFile(path, text);
  std::cout << "wrote " << path << "\n";
}

int NewScenario(const NewOptions& options) {
  const std::string& name = options.name;
  static const std::regex valid("[a-z0-9][a-z0-9_-]*(/[a-z0-9][a-z0-9_-]*)+");
  if (!std::regex_match(name, valid)) {
    throw UsageError("'" + name + "' is no scenario's name: say family/name, as nan/lr-too-high");
  }
  const Session session = OpenSession(options.common);
  const std::string& root = session.scenarios_root;
  const std::string path = root + "/" + name + ".yaml";
  // As `fmt` would have it: without what the defaults of its folder give.
  Errors errors;
  const std::string skeleton = ScenarioSkeleton(name, session.description);
  WriteNew(path, CanonicalScenario(skeleton, path, root, errors).value_or(skeleton));
  try {
    LoadScenarios(session, {path});
  } catch (const ConfigurationError& error) {
    std::cerr << "trainwreck: " << error.what()
              << "\ntrainwreck: the skeleton does not fit this target; change it\n";
    return kExitInvalid;
  }
  std::cout << "next: edit it, then trainwreck validate " << name << "; trainwreck run " << name
            << "\n";
  return kExitPassed;
}

// The checkout that this is called in.
std::string FindInjectors() {
  for (fs::path folder = fs::current_path();; folder = folder.parent_path()) {
    if (fs::is_regular_file(folder / "injectors" / "injector.h")) {
      return (folder / "injectors").lexically_relative(fs::current_path()).string();
    }
    if (folder == folder.parent_path()) break;
  }
  throw UsageError(
      "call this in a checkout of trainwreck: there is no injectors/injector.h here or above");
}

// What the skeleton multiplies: the learning rate, or else the first number there is.
std::string KeyToScale(const TargetDescription& target) {
  if (const ParamInfo* rate = KeyWithRole(target, KeyRole::kLearningRate)) return rate->name;
  std::string first;
  for (const ParamInfo& key : target.recipe) {
    if (key.type != ValueType::kNumber || key.name.rfind("supervisor.", 0) == 0) continue;
    if (key.name == "lr" || key.name.ends_with(".lr")) return key.name;
    if (first.empty()) first = key.name;
  }
  return first.empty() ? kStepsKey : first;
}

int NewRecipeFault(const NewOptions& options, const std::string& fault) {
  const Session session = OpenSession(options.common);
  const std::string name = "recipe." + fault;
  if (session.description.FindFault(name) != nullptr) {
    throw UsageError("there is a fault '" + name + "' already: trainwreck explain " + name);
  }
  WriteNew(session.scenarios_root + "/faults/" + fault + ".yaml",
           RecipeFaultSkeleton(name, KeyToScale(session.description)));
  OpenSession(options.common);  // reads it
  std::cout << "next: edit it, then trainwreck explain " << name
            << "; a scenario has it by inject: {it: {fault: " << name << "}}\n";
  return kExitPassed;
}

int NewFault(const NewOptions& options) {
  const std::string& name = options.name;
  static const std::regex valid("([a-z][a-z0-9_]*)\\.([a-z][a-z0-9_]*)");
  std::smatch parts;
  if (!std::regex_match(name, parts, valid)) {
    throw UsageError("'" + name + "' is no fault's name: say site.fault, as data.corrupt_sample");
  }
  const std::string site = parts[1], fault = parts[2];
  if (site == "recipe") return NewRecipeFault(options, fault);
  const std::string base = FindInjectors() + "/" + site + "/" + fault;
  const FaultSkeleton skeleton = MakeFaultSkeleton(site, fault);
  if (fs::exists(base + "_test.cc")) throw UsageError(base + "_test.cc is there already");
  WriteNew(base + ".cc", skeleton.source);
  WriteNew(base + "_test.cc", skeleton.test);
  std::cout << "next: edit both, then bazel test //injectors:" << site
            << "_faults_test; the trainer links it in "
            << "by itself:\n      bazel build //trainer:trainwreck-trainer; trainwreck explain "
            << name << "\n";
  return kExitPassed;
}

int NewVerb(const NewOptions& options) {
  return options.kind == "fault" ? NewFault(options) : NewScenario(options);
}

void Declare(VerbArguments& arguments, NewOptions& options) {
  arguments.Positional("KIND", options.kind, "scenario or fault")
      .OneOf({"scenario", "fault"})
      .Required();
  arguments.Positional("NAME", options.name, "family/name of a scenario, site.name of a fault")
      .Required();
  arguments.Common(options.common);
}

const VerbRegistration registration("new", "Write a commented skeleton: a scenario or a fault",
                                    kLooking + 4, Declare, NewVerb);

}  // namespace
}  // namespace trainwreck
