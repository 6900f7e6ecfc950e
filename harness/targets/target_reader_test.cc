// trainwreck.yaml: what is read, and what is rejected where.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "harness/targets/python_hooks.h"
#include "harness/targets/target_spec.h"

namespace trainwreck {
namespace target_reader_test {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::string Folder() {
  const char* tmp = std::getenv("TEST_TMPDIR");
  return tmp != nullptr ? tmp : "/tmp";
}

TargetFile Load(const std::string& text) {
  const std::string path = Folder() + "/trainwreck.yaml";
  std::ofstream(path) << text;
  return LoadTargetFile(path);
}

constexpr char kHead[] = "apiVersion: trainwreck/v1\nkind: Targets\ntargets:\n";

// A target that is right, to be broken in one place.
constexpr char kGood[] = R"(  mlp:
    command: [python3, train.py, "--lr={lr}", {when: amp, arguments: [--amp]}]
    recipe:
      steps: {type: int, default: 30, min: 1}
      lr: 0.1
      amp: false
    signals:
      loss: {unit: nats, scale: log}
    sources:
      - stdout: 'step (?P<step>\d+) loss (?P<loss>\S+)'
)";

std::string ErrorsOf(const std::string& text) {
  std::string all;
  for (const Diagnostic& error : Load(text).errors) all += Format(error);
  return all;
}

std::string Broken(const std::string& part, const std::string& other) {
  std::string text = std::string(kHead) + kGood;
  const std::size_t at = text.find(part);
  EXPECT_NE(at, std::string::npos) << part;
  return text.replace(at, part.size(), other);
}

TEST(TargetReader, ReadsATarget) {
  const TargetFile file = Load(std::string(kHead) + kGood);
  ASSERT_TRUE(file.errors.empty()) << ErrorsOf(std::string(kHead) + kGood);
  const TargetSpec* spec = file.Find("mlp");
  ASSERT_NE(spec, nullptr);
  EXPECT_EQ(spec->folder, Folder());
  Plan plan;
  plan.recipe = {{"lr", 0.5}, {"amp", true}};
  EXPECT_THAT(Invoke(*spec, plan, PlaceholderValues(*spec, plan, "", "", 0, 1)).command,
              ElementsAre("python3", "train.py", "--lr=0.5", "--amp"));
  plan.recipe["amp"] = false;
  EXPECT_THAT(Invoke(*spec, plan, PlaceholderValues(*spec, plan, "", "", 0, 1)).command,
              ElementsAre("python3", "train.py", "--lr=0.5"));
}

TEST(TargetReader, DescribesIt) {
  const TargetFile file = Load(std::string(kHead) + kGood);
  const TargetDescription target = DescribeTarget(*file.Find("mlp"));
  EXPECT_EQ(target.level, 0);
  EXPECT_EQ(target.FindRecipeKey("lr")->type, ValueType::kNumber);
  EXPECT_EQ(target.FindRecipeKey("amp")->type, ValueType::kBool);
  ASSERT_NE(target.FindFault("recipe.scale_lr"), nullptr);
  EXPECT_EQ(target.FindFault("recipe.scale_amp"), nullptr);  // no number
  EXPECT_NE(target.FindFault("recipe.set_amp"), nullptr);
  EXPECT_NE(target.FindFault("process.crash_rank"), nullptr);
  EXPECT_EQ(target.FindFault("data.damage_file"), nullptr);  // it names no data
  EXPECT_FALSE(target.HasFeature("late-signals"));
  // What it says survives the way through JSON.
  const TargetDescription again = DescriptionFromJson(ToJson(target));
  EXPECT_EQ(again.level, 0);
  EXPECT_EQ(ToJson(again), ToJson(target));
}

// What scenarios may require of it follows from what its file says.
TEST(TargetReader, HasTheFeaturesThatItsFileGives) {
  const std::string plain = std::string(kHead) + kGood;
  const struct {
    const char* feature;
    std::string with;
  } features[] = {
      {"resume", plain + "    resume: {arguments: [--resume]}\n"},
      {"resume", plain + "    resume: {when_exists: \"{run.checkpoints}/last\"}\n"},
      {"phases", Broken("--lr={lr}", "--steps={run.until}")},
      {"one-process", plain + "    ranks: {launcher: mpirun}\n"},
      {"late-signals", plain + "      - stdout: 'again (?P<loss>.*)'\n"},
      {"late-signals", Broken("scale: log", "sparse: true")},
      {"device:cuda", plain + "    features: [device:cuda]\n"},
  };
  const TargetDescription without = DescribeTarget(*Load(plain).Find("mlp"));
  EXPECT_TRUE(without.HasFeature("device:cpu"));
  for (const auto& [feature, with] : features) {
    EXPECT_EQ(ErrorsOf(with), "") << feature;
    EXPECT_TRUE(DescribeTarget(*Load(with).Find("mlp")).HasFeature(feature)) << feature;
    EXPECT_FALSE(without.HasFeature(feature)) << feature;
  }
  EXPECT_NE(without.FindFault("recipe.scale_steps"), nullptr) << "whole numbers can be scaled, too";
}

// `adapter: python` brings its signals, events and faults along.
constexpr char kHooked[] = R"(  mlp:
    command: [python3, train.py]
    adapter: python
    recipe: {steps: 30}
)";

TEST(TargetReader, NeedsNoSourcesWithHooks) {
  const std::string text = std::string(kHead) + kHooked;
  const TargetFile file = Load(text);
  ASSERT_EQ(ErrorsOf(text), "");
  const TargetDescription target = DescribeTarget(*file.Find("mlp"));
  EXPECT_EQ(target.level, 0);
  EXPECT_NE(target.FindSignal("grad_norm"), nullptr);
  EXPECT_NE(target.FindFault("optimizer.nan_gradient"), nullptr);
  EXPECT_NE(target.FindFault("process.crash_rank"), nullptr) << "and what needs no hooks";
  EXPECT_TRUE(target.HasFeature("adapter:python"));
  EXPECT_EQ(ToJson(DescriptionFromJson(ToJson(target))), ToJson(target));
  std::map<std::string, std::string> environment = {{"PYTHONPATH", "/mine"}};
  SetPythonHooks(*file.Find("mlp"), environment);
  EXPECT_TRUE(environment.at("PYTHONPATH").ends_with("/startup:/mine"));
  EXPECT_EQ(environment.at("TRAINWRECK_ADAPTER"), "python");
}

TEST(TargetReader, HooksEndARunWhoseCommandNamesNoLength) {
  const auto ends = [](const std::string& command) {
    std::string text = std::string(kHead) + kHooked;
    text.replace(text.find("train.py]"), 9, command);
    return Load(text).Find("mlp")->HooksEndRuns();
  };
  EXPECT_TRUE(ends("train.py]"));
  EXPECT_FALSE(ends("train.py, \"--steps={steps}\"]"));
  EXPECT_FALSE(ends("train.py, \"--steps={run.until}\"]"));
  EXPECT_FALSE(Load(std::string(kHead) + kGood).Find("mlp")->HooksEndRuns()) << "it has no hooks";
}

// What the file says of a signal holds; what a source gives is not recorded twice.
TEST(TargetReader, SignalsOfItsFileAreNotTheHooks) {
  const std::string text = std::string(kHead) + kHooked +
                           "    signals: {loss: {unit: bits}, grad_norm: {floor: 1}}\n"
                           "    sources: [{stdout: 'step (?P<step>\\d+) loss (?P<loss>.*)'}]\n";
  const TargetFile file = Load(text);
  ASSERT_EQ(ErrorsOf(text), "");
  const TargetSpec& spec = *file.Find("mlp");
  const TargetDescription target = DescribeTarget(spec);
  EXPECT_EQ(target.FindSignal("loss")->unit, "bits");
  EXPECT_EQ(std::count_if(target.signals.begin(), target.signals.end(),
                          [](const SignalInfo& signal) { return signal.name == "loss"; }),
            1);
  EXPECT_TRUE(target.HasFeature("late-signals")) << "the hooks write, and the source is read";
  std::map<std::string, std::string> environment;
  SetPythonHooks(spec, environment);
  EXPECT_EQ(environment.at("TRAINWRECK_ADAPTER_WITHOUT"), "loss");
}

TEST(TargetReader, RejectsAdaptersThatThereAreNot) {
  const auto errors = [](const std::string& old, const std::string& other) {
    std::string text = std::string(kHead) + kHooked;
    return ErrorsOf(text.replace(text.find(old), old.size(), other));
  };
  EXPECT_THAT(
      errors("adapter: python", "adapter: ruby"),
      AllOf(HasSubstr(":6:14: error: there is no adapter 'ruby'"), Not(HasSubstr("lacks"))));
  EXPECT_THAT(errors("adapter: python", "level: 1\n    adapter: python\n    signals: {loss: {}}"),
              HasSubstr(":7:14: error: an adapter is for a target of level 0"));
  EXPECT_THAT(errors("steps: 30}", "steps: 30}\n    signals: {pace: {}}"),
              HasSubstr("signal 'pace' comes from no source"));
}

TEST(TargetReader, GoesOnWhereItIsToldTo) {
  const std::string checkpoint = Folder() + "/checkpoint";
  const TargetFile file =
      Load(Broken("--lr={lr}", "--steps={run.until}") +
           "    resume: {arguments: [--load, \"{run.checkpoints}/checkpoint\"], when_exists: "
           "\"{run.checkpoints}/checkpoint\"}\n");
  ASSERT_TRUE(file.errors.empty());
  const TargetSpec& spec = *file.Find("mlp");
  Plan plan;
  plan.recipe = {{"steps", 30}};
  plan.checkpoint_dir = Folder();
  const auto command = [&] {
    return Invoke(spec, plan, PlaceholderValues(spec, plan, "", "", 0, 1)).command;
  };
  std::filesystem::remove(checkpoint);
  EXPECT_THAT(command(), ElementsAre("python3", "train.py", "--steps=30"));
  plan.until = 20;
  EXPECT_THAT(command(), ElementsAre("python3", "train.py", "--steps=20"));
  plan.resume = true;
  EXPECT_EQ(command().size(), 3U) << "there is nothing to go on from";
  std::ofstream(checkpoint) << "x";
  EXPECT_THAT(command(), ElementsAre("python3", "train.py", "--steps=20", "--load", checkpoint));
  plan.resume = false;
  EXPECT_EQ(command().size(), 3U);
  std::filesystem::remove(checkpoint);
}

// A program that resumes by itself is called as before; the event `resumed` says that it did.
TEST(TargetReader, GoesOnByItselfWhereItsFileIs) {
  const std::string checkpoint = Folder() + "/last";
  const TargetFile file =
      Load(std::string(kHead) + kGood + "    resume: {when_exists: \"{run.checkpoints}/last\"}\n");
  ASSERT_TRUE(file.errors.empty());
  const TargetSpec& spec = *file.Find("mlp");
  Plan plan;
  plan.checkpoint_dir = Folder();
  plan.resume = true;
  const auto invoked = [&] {
    return Invoke(spec, plan, PlaceholderValues(spec, plan, "", "", 0, 1));
  };
  std::filesystem::remove(checkpoint);
  const Invocation first = invoked();
  EXPECT_FALSE(first.resumes);
  std::ofstream(checkpoint) << "x";
  EXPECT_TRUE(invoked().resumes);
  EXPECT_EQ(invoked().command, first.command);
  std::filesystem::remove(checkpoint);
}

// A program that writes its trace itself may have signals of modules, and events.
constexpr char kTracing[] = R"(  mlp:
    level: 1
    command: [python3, train.py]
    recipe: {steps: 30}
    signals:
      grad_norm: {scale: log, per_module: true}
      loss: {per_module: false}
    events:
      skipped: {fields: [why, layer], doc: No update.}
      drawn: {on_demand: true}
      resumed: {fields: [from_step]}
)";

TEST(TargetReader, DescribesModulesAndEventsOfATrace) {
  const std::string text = std::string(kHead) + kTracing;
  ASSERT_EQ(ErrorsOf(text), "");
  const TargetFile file = Load(text);
  const TargetDescription target = DescriptionFromJson(ToJson(DescribeTarget(*file.Find("mlp"))));
  EXPECT_TRUE(target.FindSignal("grad_norm")->per_module);
  EXPECT_FALSE(target.FindSignal("loss")->per_module);
  ASSERT_NE(target.FindEvent("skipped"), nullptr);
  EXPECT_THAT(target.FindEvent("skipped")->fields, ElementsAre("why", "layer"));
  EXPECT_EQ(target.FindEvent("skipped")->doc, "No update.");
  EXPECT_FALSE(target.FindEvent("skipped")->on_demand);
  EXPECT_TRUE(target.FindEvent("drawn")->on_demand);
  EXPECT_THAT(target.FindEvent("drawn")->fields, testing::IsEmpty());
  EXPECT_THAT(target.FindEvent("resumed")->fields, ElementsAre("command", "from_step"))
      << "what the harness and the program say of it";
  EXPECT_NE(target.FindEvent("unreadable"), nullptr) << "and the harness's own";
}

TEST(TargetReader, RejectsMistakesInEvents) {
  const auto errors = [](const std::string& old, const std::string& other) {
    std::string text = std::string(kHead) + kTracing;
    return ErrorsOf(text.replace(text.find(old), old.size(), other));
  };
  EXPECT_THAT(errors("drawn:", "exited:"),
              HasSubstr(":13:7: error: the harness has the event 'exited' itself"));
  EXPECT_THAT(errors("drawn:", "stopped:"),
              HasSubstr(":13:7: error: the harness has the event 'stopped' itself"));
  EXPECT_THAT(errors("drawn:", "loss:"), HasSubstr(":13:7: error: 'loss' is a signal already"));
  EXPECT_THAT(errors("drawn:", "gnorm:"), Not(HasSubstr("is a signal already")));
  for (const char* name : {"gnorm", "grad_norm"}) {
    std::string text = std::string(kHead) + kTracing;
    text.replace(text.find("grad_norm:"), 10, "gnorm:")
        .insert(text.find("per_module"), "role: grad_norm, ");
    text.replace(text.find("drawn"), 5, name);
    EXPECT_THAT(ErrorsOf(text), HasSubstr(std::string("'") + name + "' is a signal already"));
  }
  EXPECT_THAT(errors("drawn:", "Drawn:"), HasSubstr(":13:7: error: the name of an event must be"));
  EXPECT_THAT(errors("[why, layer]", "[why, of layer]"),
              HasSubstr(":12:31: error: a field of an event must be"));
  EXPECT_THAT(errors("on_demand: true", "ondemand: true"),
              AllOf(HasSubstr(":13:15: error: unknown key 'ondemand'"),
                    HasSubstr("did you mean 'on_demand'?")));
  EXPECT_THAT(errors("on_demand: true", "on_demand: 1"),
              HasSubstr(":13:26: error: 'on_demand' must be true or false"));
  EXPECT_THAT(errors("per_module: true", "per_module: 1"),
              HasSubstr(":9:43: error: 'per_module' must be true or false"));
  EXPECT_THAT(errors("drawn: {on_demand: true}", "drawn:"), HasSubstr("write drawn: {}"));
}

TEST(TargetReader, HooksGiveModulesOfSomeSignals) {
  const auto of = [](const std::string& more) { return std::string(kHead) + kHooked + more; };
  const std::string text =
      of("    signals: {grad_norm: {per_module: true}}\n"
         "    events: {saved: {}, checkpoint_saved: {fields: [path]}, first_nonfinite: {}}\n");
  ASSERT_EQ(ErrorsOf(text), "");
  const TargetFile file = Load(text);
  const TargetDescription target = DescribeTarget(*file.Find("mlp"));
  EXPECT_TRUE(target.FindSignal("grad_norm")->per_module);
  EXPECT_NE(target.FindEvent("saved"), nullptr);
  EXPECT_THAT(target.FindEvent("checkpoint_saved")->fields,
              testing::IsSupersetOf({"path", "steps_done"}));
  EXPECT_TRUE(target.FindEvent("first_nonfinite")->on_demand) << "as the hooks have it";
  const char kNoModules[] = "comes as one number a step, not per module";
  EXPECT_THAT(ErrorsOf(of("    signals: {loss: {per_module: true}}\n")),
              HasSubstr(std::string(":8:34: error: signal 'loss' ") + kNoModules));
  EXPECT_THAT(ErrorsOf(of("    signals: {grad_norm: {per_module: true}}\n"
                          "    sources: [{stdout: 'norm (?P<grad_norm>.*)'}]\n")),
              HasSubstr(std::string("signal 'grad_norm' ") + kNoModules));
}

constexpr char kOwnNames[] = R"(  mlp:
    command: [python3, train.py]
    recipe: {steps: 30}
    signals:
      train_loss: {scale: log, role: loss, floor: 0.5}
      gnorm: {role: grad_norm}
      eval_loss: {role: eval_loss}
    sources:
      - {stdout: 'step (?P<step>\d+) loss (?P<train_loss>\S+)'}
      - {csv: log.csv, columns: {gnorm: g, eval_loss: e}}
)";

TEST(TargetReader, CallsSignalsByTheirRoles) {
  const std::string text = std::string(kHead) + kOwnNames;
  ASSERT_EQ(ErrorsOf(text), "");
  const TargetFile file = Load(text);
  const TargetSpec& spec = *file.Find("mlp");
  const TargetDescription target = DescriptionFromJson(ToJson(DescribeTarget(spec)));
  ASSERT_NE(target.FindSignal("loss"), nullptr);
  EXPECT_EQ(target.FindSignal("loss")->own_name, "train_loss");
  EXPECT_EQ(target.FindSignal("loss")->scale, Scale::kLog);
  EXPECT_EQ(target.FindSignal("train_loss"), target.FindSignal("loss"));
  EXPECT_EQ(target.FindSignal("gnorm"), target.FindSignal("grad_norm"));
  EXPECT_EQ(target.FindSignal("eval_loss")->own_name, "") << "it has the role by its name";
  EXPECT_TRUE(target.HasFeature(FloorFeature("loss", 0.5)));
  EXPECT_EQ(spec.sources[0].names, (std::map<std::string, std::string>{{"loss", "train_loss"}}));
  EXPECT_EQ(spec.sources[1].names,
            (std::map<std::string, std::string>{{"grad_norm", "g"}, {"eval_loss", "e"}}));
  EXPECT_EQ(spec.signal_positions.at("loss").line, 8);
}

TEST(TargetReader, RejectsMistakesInRolesOfSignals) {
  const auto errors = [](const std::string& old, const std::string& other) {
    std::string text = std::string(kHead) + kOwnNames;
    return ErrorsOf(text.replace(text.find(old), old.size(), other));
  };
  EXPECT_THAT(errors("role: grad_norm", "role: gradnorm"),
              AllOf(HasSubstr(":9:21: error: no role of a signal is called 'gradnorm'"),
                    HasSubstr("did you mean 'grad_norm'?")));
  EXPECT_THAT(errors("role: grad_norm", "role: perplexity"), HasSubstr("one of: loss"));
  EXPECT_THAT(errors("role: grad_norm", "role: loss"),
              AllOf(HasSubstr(":9:21: error: 'train_loss' has the role 'loss' already"),
                    HasSubstr("remove one of the two")));
  EXPECT_THAT(errors("role: grad_norm", "role: eval_loss"),
              HasSubstr(":10:25: error: 'gnorm' has the role 'eval_loss' already"));
  EXPECT_THAT(errors("role: eval_loss", "role: lr"),
              AllOf(HasSubstr(":10:25: error: 'eval_loss' is the name of a role itself"),
                    HasSubstr("give the signal another name")));
  EXPECT_THAT(errors("(?P<train_loss>", "(?P<loss>"),
              AllOf(HasSubstr("the group 'loss' is none of the target's signals"),
                    HasSubstr("known: train_loss, gnorm, eval_loss")));
  EXPECT_THAT(errors("      eval_loss: {role", "      unseen: {}\n      eval_loss: {role"),
              HasSubstr(":10:7: error: signal 'unseen' comes from no source"));
  EXPECT_THAT(errors("gnorm: g, ", ""),
              HasSubstr(":9:7: error: signal 'gnorm' comes from no source"));
}

struct Mistake {
  const char* part;
  const char* other;
  const char* place;
  const char* message;
};

TEST(TargetReader, RejectsMistakesWithTheirPlaces) {
  const Mistake mistakes[] = {
      {"--lr={lr}", "--lr={lrr}", ":5:40:", "nothing of the run is called 'lrr'"},
      {"--lr={lr}", "--lr={lr", ":5:34:", "a '{' without a name and its '}'"},
      {"[python3, train.py", "[{when: lr, arguments: [x]}",
       ":5:22:", "must name a recipe key of type bool"},
      {"steps: {type: int, default: 30, min: 1}", "epochs: 3", ":7:7:", "lacks 'steps'"},
      {"default: 30", "default: 0", ":7:35:", "must be >= 1"},
      {"type: int", "type: integer", ":7:21:", "no type is called 'integer'"},
      {"lr: 0.1", "run.lr: 0.1", ":8:7:", "the harness has 'run.lr' itself"},
      {"scale: log", "scale: logarithmic", ":11:33:", "'scale' must be linear or log"},
      {"(?P<loss>", "(?P<los>", ":13:17:", "'los' is none of the target's signals"},
      {"\\S+)", "\\S+", ":13:17:", "this is no regular expression"},
      {"stdout:", "stdio:", ":13:9:", "must be one of stdout"},
      {"    command:", "    comand:", ":5:5:", "unknown key 'comand'"},
      {"loss: {unit", "other: {unit", ":11:7:", "comes from no source"},
      {"  mlp:", "  reference:", ":4:3:", "is the built-in trainer"},
      {"kind: Targets", "kind: Target", ":2:7:", "'kind' must be Targets"},
      {"--lr={lr}", "{run.data}", ":5:34:", "the target's 'data', which is missing"},
      {"unit: nats", "per_module: true", ":11:26:", "comes as one number a step, not per module"},
      {"    sources:", "    events: {saved: {}}\n    sources:", ":12:13:", "takes no 'events'"},
      {"    command:", "    data: nowhere\n    command:", ":5:11:", "which is not there"},
      {"loss: {unit", "time: {unit", ":11:7:", "the harness has 'time' itself"},
      {"steps: {type: int, default: 30, min: 1}", "steps: 3.5", ":7:7:", "must be a whole number"},
      {"amp: false", "amp: false\n      supervisor.x: 1", ":10:7:", "has 'supervisor.x' itself"},
      {"[python3, train.py, \"--lr={lr}\", {when: amp, arguments: [--amp]}]", "python3 train.py",
       ":5:14:", "must be a list of words"},
  };
  for (const Mistake& mistake : mistakes) {
    const std::string errors = ErrorsOf(Broken(mistake.part, mistake.other));
    EXPECT_THAT(errors, testing::HasSubstr(mistake.message)) << mistake.other;
    EXPECT_THAT(errors, testing::HasSubstr(std::string(mistake.place) + " error")) << mistake.other;
  }
}

TEST(TargetReader, LevelTwoDescribesItself) {
  const std::string text = std::string(kHead) + "  own:\n    level: 2\n    command: [./train]\n";
  EXPECT_EQ(ErrorsOf(text), "");
  EXPECT_THAT(ErrorsOf(text + "    recipe: {steps: 3}\n"),
              testing::HasSubstr("describes itself and takes no 'recipe'"));
  EXPECT_THAT(ErrorsOf(text + "    events: {saved: {}}\n"),
              testing::HasSubstr("describes itself and takes no 'events'"));
}

TEST(TemplateText, KnowsBraces) {
  std::string error;
  EXPECT_EQ(TemplateText::Parse("a{{b}}c{d}", error).Expand({{"d", "x"}}), "a{b}cx");
  EXPECT_EQ(error, "");
  TemplateText::Parse("a}", error);
  EXPECT_NE(error, "");
}

TEST(TemplateText, AddsToWholeNumbers) {
  std::string error;
  EXPECT_EQ(TemplateText::Parse("--last={a.b-1}", error).Expand({{"a.b", "30"}}), "--last=29");
  EXPECT_EQ(TemplateText::Parse("{n+12}{n}", error).Expand({{"n", "-5"}}), "7-5");
  EXPECT_EQ(TemplateText::Parse("{newest:step-1}", error).Expand({{"newest:step-1", "x"}}), "x");
  EXPECT_EQ(error, "");
}

TEST(TargetReader, AddsOnlyToWholeNumbers) {
  const auto errors_with = [](const std::string& word) {
    return ErrorsOf(Broken("command: [", "command: [\"" + word + "\", "));
  };
  EXPECT_EQ(errors_with("{steps-1}"), "");
  EXPECT_EQ(errors_with("{run.seed+7}"), "");
  EXPECT_THAT(errors_with("{run.folder-1}"), testing::HasSubstr("'run.folder' is none\n"));
  EXPECT_THAT(errors_with("{lr+1}"), testing::HasSubstr("write {lr}"));
  EXPECT_THAT(errors_with("{stepz-1}"), testing::HasSubstr("is called 'stepz'"));
}

TEST(TargetReader, ReadsLimitsDigestAndFingerprint) {
  const TargetFile file = Load(
      Broken("    signals:\n      loss: {unit: nats, scale: log}\n",
             "    start_seconds: 300\n    budget: {seconds: 600, stall_seconds: 45, disk: 2GiB}\n"
             "    digest: ['*.cu']\n    fingerprint: {packages: [torch], command: [uname]}\n"
             "    signals:\n      loss: {unit: nats, scale: log, floor: 0.5}\n"));
  ASSERT_TRUE(file.errors.empty());
  const TargetExtras& extras = file.Find("mlp")->extras;
  EXPECT_EQ(extras.start_seconds, 300);
  EXPECT_EQ(extras.seconds, 600);
  EXPECT_EQ(extras.stall_seconds, 45);
  EXPECT_EQ(extras.disk_bytes, 2LL << 30);
  EXPECT_THAT(extras.digest, ElementsAre("*.cu"));
  EXPECT_THAT(extras.packages, ElementsAre("torch"));
  EXPECT_THAT(extras.fingerprint_command, ElementsAre("uname"));
  EXPECT_EQ(extras.floors.at("loss"), 0.5);
  EXPECT_TRUE(DescribeTarget(*file.Find("mlp")).HasFeature("floor:loss=0.5"));
}

TEST(TargetReader, SaysWhatIsWrongWithThem) {
  auto with = [](const std::string& line) { return ErrorsOf(Broken("    signals:\n", line)); };
  EXPECT_THAT(with("    start_seconds: 0\n    signals:\n"),
              testing::HasSubstr("'start_seconds' must be more than 0 and at most a day"));
  EXPECT_THAT(with("    budget: {second: 3}\n    signals:\n"), testing::HasSubstr("'seconds'"));
  EXPECT_THAT(with("    budget: {disk: 300}\n    signals:\n"),
              testing::HasSubstr("'disk' must be a size with its unit"));
  EXPECT_THAT(with("    fingerprint: torch\n    signals:\n"),
              testing::HasSubstr("such as {packages: [torch, numpy]}"));
  EXPECT_THAT(with("    environment: {X: '{newest:a*}'}\n    signals:\n"),
              testing::HasSubstr("{newest:...} can stand only in 'command', 'resume'"));
}

TEST(FindTargetFile, LooksInTheFoldersAbove) {
  const std::string top = Folder() + "/project", below = top + "/src/model";
  std::filesystem::create_directories(below);
  std::ofstream(top + "/trainwreck.yaml") << kHead << kGood;
  EXPECT_EQ(FindTargetFile(top), top + "/trainwreck.yaml");
  EXPECT_EQ(FindTargetFile(below), top + "/trainwreck.yaml");
  std::filesystem::remove_all(top);
}

}  // namespace target_reader_test
}  // namespace trainwreck
