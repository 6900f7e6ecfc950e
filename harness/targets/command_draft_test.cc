#include "harness/targets/command_draft.h"

#include <gtest/gtest.h>

namespace trainwreck {
namespace {

using Words = std::vector<std::string>;

std::string RoleOf(const CommandDraft& draft, const std::string& name) {
  for (const DraftKey& key : draft.keys) {
    if (key.name == name) return key.role;
  }
  return "no such key";
}

TEST(CommandDraft, MakesKeysOfNumbersInEachForm) {
  const CommandDraft draft = DraftOf({"python3", "train.py", "--max_steps", "200", "--lr=1e-3",
                                      "trainer.gradient_clip_val=1.0", "--seed", "7", "--bf16"});
  EXPECT_EQ(draft.words, (Words{"python3", "train.py", "--max_steps", "{steps}", "--lr={lr}",
                                "trainer.gradient_clip_val={trainer.gradient_clip_val}", "--seed",
                                "{run.seed}", "--bf16"}));
  EXPECT_TRUE(draft.has_steps);
  EXPECT_EQ(draft.seed, "--seed");
  EXPECT_EQ(RoleOf(draft, "lr"), "learning_rate");
  EXPECT_EQ(RoleOf(draft, "trainer.gradient_clip_val"), "clip_norm");
}

TEST(CommandDraft, GivesEachRunItsOwnFolders) {
  const CommandDraft draft =
      DraftOf({"python3", "train.py", "--output-dir", "out", "--logdir=runs/1"});
  EXPECT_EQ(draft.words, (Words{"python3", "train.py", "--output-dir", "{run.checkpoints}",
                                "--logdir={run.folder}"}));
  EXPECT_EQ(draft.folders, (Words{"--output-dir", "--logdir"}));
}

TEST(CommandDraft, GivesEachRunWhatAnOptionLetTheProgramMake) {
  const Words command = {"train.py", "--logs", "out", "--best=b.pt", "--id=7", "out"};
  EXPECT_EQ(OptionValues(command), (std::set<std::string>{"out", "b.pt", "7"}));
  const CommandDraft draft = DraftOf(command, {"out", "b.pt", "7"});
  EXPECT_EQ(draft.words, (Words{"train.py", "--logs", "{run.checkpoints}",
                                "--best={run.checkpoints}/b.pt", "--id={id}", "out"}));
  EXPECT_EQ(draft.folders, (Words{"--logs", "--best"}));
}

TEST(CommandDraft, KnowsTheRanksOfTorchrun) {
  const CommandDraft draft =
      DraftOf({"torchrun", "--standalone", "--nproc-per-node=2", "train.py", "--steps=5"});
  EXPECT_EQ(draft.ranks, 2);
  EXPECT_EQ(draft.words[2], "--nproc-per-node={parallel.ranks}");
}

TEST(CommandDraft, GivesRanksOnOtherMachinesGuards) {
  const CommandDraft draft = DraftOf({"srun", "-N2", "--ntasks-per-node=1", "torchrun",
                                      "--nnodes=2", "--nproc_per_node=1", "train.py", "--lr=0.1"});
  EXPECT_EQ(draft.words, (Words{"srun", "-N2", "--ntasks-per-node=1", "torchrun", "--nnodes=2",
                                "--nproc_per_node=1", "--no_python", "trainwreck", "rank", "--",
                                "python3", "train.py", "--lr={lr}"}));
  EXPECT_EQ(draft.ranks, 2);
  EXPECT_EQ(draft.launcher, "torchrun");
  EXPECT_TRUE(draft.has_guards);
  EXPECT_EQ(DraftOf({"srun", "-n3", "-N", "3", "python3", "train.py"}).words,
            (Words{"srun", "-n{parallel.ranks}", "-N", "3", "trainwreck", "rank", "--", "python3",
                   "train.py"}));
  const Words unknown = {"srun", "python3", "train.py"};  // how many ranks there are
  EXPECT_EQ(DraftOf(unknown).words, unknown);
}

TEST(CommandDraft, LeavesOtherWordsAsTheyAre) {
  const Words command = {"python3", "-m",         "train",     "--config",
                         "a.yaml",  "--name={x}", "--verbose", "--rate-schedule",
                         "cosine",  "7",          "--layers",  "-1"};
  Words expected = command;
  expected[5] = "--name={{x}}";
  expected.back() = "{layers}";
  EXPECT_EQ(DraftOf(command).words, expected);
}

TEST(CommandDraft, MakesNoKeyThatTheFileMayNotHave) {
  const Words command = {"train", "--run.width=3", "--a.9b=4", "parallel.ranks=2", "--9=1"};
  EXPECT_EQ(DraftOf(command).words, command);
}

TEST(CommandDraft, TakesTheLastValueOfAnOptionThatIsGivenTwice) {
  const CommandDraft draft = DraftOf({"train", "--lr", "0.1", "--seed=1", "--lr=0.3", "--seed=2"});
  EXPECT_EQ(draft.words,
            (Words{"train", "--lr", "0.1", "--seed=1", "--lr={lr}", "--seed={run.seed}"}));
  ASSERT_EQ(draft.keys.size(), 1u);
  EXPECT_EQ(draft.keys[0].value, "0.3");
}

TEST(CommandDraft, KnowsANameBehindItsSection) {
  const CommandDraft draft = DraftOf({"train", "--trainer.grad_norm_clip=1.0"});
  EXPECT_EQ(RoleOf(draft, "trainer.grad_norm_clip"), "clip_norm");
}

TEST(CommandDraft, TakesTheFirstOptionOfARole) {
  const CommandDraft draft = DraftOf({"python3", "train.py", "--lr", "0.1", "--base_lr", "0.2"});
  EXPECT_EQ(RoleOf(draft, "lr"), "learning_rate");
  EXPECT_EQ(RoleOf(draft, "base_lr"), "");
}

TEST(CommandDraft, SaysWhichRolesAreOpen) {
  const CommandDraft draft = DraftOf({"train", "--lr=0.1", "--clip=1", "--wd=0", "--batch=8",
                                      "--grad-accum=1", "--workers=0", "--eval-every=5"});
  EXPECT_EQ(OpenRoles(draft), (Words{"warmup_steps", "samples", "save_every"}));
}

TEST(CommandDraft, KnowsSeveralKeysThatRegularise) {
  const CommandDraft draft = DraftOf({"train", "--dropout=0.1", "--model.label_smoothing=0.1",
                                      "--max_train_samples=100", "--num_samples=5"});
  EXPECT_EQ(RoleOf(draft, "dropout"), "regularisation");
  EXPECT_EQ(RoleOf(draft, "model.label_smoothing"), "regularisation");
  EXPECT_EQ(RoleOf(draft, "max_train_samples"), "samples");
  EXPECT_EQ(RoleOf(draft, "num_samples"), "");  // it may be of those that a model writes
}

// A share of the run is no number of steps.
TEST(CommandDraft, KnowsTheUsualNamesOfEachRole) {
  const std::vector<std::pair<std::string, Words>> usual = {
      {"learning_rate", {"--lr", "--learning_rate", "--learning-rate"}},
      {"warmup_steps", {"--warmup_steps", "--lr_scheduler.warmup_steps"}},
      {"clip_norm", {"--max_grad_norm", "--gradient_clip_val", "--training.max_norm"}},
      {"weight_decay", {"--weight_decay", "--optimizer.weight_decay"}},
      {"batch_size", {"--batch_size", "--per_device_train_batch_size"}},
      {"accumulation", {"--gradient_accumulation_steps", "--accumulate_grad_batches"}},
      {"", {"--warmup_ratio", "--precision", "--num_train_epochs"}}};
  for (const auto& [role, options] : usual) {
    for (const std::string& option : options) {
      const CommandDraft draft = DraftOf({"train", option + "=1"});
      ASSERT_EQ(draft.keys.size(), 1u) << option;
      EXPECT_EQ(draft.keys[0].role, role) << option;
    }
  }
}

// Of a command that begins with env.
TEST(CommandDraft, KnowsEnvironmentVariables) {
  const CommandDraft draft =
      DraftOf({"env", "LR=0.1", "SEED=3", "MAX_STEPS=50", "python3", "a.py"});
  EXPECT_EQ(draft.words,
            (Words{"env", "LR={lr}", "SEED={run.seed}", "MAX_STEPS={steps}", "python3", "a.py"}));
  EXPECT_EQ(RoleOf(draft, "lr"), "learning_rate");
}

TEST(CommandDraft, NamesFilesOfSettings) {
  EXPECT_EQ(DraftOf({"train", "--config", "a.yaml", "--b=c.json", "d.py"}).config_files,
            (Words{"a.yaml", "--b=c.json"}));
}

// LightningCLI's options, and Hydra's.
TEST(CommandDraft, KnowsOptionsWithSections) {
  const CommandDraft draft =
      DraftOf({"python3", "cli.py", "fit", "--trainer.max_steps=20", "--optimizer.lr", "0.1",
               "--trainer.default_root_dir=out", "--seed_everything=3", "data.batch_size=8",
               "+trainer.accumulate_grad_batches=2"});
  EXPECT_TRUE(draft.has_steps);
  EXPECT_EQ(draft.words[3], "--trainer.max_steps={steps}");
  EXPECT_EQ(draft.words[6], "--trainer.default_root_dir={run.checkpoints}");
  EXPECT_EQ(draft.words[7], "--seed_everything={run.seed}");
  EXPECT_EQ(RoleOf(draft, "optimizer.lr"), "learning_rate");
  EXPECT_EQ(RoleOf(draft, "data.batch_size"), "batch_size");
  EXPECT_EQ(RoleOf(draft, "trainer.accumulate_grad_batches"), "accumulation");
}

// torchtitan's: it has two options of these names, of which only the section tells what they are.
TEST(CommandDraft, KnowsTheRolesOfOptionsInSections) {
  const CommandDraft draft = DraftOf({"train", "--checkpoint.interval=10", "--profiling.interval=3",
                                      "--validation.freq", "20", "--profiling.profile_freq=7",
                                      "--training.dataloader.num_workers=0", "--freq=1"});
  EXPECT_EQ(RoleOf(draft, "checkpoint.interval"), "save_every");
  EXPECT_EQ(RoleOf(draft, "profiling.interval"), "");
  EXPECT_EQ(RoleOf(draft, "validation.freq"), "evaluate_every");
  EXPECT_EQ(RoleOf(draft, "profiling.profile_freq"), "");
  EXPECT_EQ(RoleOf(draft, "training.dataloader.num_workers"), "loader_workers");
  EXPECT_EQ(RoleOf(draft, "freq"), "");
}

// One that is read, and one that is below another one, stay.
TEST(CommandDraft, GivesEachRunItsFolders) {
  const CommandDraft draft =
      DraftOf({"train", "--job.dump_folder", "outputs", "--save-path=a", "--ckpt_dir=b",
               "--tb_dir=c", "--data_dir=d", "--checkpoint.folder=e", "--model_path=f", "--out=g"});
  EXPECT_EQ(draft.words, (Words{"train", "--job.dump_folder", "{run.checkpoints}",
                                "--save-path={run.checkpoints}", "--ckpt_dir={run.checkpoints}",
                                "--tb_dir={run.folder}", "--data_dir=d", "--checkpoint.folder=e",
                                "--model_path=f", "--out={run.checkpoints}"}));
  EXPECT_EQ(draft.folders,
            (Words{"--job.dump_folder", "--save-path", "--ckpt_dir", "--tb_dir", "--out"}));
}

// A path with an ending keeps its last part: a program that writes a file finds no folder there.
TEST(CommandDraft, FilesLieInTheFoldersOfTheRun) {
  const auto word = [](const std::string& value) {
    return DraftOf({"train", "--save=" + value}).words.back();
  };
  EXPECT_EQ(word("model.pt"), "--save={run.checkpoints}/model.pt");
  EXPECT_EQ(word("/a.b/c/last.safetensors"), "--save={run.checkpoints}/last.safetensors");
  for (const char* folder : {"saved", "out/a.b/c", "v1.2", ".hidden", "a.pt/", "..", "./out"}) {
    EXPECT_EQ(word(folder), "--save={run.checkpoints}") << folder;
  }
}

TEST(CommandDraft, KnowsNoStepsWhereTheyAreNoWholeNumber) {
  EXPECT_FALSE(DraftOf({"python3", "train.py", "--steps", "1.5"}).has_steps);
  EXPECT_FALSE(DraftOf({"python3", "train.py", "--epochs", "2"}).has_steps);
}

}  // namespace
}  // namespace trainwreck
