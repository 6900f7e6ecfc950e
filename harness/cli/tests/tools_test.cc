// layers, memory, overfit, fits, inspect and replay from end to end: with traces written by hand,
// and with the reference trainer, which some of its faults break.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "harness/cli/tests/cli_testing.h"
#include "harness/protocol/json.h"

namespace trainwreck {
namespace {

// A small network with a fault, and a claim that nobody asks for.
std::string Broken(const std::string& inject, const std::string& recipe = "") {
  return "apiVersion: trainwreck/v1\nkind: Scenario\nname: mine/broken\ntitle: Broken\n"
         "recipe:\n"
         "  model: {kind: mlp, layers: 2, width: 32}\n"
         "  data: {kind: features, batch_size: 8}\n"
         "  optimizer: {kind: sgd, lr: 0.05, momentum: 0.9, weight_decay: 0.001}\n"
         "  steps: 30\n" +
         recipe + "inject:\n  broken: " + inject +
         "\nsymptoms:\n  high: at_end loss > 0\n"
         "no_remedy: nobody asks\nremedies:\n  undo: {kind: undo, note: take it out}\n"
         "decoys:\n  lower_lr: {scale: {optimizer.lr: 0.5}}\nseeds: 1\n";
}

class Trainer {
 public:
  explicit Trainer(const std::string& scenario) {
    folder_.Write("scenarios/mine/broken.yaml", scenario);
  }
  Called Call(const std::string& arguments) const {
    return folder_.Call(arguments,
                        "TRAINWRECK_TARGET='" +
                            std::filesystem::absolute("trainer/trainwreck-trainer").string() + "'");
  }
  Json Report() const {
    return Json::parse(folder_.Read("r.json"), nullptr, /*allow_exceptions=*/false);
  }
  Called Overfit(const std::string& arm, const std::string& more = "") const {
    return Call("overfit mine/broken --seeds 2 --report r.json --arm " + arm + " " + more);
  }
  std::string Read(const std::string& file) const { return folder_.Read(file); }
  // Makes the runs that `layers`, `inspect` and `replay` look at.
  void Run(const std::string& arm) const {
    const Called called =
        Call("run mine/broken --keep all --output kept --history none --seed 0 --arm " + arm);
    ASSERT_TRUE(folder_.Has("kept/mine/broken/" + arm + "/0/rank0.jsonl")) << called.output();
  }

 private:
  CliFolder folder_;
};

constexpr char kFreezeHead[] = "{fault: model.freeze_parameters, with: {parameters: ['*']}}";

TEST(OverfitVerb, ASoundTrainerLearnsBothAndSaysInHowManySteps) {
  const Trainer trainer(Broken(kFreezeHead));
  const Called called = trainer.Overfit("control");
  EXPECT_EQ(called.status, 0) << called.output();
  const Json json = trainer.Report();
  ASSERT_TRUE(json.is_object());
  EXPECT_EQ(json["verdict"], "learns");
  EXPECT_EQ(json["switched_off"], Json({"optimizer.weight_decay"}));
  ASSERT_EQ(json["probes"].size(), 2u);
  for (const Json& probe : json["probes"]) {
    ASSERT_EQ(probe["seeds"].size(), 2u);
    for (const Json& seed : probe["seeds"]) EXPECT_LT(seed["learnt_at"], 100) << called.out;
  }
  EXPECT_TRUE(json["clues"].empty()) << called.out;
}

TEST(OverfitVerb, FrozenParametersAreNamed) {
  const Trainer trainer(Broken(kFreezeHead));
  const Called called = trainer.Overfit("fault");
  EXPECT_EQ(called.status, 1) << called.output();
  EXPECT_TRUE(Contains(called.out, "seen: the gradient is 0 in every step")) << called.out;
}

TEST(OverfitVerb, PartOfAFrozenNetworkIsNamedEvenIfTheRestLearns) {
  const Trainer trainer(
      Broken("{fault: model.freeze_parameters, with: {parameters: ['layers.0.*']}}"));
  const Called called = trainer.Overfit("fault");
  EXPECT_TRUE(Contains(called.out, "parameters never change: ")) << called.out;
  EXPECT_TRUE(Contains(called.out, "look: no gradient reaches them")) << called.out;
}

TEST(OverfitVerb, LabelsThatAreWrongInEachEpochAlikeAreLearnt) {
  const Trainer trainer(Broken("{fault: data.shuffle_labels}"));
  const Called called = trainer.Overfit("fault");
  EXPECT_EQ(called.status, 0) << called.output();
  EXPECT_TRUE(Contains(called.out, "labels that are wrong in each epoch alike")) << called.out;
}

TEST(OverfitVerb, ALossWithoutWeightHasNoGradient) {
  const Trainer trainer(Broken(kFreezeHead));
  const Called called = trainer.Overfit("control", "--set loss.weight=0");
  EXPECT_EQ(called.status, 1) << called.output();
  EXPECT_TRUE(Contains(called.out, "seen: the gradient is 0 in every step")) << called.out;
}

TEST(OverfitVerb, ARateThatIsTooLowOrTooHighIsTold) {
  const Trainer trainer(Broken(kFreezeHead));
  const Called low = trainer.Overfit("control", "--set optimizer.lr=0.0005");
  EXPECT_EQ(low.status, 1) << low.output();
  EXPECT_TRUE(Contains(low.out, "look: the rate is too low")) << low.out;
  const Called high = trainer.Overfit("control", "--set optimizer.lr=20");
  EXPECT_EQ(high.status, 1) << high.output();
  const Called none = trainer.Overfit("control", "--set optimizer.lr=0");
  EXPECT_EQ(none.status, 1) << none.output();
  EXPECT_TRUE(Contains(none.out, "seen: no parameter changes in any step")) << none.out;
}

TEST(OverfitVerb, RefusesATargetWithoutTheRole) {
  const CliFolder folder;
  folder.WritePassing("slow");
  const Called called = folder.Call("overfit fake/slow");
  EXPECT_EQ(called.status, 2) << called.output();
  EXPECT_TRUE(Contains(called.err, "role 'samples'")) << called.err;
}

constexpr char kBadSample[] = "{fault: data.corrupt_sample, with: {value: nan, samples: [137]}}";
constexpr char kFewSamples[] = "  data.samples: 200\n  sampler.shuffle: false\n";

TEST(LayersVerb, MakesTheRunAgainWithWhatWasNotRecorded) {
  const Trainer trainer(Broken(kBadSample, kFewSamples));
  trainer.Run("control");
  const Called bare = trainer.Call("layers kept/mine/broken/control/0");
  EXPECT_EQ(bare.status, 5) << bare.output();
  EXPECT_TRUE(Contains(bare.out, "not recorded: param_norm{*}")) << bare.out;
  const Called again = trainer.Call("layers kept/mine/broken/control/0 --again --step 12");
  EXPECT_EQ(again.status, 0) << again.output();
  EXPECT_TRUE(Contains(again.out, "made again: the same bits in all stored signals")) << again.out;
  EXPECT_TRUE(Contains(again.out, ", step 12, loss ")) << again.out;
  EXPECT_TRUE(Contains(again.out, "\nhead")) << again.out;
  EXPECT_FALSE(Contains(again.out, "not recorded")) << again.out;
}

TEST(LayersVerb, ReadsATraceOfAnyProgram) {
  const CliFolder folder;
  folder.Write("run/rank0.jsonl",
               "{\"t\":\"start\",\"time\":0}\n"
               "{\"t\":\"step\",\"step\":0,\"loss\":2,\"act_std{fc}\":0.5,"
               "\"grad_norm{fc.weight}\":\"nan\",\"grad_nonfinite{fc.weight}\":4}\n"
               "{\"t\":\"end\",\"why\":\"completed\",\"step\":1}\n");
  const Called called = folder.Call("layers run");
  EXPECT_EQ(called.status, 0) << called.output();
  EXPECT_TRUE(Contains(called.out, "nan")) << called.out;
  EXPECT_TRUE(Contains(called.out, "grad 4")) << called.out;
  EXPECT_EQ(folder.Call("layers run --again").status, 2) << "there is no plan";
  EXPECT_EQ(folder.Call("layers run --step 7").status, 5);
}

TEST(MemoryVerb, ExplainsThePeakAndTellsAPlateauFromALeak) {
  const Trainer trainer(Broken("{fault: loss.retain_graph}"));
  trainer.Run("control");
  const Called control = trainer.Call("memory kept/mine/broken/control/0");
  EXPECT_EQ(control.status, 0) << control.output();
  EXPECT_TRUE(Contains(control.out, "# plateau")) << control.out;
  EXPECT_TRUE(Contains(control.out, "% ")) << control.out;
  EXPECT_FALSE(Contains(control.out, "allocated by")) << "nobody asked";
  const Called again = trainer.Call("memory kept/mine/broken/control/0 --again");
  EXPECT_EQ(again.status, 0) << again.output();
  EXPECT_TRUE(Contains(again.out, "# made again: the same bits")) << again.out;
  EXPECT_TRUE(Contains(again.out, "allocated by")) << again.out;
  EXPECT_TRUE(Contains(again.out, "TrainingLoop::Evaluate (trainer/loop_evaluation.cc:"))
      << again.out;
  trainer.Run("fault");
  const Called fault = trainer.Call("memory kept/mine/broken/fault/0 --format json");
  EXPECT_EQ(fault.status, 1) << fault.output();
  const Json json = Json::parse(fault.out, nullptr, /*allow_exceptions=*/false);
  ASSERT_TRUE(json.is_object()) << fault.out;
  EXPECT_EQ(json["verdict"], "grows");
  for (const Json& part : json["parts"]) {
    if (part["owner"] != "activations") continue;
    EXPECT_GT(part["growth"]["interval"][0], 1000);
  }
}

TEST(TimelineVerb, DrawsTheMemoryOfEachStageOfARunMadeAgain) {
  const Trainer trainer(Broken(kFreezeHead));
  trainer.Run("control");
  const Called called = trainer.Call("timeline kept/mine/broken/control/0 --again -o -");
  EXPECT_EQ(called.status, 0) << called.err;
  const Json timeline = Json::parse(called.out, nullptr, /*allow_exceptions=*/false);
  ASSERT_TRUE(timeline.is_object()) << called.output();
  double most = 0, least = 1e18;
  int points = 0;
  for (const Json& event : timeline["traceEvents"]) {
    if (event["name"] != "memory in use") continue;
    ++points;
    EXPECT_GT(event["args"]["parameters"], 0);
    most = std::max(most, event["args"]["activations"].get<double>());
    least = std::min(least, event["args"]["activations"].get<double>());
  }
  EXPECT_GE(points, 30 * 4) << "data, forward, backward, update";
  EXPECT_GT(most, 4 * 8 * 32)
      << "a layer of width 32 for a batch of 8, as the backward pass begins";
  EXPECT_LT(least, most / 2);
}

TEST(InspectVerb, ShowsTheFailingBatchAndTheSampleAtFault) {
  const Trainer trainer(Broken(kBadSample, kFewSamples));
  trainer.Run("fault");
  const Called called = trainer.Call("inspect kept/mine/broken/fault/0 --all");
  EXPECT_EQ(called.status, 0) << called.output();
  EXPECT_TRUE(Contains(called.out, "# step 17 of mine/broken/fault/0"))
      << "137 / 8: " << called.out;
  EXPECT_TRUE(Contains(called.out, "sample 137")) << called.out;
  EXPECT_TRUE(Contains(called.out, "nan")) << called.out;
  EXPECT_TRUE(Contains(called.out, "samples at fault: [137]")) << called.out;
  const Called earlier = trainer.Call("inspect kept/mine/broken/fault/0 --step 2");
  EXPECT_EQ(earlier.status, 0) << earlier.output();
  EXPECT_TRUE(Contains(earlier.out, "sample 16")) << earlier.out;
  EXPECT_TRUE(Contains(earlier.out, "[8,32]")) << earlier.out;
  const Called random = trainer.Call("inspect kept/mine/broken/fault/0 --random");
  EXPECT_EQ(random.status, 0) << random.output();
  EXPECT_TRUE(Contains(random.out, "sample ")) << random.out;
  EXPECT_EQ(trainer.Call("inspect kept/mine/broken/fault/0 --random --step 1").status, 2);
}

TEST(ReplayVerb, RepeatsTheFailingStepBitByBitAndNamesTheCause) {
  const Trainer trainer(Broken(kBadSample, kFewSamples));
  trainer.Run("fault");
  const Called called = trainer.Call("replay kept/mine/broken/fault/0");
  EXPECT_EQ(called.status, 0) << called.output();
  EXPECT_TRUE(Contains(called.out, "first nan: stage data, module batch, tensor inputs"))
      << called.out;
  EXPECT_TRUE(Contains(called.out, "signals have the same bits")) << called.out;
  EXPECT_TRUE(Contains(called.out, "from the state that the run saved")) << called.out;
  EXPECT_TRUE(Contains(called.out, "which is of the forward pass's loss > aten::")) << called.out;
  const Called healthy = trainer.Call("replay kept/mine/broken/fault/0 --step 9");
  EXPECT_EQ(healthy.status, 0) << healthy.output();
  EXPECT_FALSE(Contains(healthy.out, "first nan")) << healthy.out;
  EXPECT_FALSE(Contains(healthy.out, "saved")) << healthy.out;
  EXPECT_EQ(trainer.Call("replay kept/mine/broken/fault/0 --step 30").status, 2);
}

// Whatever a step changes before its update is as it was: where the data stands in workers that
// fetch ahead, running statistics, moments, and each rank's own samples.
TEST(ReplayVerb, MakesJustTheStepFromTheStateOfAllRanks) {
  const Trainer trainer(
      Broken("{fault: data.corrupt_sample, with: {value: nan, samples: [137]}}",
             "  data.samples: 200\n  model.batch_norm: true\n"
             "  schedule: {kind: warmup_cosine, warmup_steps: 4}\n  accumulation: 2\n"
             "  loader: {workers: 1, prefetch: 2}\n  parallel.ranks: 2\n"));
  trainer.Run("fault");
  for (int rank = 0; rank < 2; ++rank) {
    const Called called =
        trainer.Call("replay kept/mine/broken/fault/0 --rank " + std::to_string(rank));
    EXPECT_EQ(called.status, 0) << called.output();
    EXPECT_TRUE(Contains(called.out, "from the state that the run saved")) << called.out;
  }
}

// The fault arm's run, replayed, has the same bits, and `words` say how the step was made.
void ExpectReplay(const Trainer& trainer, const std::string& options, const std::string& words) {
  trainer.Run("fault");
  const Called called = trainer.Call("replay kept/mine/broken/fault/0 " + options);
  EXPECT_EQ(called.status, 0) << called.output();
  EXPECT_TRUE(Contains(called.out, words)) << called.out;
}

// The bit, which makes a weight of 1 infinite, is flipped before the state is saved, and would be
// flipped back.
TEST(ReplayVerb, MakesTheRunAgainWhereTheSavedStateLeadsElsewhere) {
  const Trainer trainer(
      Broken("{fault: model.bit_flip, with: {parameter: '*norm*.weight', bit: 30}, at: 1}",
             "  model.layer_norm: true\n"));
  ExpectReplay(trainer, "", "made again from the beginning");
}

// After 11 of 30 steps.
constexpr char kStopsEarly[] = "  eval.every: 1\n  early_stop.patience: 1\n  data.samples: 8\n";

TEST(SeedsAndOverfitVerbs, TakeNoEarlyStopForAFailure) {
  const Trainer trainer(Broken(kFreezeHead, kStopsEarly));
  const Called seeds = trainer.Call("seeds mine/broken --seeds 3");
  EXPECT_EQ(seeds.status, 0) << seeds.output();
  EXPECT_FALSE(Contains(seeds.out, "diverged")) << seeds.out;
  const Called overfit = trainer.Overfit("control");
  EXPECT_EQ(overfit.status, 0) << overfit.output();
  EXPECT_EQ(trainer.Report()["switched_off"],
            Json({"early_stop.patience", "optimizer.weight_decay"}));
}

// Gradients that are kept are in no checkpoint.
TEST(ReplayVerb, MakesTheRunInOnePieceWhereCheckpointsLackSomething) {
  const Trainer trainer(Broken("{fault: optimizer.keep_gradients}"));
  ExpectReplay(trainer, "--step 9", "made again in one piece");
}

// What the replay records besides takes nothing of the limit. Its checkpoint would: so it is made
// in one piece.
TEST(ReplayVerb, DiesOfTheSameAllocation) {
  const Trainer trainer(Broken("{fault: loss.retain_graph}", "  memory.limit_bytes: 60000\n"));
  ExpectReplay(trainer, "", "failed as in the stored run: rank 0 in stage ");
  const auto asked = [](const std::string& text) {
    const std::size_t at = text.find("Tried to allocate");
    return at == std::string::npos ? "" : text.substr(at, text.find('\n', at) - at);
  };
  const Called called = trainer.Call("replay kept/mine/broken/fault/0");
  EXPECT_FALSE(asked(called.out).empty()) << called.out;
  EXPECT_EQ(asked(called.out), asked(trainer.Read("kept/mine/broken/fault/0/rank0.stderr") + "\n"));
  for (const std::string verb : {"replay", "inspect", "layers", "memory"}) {
    const Called other = trainer.Call(verb + " kept/mine/broken/fault/0 --rank 1");
    EXPECT_EQ(other.status, 2) << verb;
    EXPECT_TRUE(Contains(other.err, "the run has rank 0 alone")) << other.output();
  }
}

// With its last step a run that stops early also goes back to its best weights.
TEST(ReplayVerb, StopsWhereTheRunStopped) {
  const Trainer trainer(Broken(kFreezeHead, kStopsEarly));
  trainer.Run("control");
  const Called called = trainer.Call("replay kept/mine/broken/control/0 --all");
  EXPECT_EQ(called.status, 0) << called.output();
  EXPECT_TRUE(Contains(called.out, "eval_loss")) << called.out;
  EXPECT_FALSE(Contains(called.out, "# step 29 ")) << "it did not stop early";
}

constexpr char kOnGpt[] =
    "--set model.kind=gpt --set data.kind=markov --set data.vocab=32 --set data.seq_len=32 --set "
    "optimizer.kind=adamw ";

// Nine recipes: the prediction is near to what the recipe needs, the largest size fits into the
// budget, and one more does not.
TEST(FitsVerb, PredictsThePeakAndFindsTheLargestSizeThatFits) {
  const Trainer trainer(Broken(kFreezeHead));
  const std::string on_gpt = kOnGpt;
  // In small batches a network this small needs the most to evaluate, in large ones within the
  // backward pass, and there first at one layer, then at another.
  const std::string at_256 = "--set data.batch_size=256 ", at_64 = "--set data.batch_size=64 ";
  const std::vector<std::string> recipes = {
      at_256 + "--budget 4MB",
      at_64 + "--budget 4MB",
      at_256 + "--budget 4MB --set model.batch_norm=true",
      at_256 + "--budget 4MB --set model.kind=prototype",
      at_64 + "--budget 4MB --set model.kind=prototype",
      at_64 + "--budget 30MB --set model.kind=rnn --set data.kind=markov --set data.seq_len=16",
      at_64 + on_gpt + "--budget 30MB",
      at_64 + on_gpt + "--budget 30MB --set model.activation_checkpointing=true",
      on_gpt + "--budget 30MB --set model.attention=explicit --vary data.seq_len"};
  for (const std::string& recipe : recipes) {
    const Called called = trainer.Call("fits mine/broken --verify --report r.json " + recipe);
    EXPECT_EQ(called.status, 0) << recipe << called.output();
    const Json json = trainer.Report();
    ASSERT_TRUE(json.is_object() && json["largest"].is_number()) << recipe << called.output();
    const double needed = json["verified_bytes"], predicted = json["predicted_bytes"];
    EXPECT_NEAR(predicted / needed, 1, 0.05) << recipe << called.out;
    EXPECT_FALSE(json["own_is_measured"]) << recipe;
    const double budget = Contains(recipe, "30MB") ? 30e6 : 4e6;
    EXPECT_LE(json["fits"]["peak_bytes"], budget) << recipe << called.out;
    EXPECT_GT(json["exceeds"]["peak_bytes"], budget) << recipe << called.out;
    EXPECT_EQ(json["exceeds"]["size"], json["fits"]["size"].get<int>() + 1);
  }
  EXPECT_EQ(trainer.Call("fits mine/broken --budget 10kB").status, 1) << "the recipe does not fit";
}

TEST(FitsVerb, RefusesWhatItCannotVaryOrMeasure) {
  const Trainer trainer(Broken(kFreezeHead));
  EXPECT_EQ(trainer.Call("fits mine/broken --budget much").status, 2);
  EXPECT_EQ(trainer.Call("fits mine/broken --vary optimizer.lr").status, 2);
  EXPECT_EQ(trainer.Call("fits mine/broken --vary no.key").status, 2);
  const CliFolder folder;
  folder.WritePassing("slow");
  EXPECT_EQ(folder.Call("fits fake/slow").status, 2);
}

}  // namespace
}  // namespace trainwreck
