#include "trainer/build_data.h"

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "trainer/data/data.h"
#include "trainer/data/loader.h"
#include "trainer/data/overlap.h"
#include "trainer/data/telling_columns.h"
#include "trainer/data/tokenizer.h"
#include "trainer/devices/rng.h"
#include "trainer/telemetry/vocabulary.h"

namespace trainwreck {
namespace {

std::unique_ptr<Dataset> BuildFeatures(const TrainingRecipe& recipe, const SampleStream& stream) {
  const DataRecipe& data = recipe.data;
  const auto of_source = [&](std::int64_t source) {
    return MakeFeatureData(data.features, data.classes, data.noise, stream, source);
  };
  if (stream.held_out) return of_source(recipe.eval_source < 0 ? data.source : recipe.eval_source);
  if (data.mix_share == 0) return of_source(data.source);
  return Mixed(of_source(data.source), of_source(data.mix_source), data.mix_share);
}

// The text of a run, and how it becomes tokens; empty where data are no text.
struct Reading {
  Text text;
  std::shared_ptr<const Tokenizer> tokenizer;
};

Reading Read(const DataRecipe& recipe) {
  if (recipe.kind != DataKind::kText) return {};
  Reading reading{.text = ReadText(recipe.path)};
  reading.tokenizer =
      std::make_shared<Tokenizer>(LearnTokenizer(reading.text.training, recipe.merges));
  return reading;
}

std::unique_ptr<Dataset> BuildDataset(const TrainingRecipe& recipe, bool held_out,
                                      std::uint64_t seed, const Reading& reading) {
  const DataRecipe& data = recipe.data;
  const SampleStream stream{MixSeed(seed, kDataSeed), held_out, data.samples};
  switch (data.kind) {
    case DataKind::kMarkov: {
      const MarkovOptions options{.lag = data.lag,
                                  .prompt_tokens = data.prompt_tokens,
                                  .prompt_spread = data.prompt_spread,
                                  .certainty = data.certainty};
      if (data.document_tokens == 0) {
        return MakeMarkovData(data.vocab, data.seq_len, stream, options);
      }
      const std::int64_t per_row = data.packing ? data.seq_len / data.document_tokens : 1;
      SampleStream documents = stream;
      documents.samples *= per_row;
      return RowsOfDocuments(MakeMarkovData(data.vocab, data.document_tokens, documents, options),
                             data.document_tokens, data.seq_len, per_row, stream);
    }
    case DataKind::kText:
      return MakeTextData(reading.text, data.seq_len, stream, reading.tokenizer);
    case DataKind::kFeatures:
      return BuildFeatures(recipe, stream);
  }
  throw std::logic_error("no such data set");
}

// Counts what training and held-out data have in common, and drops of it what the recipe says.
// Throws GuardStop where audit.overlap says stop and something is left.
std::unique_ptr<Dataset> WithoutHeldOut(const TrainingRecipe& recipe,
                                        std::unique_ptr<Dataset> training, const Dataset& held_out,
                                        TraceSink& sink) {
  const Duplicates duplicates = recipe.data.duplicates;
  if (duplicates == Duplicates::kKeep && recipe.audit_overlap == OnGaps::kNone) return training;
  const Overlap overlap = FindOverlap(*training, held_out);
  std::vector<std::int64_t> dropped;
  if (duplicates == Duplicates::kDropExact) dropped = overlap.equal;
  if (duplicates == Duplicates::kDropNear) dropped = overlap.All();
  sink.Report(events::kOverlap, {{"training", training->size()},
                                 {"equal", overlap.equal.size()},
                                 {"near", overlap.near.size()},
                                 {"held_out", held_out.size()},
                                 {"held_out_seen", overlap.held_out_seen},
                                 {"dropped", dropped.size()}});
  const std::size_t left = overlap.equal.size() + overlap.near.size() - dropped.size();
  if (recipe.audit_overlap == OnGaps::kStop && left > 0) {
    throw GuardStop(std::to_string(left) + " training samples are in the held-out data");
  }
  return dropped.empty() ? std::move(training) : WithoutSamples(std::move(training), dropped);
}

// Names columns that give the label away. Throws GuardStop where audit.columns says stop.
void AuditColumns(const TrainingRecipe& recipe, const Dataset& training, const Dataset& held_out,
                  TraceSink& sink) {
  if (recipe.audit_columns == OnGaps::kNone) return;
  Json columns = Json::array(), right = Json::array();
  for (const TellingColumn& one : FindTellingColumns(training, held_out)) {
    columns.push_back(one.column);
    right.push_back(one.right);
  }
  const std::size_t count = columns.size();
  sink.Report(events::kTellingColumns,
              {{"count", count}, {"columns", std::move(columns)}, {"right", std::move(right)}});
  if (recipe.audit_columns == OnGaps::kStop && count > 0) {
    throw GuardStop(std::to_string(count) + " columns tell the label by themselves");
  }
}

// The data with the inputs as the recipe says: without columns, standardised.
std::unique_ptr<Dataset> PrepareInputs(const DataRecipe& recipe, std::unique_ptr<Dataset> data) {
  if (!recipe.drop_features.empty()) data = WithoutColumns(std::move(data), recipe.drop_features);
  return recipe.standardise ? Standardised(std::move(data)) : std::move(data);
}

// Training data of the task before fine-tuning.
std::unique_ptr<Dataset> EarlierData(TrainingRecipe recipe, std::uint64_t seed) {
  recipe.data.source = recipe.data.mix_source;
  recipe.data.mix_share = 0;
  return PrepareInputs(recipe.data, BuildDataset(recipe, /*held_out=*/false, seed));
}

}  // namespace

std::unique_ptr<Dataset> PrepareTargets(const DataRecipe& recipe, std::unique_ptr<Dataset> data) {
  switch (recipe.balance) {
    case ClassBalance::kNone:
      return data;
    case ClassBalance::kWeights:
      return ClassWeighted(std::move(data));
    case ClassBalance::kResample:
      return ClassResampled(std::move(data));
  }
  throw std::logic_error("no such balance");
}

std::unique_ptr<Dataset> BuildDataset(const TrainingRecipe& recipe, bool held_out,
                                      std::uint64_t seed) {
  return BuildDataset(recipe, held_out, seed, Read(recipe.data));
}

void BuildData(const TrainingRecipe& recipe, const Plan& plan, TraceSink& sink,
               const Wrappers& wrappers, Parts& parts) {
  Reading reading = Read(recipe.data);
  for (const auto& wrapper : wrappers) {
    if (reading.tokenizer) {
      reading.tokenizer = wrapper->Wrap(std::move(reading.tokenizer), reading.text.training);
    }
  }
  parts.eval_data = BuildDataset(recipe, /*held_out=*/true, plan.seed, reading);
  for (const auto& wrapper : wrappers) {
    parts.eval_data = wrapper->WrapHeldOut(std::move(parts.eval_data));
  }
  parts.train_data = BuildDataset(recipe, /*held_out=*/false, plan.seed, reading);
  for (const auto& wrapper : wrappers) {
    parts.train_data = wrapper->Wrap(std::move(parts.train_data), *parts.eval_data);
  }
  parts.train_data = WithoutHeldOut(recipe, std::move(parts.train_data), *parts.eval_data, sink);
  parts.train_data = PrepareInputs(recipe.data, std::move(parts.train_data));
  parts.eval_data = PrepareInputs(recipe.data, std::move(parts.eval_data));
  AuditColumns(recipe, *parts.train_data, *parts.eval_data, sink);
  if (recipe.finetune.consolidation > 0 && recipe.finetune.phase == plan.phase) {
    parts.earlier_data = EarlierData(recipe, plan.seed);
  }
  parts.train_data = PrepareTargets(recipe.data, std::move(parts.train_data));
  if (recipe.loader_cache) parts.train_data = Cached(std::move(parts.train_data));
}

}  // namespace trainwreck
