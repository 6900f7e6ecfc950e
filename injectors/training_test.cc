// Every fault in the reference loop: that it does what its evidence says, that the recipe's own
// remedies see it, and that outside its trigger not a bit of the run changes.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "injectors/injector.h"
#include "trainer/build.h"
#include "trainer/ranks/forked_ranks.h"

namespace trainwreck {
namespace {

// What one rank left.
struct RankTrace {
  RankEnd end;
  std::vector<Json> records;

  std::vector<Json> Events(const std::string& name) const {
    std::vector<Json> events;
    for (const Json& record : records) {
      if (record.value("event", "") == name) events.push_back(record);
    }
    return events;
  }
  // The values of every step, in the order of the records.
  std::vector<double> Signal(const std::string& name) const {
    std::vector<double> values;
    for (const Json& record : records) {
      if (record["t"] != "step") continue;
      const std::optional<double> value = DecodeNumber(record.value(name, Json()));
      EXPECT_TRUE(value.has_value()) << name << " in " << record;
      values.push_back(value.value_or(-1));
    }
    return values;
  }
  std::string why() const {
    return !records.empty() && records.back()["t"] == "end" ? records.back()["why"] : "";
  }
};

Wrappers MakeWrappers(const Plan& plan, int rank, int world_size, const Clock& clock,
                      EventSink& events) {
  Wrappers wrappers;
  const InjectorContext context{
      &clock, &events, rank, world_size, plan.seed, &plan.recipe, plan.checkpoint_dir};
  for (auto& injector : MakeInjectors(plan.faults, context))
    wrappers.push_back(std::move(injector));
  return wrappers;
}

class FaultInTraining : public testing::Test {
 protected:
  FaultInTraining() {
    plan.run = "test";
    plan.seed = 3;
    plan.checkpoint_dir = folder.File("checkpoints");
    plan.recipe = {{"steps", 20}, {"data.samples", 128}, {"eval.at_epoch_end", false}};
  }

  void Inject(const std::string& fault, std::map<std::string, Json> with, Trigger trigger = {}) {
    plan.faults = {{.id = "it", .fault = fault, .with = std::move(with), .trigger = trigger}};
  }

  // Trains in forks, one a rank.
  std::vector<RankTrace> RunRanks(int world_size) {
    const std::string name = "run" + std::to_string(runs_++);
    std::string trace_dir = folder.File(name);
    std::filesystem::create_directory(trace_dir);
    plan.recipe["parallel.ranks"] = world_size;
    plan.rendezvous = folder.File(name + ".rendezvous");
    const auto ends = RunForked(world_size, [&](int rank) {
      return std::to_string(Train(plan, rank, world_size, trace_dir, MakeWrappers));
    });
    std::vector<RankTrace> traces;
    for (int rank = 0; rank < world_size; ++rank) {
      RankTrace trace{.end = ends.at(rank)};
      std::ifstream file(trace_dir + "/rank" + std::to_string(rank) + ".jsonl");
      for (std::string line; std::getline(file, line);) trace.records.push_back(Json::parse(line));
      traces.push_back(std::move(trace));
    }
    return traces;
  }
  RankTrace RunOne() { return RunRanks(1).at(0); }

  ScratchFolder folder;
  Plan plan;

 private:
  int runs_ = 0;
};

class CorruptSampleInTraining : public FaultInTraining {};

TEST_F(CorruptSampleInTraining, TurnsTheLossIntoNanAtItsStep) {
  Inject("data.corrupt_sample", {}, {.at = 5});
  const RankTrace run = RunOne();
  const std::vector<double> loss = run.Signal("loss");
  ASSERT_EQ(loss.size(), 20U);
  for (int step = 0; step < 20; ++step) EXPECT_EQ(std::isnan(loss[step]), step >= 5) << step;
  ASSERT_EQ(run.Events("fired").size(), 1U);
  ASSERT_EQ(run.Events("nonfinite_batch").size(), 1U);
  EXPECT_EQ(run.Events("nonfinite_batch")[0]["samples"],
            Json::array({run.Events("fired")[0]["sample"]}));
}

TEST_F(CorruptSampleInTraining, IsStoppedByTheLoadersGuard) {
  Inject("data.corrupt_sample", {}, {.at = 5});
  for (const char* guard : {"skip_batch", "drop_sample"}) {
    SCOPED_TRACE(guard);
    plan.recipe["loader.guard"] = guard;
    const RankTrace run = RunOne();
    EXPECT_EQ(run.why(), "completed");
    for (const double loss : run.Signal("loss")) EXPECT_TRUE(std::isfinite(loss));
    EXPECT_EQ(run.Events("fired").size(), 1U);
    EXPECT_GT(run.Signal("skipped").back(), 0);
  }
  plan.recipe["loader.guard"] = "stop";
  const RankTrace run = RunOne();
  EXPECT_EQ(run.end.output, "3");
  EXPECT_EQ(run.why(), "guard");
  EXPECT_EQ(run.Signal("loss").size(), 5U);
}

TEST_F(CorruptSampleInTraining, CrashesOnAnIndexOutOfRange) {
  plan.recipe.insert({{"model.kind", "gpt"}, {"data.kind", "markov"}, {"data.seq_len", 8}});
  for (const char* value : {"bad_label", "bad_token"}) {
    SCOPED_TRACE(value);
    Inject("data.corrupt_sample", {{"value", value}}, {.at = 2});
    const RankTrace run = RunOne();
    EXPECT_EQ(run.end.output, "1");
    EXPECT_EQ(run.why(), "exception");
    EXPECT_EQ(run.Signal("loss").size(), 2U);
  }
}

class FreezeParametersInTraining : public FaultInTraining {
 protected:
  FreezeParametersInTraining() {
    plan.record = {"updated{head.*}", "updated{layers.*}"};
    Inject("model.freeze_parameters", {{"parameters", {"head.*"}}});
  }
};

TEST_F(FreezeParametersInTraining, UpdatesNothingOfWhatIsFrozen) {
  const RankTrace run = RunOne();
  for (const double updated : run.Signal("updated{head.weight}")) EXPECT_EQ(updated, 0);
  for (const double updated : run.Signal("updated{layers.0.weight}")) EXPECT_GT(updated, 0);
  EXPECT_EQ(run.Events("fired").size(), 1U);
}

TEST_F(FreezeParametersInTraining, IsNamedByTheAudit) {
  plan.recipe["audit.coverage"] = "report";
  const RankTrace run = RunOne();
  ASSERT_EQ(run.Events("untrained").size(), 1U);
  EXPECT_EQ(run.Events("untrained")[0]["parameters"], Json({"head.weight", "head.bias"}));
  EXPECT_EQ(run.Events("untrained")[0]["why"], "no gradient");
  plan.recipe["model.trainable"] = "layers.*";
  EXPECT_TRUE(RunOne().Events("untrained").empty()) << "the recipe does not train the head";
}

TEST_F(FaultInTraining, EvalInTrainModeShowsInEvaluationsAlone) {
  plan.recipe["model.batch_norm"] = true;
  const RankTrace plain = RunOne();
  Inject("recipe.eval_in_train_mode", {});
  const RankTrace run = RunOne();
  EXPECT_EQ(run.Signal("loss"), plain.Signal("loss"));
  const auto evaluated = [](const RankTrace& trace) {
    return trace.Events("evaluated").at(0)["loss"];
  };
  EXPECT_NE(evaluated(run), evaluated(plain));
  EXPECT_EQ(run.Events("fired").size(), 1U);
}

TEST_F(FaultInTraining, SummedMicroBatchesMultiplyTheGradient) {
  plan.recipe.insert({{"accumulation", 4}, {"data.samples", 512}, {"steps", 2}});
  const RankTrace mean = RunOne();
  Inject("recipe.summed_micro_batches", {});
  const RankTrace sum = RunOne();
  EXPECT_NEAR(sum.Signal("grad_norm")[0], 4 * mean.Signal("grad_norm")[0], 1e-4);
  EXPECT_EQ(sum.Signal("loss")[0], mean.Signal("loss")[0]) << "what is reported stays a mean";
  EXPECT_EQ(sum.Events("fired").size(), 1U);
}

class DropEntriesInTraining : public FaultInTraining {};

TEST_F(DropEntriesInTraining, ResumesWithoutThem) {
  plan.recipe["optimizer.kind"] = "adamw";
  Inject("checkpoint.drop_entries", {{"entries", {"optimizer.*"}}}, {.at = 10});
  plan.until = 10;
  EXPECT_EQ(RunOne().Events("fired").size(), 1U);
  plan.until.reset();
  plan.resume = true;
  const RankTrace resumed = RunOne();
  ASSERT_EQ(resumed.Events("resumed").size(), 1U);
  EXPECT_EQ(resumed.Events("resumed")[0]["from_step"], 10);
  const Json missing = resumed.Events("resumed")[0]["missing"];
  EXPECT_FALSE(missing.empty());
  for (const Json& name : missing) {
    EXPECT_TRUE(name.get<std::string>().starts_with("optimizer.")) << name;
  }
  EXPECT_TRUE(resumed.Events("fired").empty()) << "the trigger names one checkpoint";
}

class UnevenShardsInTraining : public FaultInTraining {
 protected:
  UnevenShardsInTraining() {
    plan.recipe["data.samples"] = 64;  // four batches a rank and epoch
    plan.recipe["steps"] = 10;
    Inject("data.uneven_shards", {});
  }
};

TEST_F(UnevenShardsInTraining, BreaksRanksThatDoNotAgree) {
  plan.recipe["parallel.timeout_s"] = 2;
  for (const RankTrace& run : RunRanks(2)) {
    EXPECT_EQ(run.why(), "exception") << run.end.output;
    EXPECT_LE(run.Signal("loss").size(), 4U);
  }
}

TEST_F(UnevenShardsInTraining, IsHarmlessToRanksThatDo) {
  for (const char* mode : {"drop_last", "pad", "join"}) {
    SCOPED_TRACE(mode);
    plan.recipe["sampler.uneven"] = mode;
    const auto runs = RunRanks(2);
    for (const RankTrace& run : runs) EXPECT_EQ(run.why(), "completed") << run.end.output;
    EXPECT_TRUE(runs[0].Events("fired").empty());
    EXPECT_EQ(runs[1].Events("fired").size(), 1U);
    EXPECT_EQ(runs[0].Signal("loss"), runs[1].Signal("loss"));
  }
}

class CrashRankInTraining : public FaultInTraining {};

TEST_F(CrashRankInTraining, LeavesItsEvidenceAsTheLastRecord) {
  Inject("process.crash_rank", {{"how", "sigkill"}}, {.at = 7, .ranks = {1}});
  const auto runs = RunRanks(2);
  EXPECT_EQ(runs[1].end.signal, 9);
  EXPECT_EQ(runs[1].records.back().value("event", ""), "fired");
  EXPECT_EQ(runs[1].records.back().value("step", -1), 7);
  EXPECT_EQ(runs[1].Signal("loss").size(), 7U);
  EXPECT_EQ(runs[0].why(), "exception")
      << "signal " << runs[0].end.signal << " " << runs[0].records.back();
}

TEST_F(CrashRankInTraining, ThrowsOutOfTheLoop) {
  Inject("process.crash_rank", {}, {.at = 7});
  const RankTrace run = RunOne();
  EXPECT_EQ(run.end.output, "1");
  ASSERT_EQ(run.Events("exception").size(), 1U);
  EXPECT_EQ(run.Events("exception")[0]["what"], "injected exception at step 7 on rank 0");
}

TEST_F(FaultInTraining, ThatThePlanGetsWrongIsABadPlan) {
  Inject("data.corrupt_sample", {{"valeu", "inf"}});
  const RankTrace run = RunOne();
  EXPECT_EQ(run.end.output, "2");
  EXPECT_EQ(run.why(), "bad_plan");
}

class DesyncInTraining : public FaultInTraining {
 protected:
  DesyncInTraining() {
    plan.record = {"param_digest"};
    plan.recipe["parallel.check_every"] = 4;
    plan.recipe["checkpoint.every"] = 4;
  }
  // In step 10, between the checks and checkpoints after 8 and 12 steps.
  void FlipABit() {
    Inject("model.bit_flip", {{"parameter", "head.weight"}, {"bit", 23}}, {.at = 10, .ranks = {1}});
  }
  static std::vector<int> StepsApart(const std::vector<RankTrace>& runs) {
    const auto a = runs[0].Signal("param_digest"), b = runs[1].Signal("param_digest");
    std::vector<int> apart;
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (a[i] != b[i]) apart.push_back(static_cast<int>(i));
    }
    return apart;
  }
};

TEST_F(DesyncInTraining, NamesRankAndTensorOfAFlippedBit) {
  FlipABit();
  const auto runs = RunRanks(2);
  const auto desync = runs[0].Events("desync");
  ASSERT_EQ(desync.size(), 3U) << "after 12, 16 and 20 steps";
  EXPECT_EQ(desync[0]["step"], 11);
  EXPECT_EQ(desync[0]["ranks"], Json({1}));
  EXPECT_EQ(desync[0]["tensors"], Json({"head.weight"}));
  EXPECT_EQ(desync[0]["reference"], "rank 0");
  EXPECT_TRUE(runs[1].Events("desync").empty()) << "rank 0 speaks for all";
  EXPECT_EQ(StepsApart(runs).front(), 10);
  EXPECT_EQ(StepsApart(runs).size(), 10U);
}

TEST_F(DesyncInTraining, IsHealedByRankZerosBroadcast) {
  FlipABit();
  for (const char* optimizer : {"sgd", "adamw"}) {
    SCOPED_TRACE(optimizer);
    plan.recipe["optimizer.kind"] = optimizer;
    plan.recipe["parallel.on_desync"] = "broadcast";
    const auto runs = RunRanks(2);
    EXPECT_EQ(StepsApart(runs), (std::vector<int>{10})) << "healed before step 11 is recorded";
    EXPECT_EQ(runs[0].Events("desync").size(), 1U);
    EXPECT_EQ(runs[0].Events("rebroadcast").size(), 1U);
  }
}

TEST_F(DesyncInTraining, IsUndoneByARollback) {
  plan.recipe["parallel.on_desync"] = "rollback";
  const std::string norm = "grad_norm{head.weight}";
  plan.record.push_back(norm);
  const RankTrace undamaged = RunRanks(2).at(0);
  const auto control = undamaged.Signal("param_digest");
  std::filesystem::remove_all(plan.checkpoint_dir);
  FlipABit();
  const auto runs = RunRanks(2);
  for (const RankTrace& run : runs) {
    EXPECT_EQ(run.why(), "completed") << run.end.output;
    ASSERT_EQ(run.Events("rolled_back").size(), 1U);
    EXPECT_EQ(run.Events("rolled_back")[0]["from_step"], 11);
    EXPECT_EQ(run.Events("rolled_back")[0]["to_step"], 8);
    EXPECT_EQ(run.Signal("param_digest").back(), control.back()) << "bit by bit";
    EXPECT_EQ(run.Signal(norm).at(11), undamaged.Signal(norm).at(8)) << "nothing of step 11 in it";
    EXPECT_TRUE(run.Events("resumed").empty());
  }
  EXPECT_EQ(runs[1].Events("fired").size(), 1U);
}

// A checkpoint of the time between flip and check holds the flipped bit; it must be passed over.
TEST_F(DesyncInTraining, GoesBackToACheckpointOnWhichTheRanksAgree) {
  plan.recipe["parallel.on_desync"] = "rollback";
  plan.recipe["checkpoint.every"] = 3;
  Inject("model.bit_flip", {{"parameter", "head.weight"}}, {.at = 8, .ranks = {1}});
  const auto runs = RunRanks(2);
  ASSERT_EQ(runs[0].Events("rolled_back").size(), 1U);
  EXPECT_EQ(runs[0].Events("rolled_back")[0]["to_step"], 6) << "not 9";
  EXPECT_TRUE(runs[0].Events("fired").empty());
}

TEST_F(DesyncInTraining, EndsARunThatStopsOnIt) {
  plan.recipe["parallel.on_desync"] = "stop";
  FlipABit();
  for (const RankTrace& run : RunRanks(2)) {
    EXPECT_EQ(run.why(), "guard");
    EXPECT_EQ(run.end.output, "3");
    EXPECT_EQ(run.Signal("loss").size(), 11U);
  }
}

TEST_F(DesyncInTraining, AFaultThatComesBackEndsRollbacks) {
  plan.recipe["parallel.on_desync"] = "rollback";
  Inject("collective.skip", {}, {.from = 10});
  for (const RankTrace& run : RunRanks(2)) {
    EXPECT_EQ(run.Events("rolled_back").size(), 3U);
    EXPECT_EQ(run.why(), "guard");
  }
}

TEST_F(DesyncInTraining, ComesFromGradientsThatNobodyReduces) {
  Inject("collective.skip", {});
  auto runs = RunRanks(2);
  EXPECT_EQ(StepsApart(runs).size(), 20U);
  EXPECT_EQ(runs[0].Events("desync").size(), 5U);
  EXPECT_EQ(runs[0].Signal("loss"), runs[1].Signal("loss")) << "which is still reduced";
  plan.recipe["parallel.average_every"] = 1;
  runs = RunRanks(2);
  EXPECT_TRUE(StepsApart(runs).empty());
  EXPECT_TRUE(runs[0].Events("desync").empty());
}

TEST_F(DesyncInTraining, ComesFromAResultThatOneRankGetsWrong) {
  Inject("collective.corrupt_result", {{"kind", "scale"}, {"value", 1.5}}, {.at = 5, .ranks = {0}});
  const auto runs = RunRanks(2);
  EXPECT_EQ(runs[0].Events("fired").size(), 1U);
  EXPECT_EQ(StepsApart(runs).front(), 5);
  EXPECT_EQ(runs[0].Events("desync").at(0)["tensors"].size(), 1U) << "one element of one tensor";
}

// Momentum and the mean are linear, so the mean of parameters is that of gradients.
TEST_F(DesyncInTraining, AveragingParametersEqualsReducingGradientsForSgd) {
  const auto reduced = RunRanks(2).at(0).Signal("loss");
  Inject("collective.skip", {});
  plan.recipe["parallel.average_every"] = 1;
  const auto averaged = RunRanks(2).at(0).Signal("loss");
  for (std::size_t i = 0; i < reduced.size(); ++i) EXPECT_NEAR(averaged[i], reduced[i], 1e-4) << i;
}

TEST_F(DesyncInTraining, ARankThatLeavesOutACallAloneIsNotGotOver) {
  plan.recipe["parallel.timeout_s"] = 2;
  Inject("collective.skip", {{"calls", {1}}}, {.at = 5, .ranks = {1}});
  const auto runs = RunRanks(2);
  EXPECT_FALSE(runs[0].why() == "completed" && runs[1].why() == "completed" &&
               StepsApart(runs).empty());
  EXPECT_EQ(runs[1].Events("fired").size(), 1U);
}

TEST_F(FaultInTraining, OutsideItsTriggerChangesNoBit) {
  plan.record = {"param_digest"};
  const auto bits = [&] {
    const RankTrace run = RunRanks(2).at(1);
    EXPECT_EQ(run.why(), "completed");
    EXPECT_TRUE(run.Events("fired").empty());
    std::vector<std::vector<double>> values;
    for (const char* name : {"loss", "grad_norm", "param_digest", "sample_digest"}) {
      values.push_back(run.Signal(name));
    }
    return values;
  };
  const auto control = bits();
  const Trigger later{.from = 1000};
  plan.faults = {{.id = "a", .fault = "data.corrupt_sample", .trigger = later},
                 {.id = "b", .fault = "data.uneven_shards", .with = {{"epoch", 1000}}},
                 {.id = "c",
                  .fault = "model.freeze_parameters",
                  .with = {{"parameters", {"*"}}},
                  .trigger = later},
                 {.id = "d",
                  .fault = "checkpoint.drop_entries",
                  .with = {{"entries", {"*"}}},
                  .trigger = later},
                 {.id = "e", .fault = "process.crash_rank", .trigger = later}};
  EXPECT_EQ(bits(), control);
}

}  // namespace
}  // namespace trainwreck
