#include "harness/targets/program_options.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace trainwreck {
namespace {

using Words = std::vector<std::string>;

ProgramOption Number(const std::string& name, const std::string& value) { return {{name}, value}; }

struct Added {
  CommandDraft draft;
  OptionFindings findings;
};

// What becomes of a command whose program says that it has these options too.
Added AddTo(const Words& command, std::vector<ProgramOption> options, bool may_add_steps = true) {
  Added added{DraftOf(command), {}};
  const ProgramOptions program{Words(command.begin() + 1, command.end()), std::move(options)};
  added.findings = AddOptions(program, may_add_steps, added.draft);
  return added;
}

const Words kCommand = {"python3", "train.py", "--lr=0.1"};

Words AddedTo(const Words& command, std::vector<ProgramOption> options) {
  const Words words = AddTo(command, std::move(options)).draft.words;
  return {words.begin() + static_cast<std::ptrdiff_t>(command.size()), words.end()};
}

TEST(ProgramOptions, AreCalledByTheLongNamesThatTellTheirRoles) {
  Words command = {"env", "B=1", "train.py", "-b", "16", "-x", "3", "-n", "-b"};
  ProgramOptions program = {Words(command.begin() + 2, command.end()), {}};
  program.long_names = {{"-b", {"--lot", "--batch-size"}}, {"-x", {"--extra", "--xs"}}};
  Words other = command;
  EXPECT_EQ(UseLongNames(DraftOf(command), {{"run.py", "-b", "16"}, {}, program.long_names}, other),
            Words());
  EXPECT_EQ(other, command);
  EXPECT_EQ(UseLongNames(DraftOf(command), program, command),
            (Words{"--batch-size for -b", "--extra for -x", "--batch-size for -b"}));
  EXPECT_EQ(command, (Words{"env", "B=1", "train.py", "--batch-size", "16", "--extra", "3", "-n",
                            "--batch-size"}));
}

TEST(ProgramOptions, BecomeKeysOfTheCommand) {
  const Added added = AddTo(kCommand, {{{"--help"}, "", false},
                                       Number("--seed", "0"),
                                       {{"--lot", "--batch-size"}, "32"},
                                       Number("--clip-norm", "1.0"),
                                       Number("--max-iters", "200"),
                                       Number("--width", "16")});
  Words words = added.draft.words;
  std::sort(words.begin() + 3, words.end());
  EXPECT_EQ(words, (Words{"python3", "train.py", "--lr={lr}", "--batch-size={batch_size}",
                          "--clip-norm={clip_norm}", "--max-iters={steps}", "--seed={run.seed}"}));
  EXPECT_TRUE(added.draft.has_steps);
  EXPECT_EQ(added.draft.seed, "--seed");
  for (const DraftKey& key : added.draft.keys) {
    if (key.name == "steps") {
      EXPECT_EQ(key.value + key.role, "200");
    } else if (key.name == "batch_size") {
      EXPECT_EQ(key.value + key.role, "32batch_size");
    }
    EXPECT_EQ(key.takes_whole, key.name == "steps" || key.name == "batch_size") << key.name;
  }
  Words said = added.findings.added;
  std::sort(said.begin(), said.end());
  EXPECT_EQ(said, (Words{"--batch-size (batch_size)", "--clip-norm (clip_norm)",
                         "--max-iters (steps)", "--seed (seed)"}));
  EXPECT_TRUE(added.findings.open.empty());
}

TEST(ProgramOptions, AreNamedWhereTheyHaveNoValueThatTheRoleMayHave) {
  for (const ProgramOption& option :
       {Number("--clip", ""), Number("--seed", ""), Number("--seed", "-1"), Number("--steps", "1"),
        Number("--steps", "100000"), Number("--batch-size", "0"), Number("--warmup-steps", "0.1"),
        Number("--weight-decay", "-0.5"), Number("--dropout", "")}) {
    const Added added = AddTo(kCommand, {option});
    EXPECT_EQ(added.draft.words.size(), 3u) << option.names[0] << " " << option.value;
    EXPECT_EQ(added.findings.open.size(), 1u) << option.names[0] << " " << option.value;
  }
  EXPECT_EQ(AddTo(kCommand, {Number("--seed", "")}).findings.seed, "--seed");
}

// A folder may be read, too, or switch on that something is written.
TEST(ProgramOptions, OfFoldersAreNamed) {
  const Added added = AddTo(kCommand, {Number("--out", ""), Number("--job.dump_folder", "")});
  EXPECT_EQ(added.draft.words.size(), 3u);
  EXPECT_EQ(added.findings.folders, (Words{"--out", "--job.dump_folder"}));
  EXPECT_TRUE(added.findings.open.empty());
  const Words logs = {"python3", "train.py", "--logdir=a"};
  EXPECT_EQ(AddTo(logs, {Number("--out", ""), Number("--tb_dir", "")}).findings.folders,
            Words{"--out"});
}

TEST(ProgramOptions, OfHydrasFolderIsAdded) {
  const Words command = {"python3", "train.py", "lr=0.1"};
  const Added added = AddTo(command, {Number("hydra.run.dir", ""), Number("data.seed", "3")});
  EXPECT_EQ(added.draft.words, (Words{"python3", "train.py", "lr={lr}",
                                      "hydra.run.dir={run.checkpoints}", "data.seed={run.seed}"}));
  EXPECT_EQ(added.draft.folders, Words{"hydra.run.dir"});
  EXPECT_TRUE(added.findings.folders.empty());
}

// 0 steps of warmup may mean that share then.
TEST(ProgramOptions, LeaveWarmupStepsWhereItIsAShare) {
  const ProgramOption steps = Number("--warmup_steps", "0");
  EXPECT_EQ(AddedTo(kCommand, {steps, Number("--warmup_ratio", "0.0")}),
            Words{"--warmup_steps={warmup_steps}"});
  EXPECT_EQ(AddedTo(kCommand, {steps, Number("--warmup_ratio", "0.1")}), Words());
  const Added added = AddTo({"python3", "train.py", "--trainer.warmup-ratio", "0.1"}, {steps});
  EXPECT_EQ(added.findings.open, Words{"--warmup_steps (warmup_steps)"});
  EXPECT_EQ(added.draft.keys.size(), 1u);
}

TEST(ProgramOptions, MaySeveralTimesRegularise) {
  const Added added = AddTo({"python3", "train.py", "--dropout=0.1"},
                            {Number("--label_smoothing", "0.0"), Number("--drop-path", "0.2")});
  ASSERT_EQ(added.draft.keys.size(), 3u);
  for (const DraftKey& key : added.draft.keys) EXPECT_EQ(key.role, "regularisation") << key.name;
  EXPECT_TRUE(added.findings.rivals.empty());
}

TEST(ProgramOptions, LeaveARoleThatTheCommandHas) {
  const Added added =
      AddTo({"python3", "train.py", "--rate=1", "--lr=0.1", "--seed", "1", "--steps=9", "--out=a"},
            {Number("--learning-rate", "0.1"), Number("--manual-seed", "0"),
             Number("--max-iters", "9"), Number("--save-dir", "")});
  EXPECT_EQ(added.draft.words.size(), 8u);
  EXPECT_TRUE(added.findings.open.empty());
  EXPECT_TRUE(added.findings.rivals.empty());
}

TEST(ProgramOptions, CompeteForARole) {
  Added added = AddTo(kCommand, {Number("--workers", "0"), Number("--num-workers", "0")});
  EXPECT_EQ(added.draft.words.size(), 3u);
  EXPECT_EQ(added.findings.rivals, (Words{"--workers or --num-workers (loader_workers)"}));
  added = AddTo(kCommand, {Number("--warmup", "5"), Number("--warmup-steps", "0")});
  EXPECT_EQ(added.draft.words.back(), "--warmup-steps={warmup_steps}");
  EXPECT_TRUE(added.findings.rivals.empty());
}

// What is added to a script does not reach the program.
TEST(ProgramOptions, AreNotAddedToAnotherCommand) {
  const auto added_to = [](const Words& command, const Words& process) {
    CommandDraft draft = DraftOf(command);
    AddOptions({process, {Number("--seed", "0")}}, true, draft);
    return draft.words.size() > command.size();
  };
  EXPECT_TRUE(added_to({"python3", "train.py"}, {"train.py"}));
  EXPECT_TRUE(added_to({"lightning", "fit"}, {"/usr/bin/lightning", "fit"}));
  EXPECT_TRUE(added_to({"python3", "train.py", "--n={x}", "--out", "a"},
                       {"train.py", "--n={x}", "--out", "/runs/1"}));
  EXPECT_TRUE(added_to({"train", "--batch=2"}, {"train", "--batch=2"}));
  EXPECT_TRUE(added_to({"trl", "sft", "--lr=1"}, {"trl/scripts/sft.py", "--lr=1"}));
  EXPECT_FALSE(added_to({"trl", "sft", "--lr=1"}, {"trl/scripts/dpo.py", "--lr=1"}));
  EXPECT_FALSE(added_to({"bash", "run.sh"}, {"train.py"}));
  EXPECT_FALSE(added_to({"bash", "run.sh", "--lr=0.1"}, {"train.py", "--lr=0.1"}));
  EXPECT_FALSE(added_to({"python3", "train.py", "--a=b"}, {"train.py", "--a=c"}));
  EXPECT_FALSE(added_to({"python3", "train.py"}, {"train.py", "--local_rank=0"}));
  EXPECT_FALSE(added_to({"train.py"}, {"python3", "train.py"}));
  EXPECT_FALSE(added_to({"python3", "train.py"}, {}));
}

TEST(ProgramOptions, AreNotAddedWhereAFileMayHoldTheirValues) {
  const Added added =
      AddTo({"python3", "train.py", "--config=a.yaml"}, {Number("--batch-size", "32")});
  EXPECT_EQ(added.draft.words.size(), 3u);
  EXPECT_EQ(added.findings.open, (Words{"--batch-size (batch_size)"}));
}

TEST(ProgramOptions, GiveNoStepsToAProgramThatMayCountEpochs) {
  const ProgramOption steps = Number("--steps", "50");
  EXPECT_EQ(AddedTo(kCommand, {steps}), (Words{"--steps={steps}"}));
  EXPECT_EQ(AddedTo(kCommand, {steps, Number("--num-epochs", "")}), (Words{"--steps={steps}"}));
  EXPECT_EQ(AddedTo(kCommand, {steps, Number("--num-epochs", "3")}), Words());
  EXPECT_EQ(AddedTo({"python3", "train.py", "--epochs", "3"}, {steps}), Words());
  EXPECT_FALSE(AddTo(kCommand, {steps}, /*may_add_steps=*/false).draft.has_steps);
}

TEST(ProgramOptions, TellHowTheProgramMayResume) {
  const Added added = AddTo(kCommand, {{{"--resume-from-checkpoint"}, ""},
                                       {{"--load"}, "", false},
                                       Number("--loader-workers", "0"),
                                       {{"--load_best_model_at_end"}, "", false}});
  ASSERT_EQ(added.findings.resume.size(), 2u);
  EXPECT_EQ(added.findings.resume[0].names[0], "--resume-from-checkpoint");
  EXPECT_EQ(added.findings.resume[1].names[0], "--load");
}

TEST(ProgramOptions, AreReadFromTheEvent) {
  const ProgramOptions program = ProgramOptionsOf(
      Json::parse(R"({"command": ["train.py"], "options": [{"names": ["--a", "--b"], "default": )"
                  R"("1", "takes_value": true}, {"names": ["--c"], "takes_value": false}]})"));
  EXPECT_EQ(program.command, Words{"train.py"});
  ASSERT_EQ(program.all.size(), 2u);
  EXPECT_EQ(program.all[0].names, (Words{"--a", "--b"}));
  EXPECT_EQ(program.all[0].value, "1");
  EXPECT_FALSE(program.all[1].takes_value);
  EXPECT_TRUE(ProgramOptionsOf(Json::object()).all.empty());
}

}  // namespace
}  // namespace trainwreck
