// Of the recipe's table: what is trained on, and what is evaluated.
#include <string>

#include "trainer/recipe/recipe_key.h"
#include "trainer/recipe/recipe_table.h"

namespace trainwreck {
namespace {

#define FIELD(member) ([](TrainingRecipe & r) -> auto& { return r.member; })

void AddSampleKeys(std::vector<RecipeKey>& keys) {
  keys.push_back(Choice(
      "data.kind", FIELD(data.kind),
      {{"markov", DataKind::kMarkov}, {"text", DataKind::kText}, {"features", DataKind::kFeatures}},
      "Tokens of a source with known entropy, text of files, or feature vectors "
      "with labels"));
  keys.push_back(Plain("data.path", FIELD(data.path),
                       "File or folder of text; empty: the licence texts that Debian ships"));
  keys.push_back(Bounded(
      Number("data.merges", FIELD(data.merges), "pairs", 0,
             "Pairs of tokens that byte-pair encoding merges, learned from the training text "
             "(Sennrich et al. 2016); 0: a token is a byte (text)"),
      65536));
  keys.push_back(Bounded(
      Number("data.seq_len", FIELD(data.seq_len), "tokens", 1, "Targets of one sample"), 65536));
  keys.push_back(
      Bounded(Number("data.vocab", FIELD(data.vocab), "tokens", 8, "Alphabet of the Markov source"),
              65536));
  keys.push_back(
      WithRole(KeyRole::kSamples, Number("data.samples", FIELD(data.samples), "samples", 1,
                                         "Training samples in an epoch, over all ranks")));
  keys.push_back(
      WithRole(KeyRole::kBatchSize, Number("data.batch_size", FIELD(data.batch_size), "samples", 1,
                                           "Samples per rank and micro-batch")));
  keys.push_back(
      Number("data.features", FIELD(data.features), "", 1, "Length of a feature vector"));
  keys.push_back(Number("data.classes", FIELD(data.classes), "", 2, "Labels of feature data"));
  keys.push_back(Number("data.noise", FIELD(data.noise), "", 0,
                        "Standard deviation of features around their class's centre"));
  keys.push_back(Plain("data.standardise", FIELD(data.standardise),
                       "Give each feature vector mean 0 and standard deviation 1"));
  keys.push_back(Bounded(Number("data.certainty", FIELD(data.certainty), "", 0.25,
                                "Probability of a token's most probable successor; with 1 it has "
                                "no other (markov)"),
                         1));
  keys.push_back(Number("data.document_tokens", FIELD(data.document_tokens), "tokens", 0,
                        "Make samples rows of documents, of so many tokens each or down to half "
                        "as many, and padding; 0: a row is one document of seq_len (markov)"));
  keys.push_back(Plain("data.packing", FIELD(data.packing),
                       "As many documents in a row as fit, in place of one: positions and "
                       "attention begin anew at each (Krell et al. 2021; gpt)"));
  keys.push_back(Number("data.lag", FIELD(data.lag), "tokens", 1,
                        "How far back the token stands that decides about one (markov)"));
  keys.push_back(Number("data.prompt_tokens", FIELD(data.prompt_tokens), "tokens", 0,
                        "Targets at the beginning of each sample that are a prompt: random "
                        "tokens, left out of the loss (markov)"));
  keys.push_back(Number("data.prompt_spread", FIELD(data.prompt_spread), "tokens", 0,
                        "By how many targets the prompts of samples are longer than "
                        "data.prompt_tokens, at most; each sample's own (markov)"));
  keys.push_back(Choice("data.balance", FIELD(data.balance),
                        {{"none", ClassBalance::kNone},
                         {"weights", ClassBalance::kWeights},
                         {"resample", ClassBalance::kResample}},
                        "Make classes count alike in training: by weights in the loss, or by "
                        "drawing them equally often (features)"));
}

// Keys of how samples become batches.
void AddLoaderKeys(std::vector<RecipeKey>& keys) {
  keys.push_back(
      WithRole(KeyRole::kLoaderGuard,
               Choice("loader.guard", FIELD(loader_guard),
                      {{"none", LoaderGuard::kNone},
                       {"skip_batch", LoaderGuard::kSkipBatch},
                       {"drop_sample", LoaderGuard::kDropSample},
                       {"stop", LoaderGuard::kStop}},
                      "What to do with a sample that is not finite, out of range, or has no target "
                      "that counts")));
  keys.push_back(Number("loader.max_len", FIELD(loader_max_len), "tokens", 0,
                        "Cut longer sequences off; 0: leave them"));
  keys.push_back(Plain("loader.trim_padding", FIELD(loader_trim_padding),
                       "Pad a batch to its longest row, in place of data.seq_len (tokens)"));
  keys.push_back(Bounded(
      WithRole(
          KeyRole::kWorkers,
          Number("loader.workers", FIELD(loader_workers), "threads", 0,
                 "Threads that fetch samples beside the training; order and results stay those "
                 "of 0, where the loop itself fetches")),
      64));
  keys.push_back(Bounded(Number("loader.prefetch", FIELD(loader_prefetch), "batches", 1,
                                "How many batches each worker fetches ahead of the training"),
                         1024));
  keys.push_back(Plain("loader.cache", FIELD(loader_cache),
                       "Keep training samples in memory once they are fetched"));
}

// Keys of where data come from, and of what training and held-out data have in common.
void AddSourceKeys(std::vector<RecipeKey>& keys) {
  keys.push_back(
      Number("data.source", FIELD(data.source), "", 0,
             "Number of the source, whose classes have centres of their own (features)"));
  keys.push_back(Number("data.mix_source", FIELD(data.mix_source), "", 0,
                        "The source of the training samples that are mixed in (features)"));
  keys.push_back(Bounded(Number("data.mix_share", FIELD(data.mix_share), "", 0,
                                "Share of the training samples that are of data.mix_source"),
                         1));
  keys.push_back(
      Plain("data.drop_features", FIELD(data.drop_features),
            "Comma-separated numbers of columns that the model must not see: they become 0"));
  keys.push_back(
      Choice("data.duplicates", FIELD(data.duplicates),
             {{"keep", Duplicates::kKeep},
              {"drop_exact", Duplicates::kDropExact},
              {"drop_near", Duplicates::kDropNear}},
             "What to do with training samples that are in the held-out data: keep them, "
             "drop equal ones, or also those that share half of their 5-grams with one "
             "(features: that are as near as a quarter of their length). Event overlap"));
  keys.push_back(
      Choice("audit.overlap", FIELD(audit_overlap),
             {{"none", OnGaps::kNone}, {"report", OnGaps::kReport}, {"stop", OnGaps::kStop}},
             "Before training, count the training samples that are in the held-out data, equal or "
             "near: event overlap. Then go on, or stop"));
  keys.push_back(
      Choice("audit.columns", FIELD(audit_columns),
             {{"none", OnGaps::kNone}, {"report", OnGaps::kReport}, {"stop", OnGaps::kStop}},
             "Before training, find the columns that tell the label by themselves (features): "
             "event telling_columns. Then go on, or stop"));
  keys.push_back(Number("eval.source", FIELD(eval_source), "", -1,
                        "The source of held-out data (features); -1: data.source"));
}

void AddFineTuningKeys(std::vector<RecipeKey>& keys) {
  keys.push_back(
      Plain("finetune.phase", FIELD(finetune.phase),
            "Name of the phase that fine-tunes: with its own rate and parameters, and on another "
            "task (features), where evaluations stay on the task before; empty: none"));
  keys.push_back(Number("finetune.source", FIELD(finetune.source), "", 0,
                        "What data.source becomes there (features)"));
  keys.push_back(Number("finetune.lr_ratio", FIELD(finetune.lr_ratio), "times", 0,
                        "Factor on the learning rate there"));
  keys.push_back(
      Plain("finetune.trainable", FIELD(finetune.trainable), "What model.trainable becomes there"));
  keys.push_back(Bounded(Number("finetune.replay", FIELD(finetune.replay), "", 0,
                                "Share of the training samples there that are of the task before"),
                         1));
  keys.push_back(Number("finetune.consolidation", FIELD(finetune.consolidation), "", 0,
                        "Strength of elastic weight consolidation there (Kirkpatrick et al. 2017); "
                        "0: none"));
}

void AddEvaluationKeys(std::vector<RecipeKey>& keys) {
  keys.push_back(
      WithRole(KeyRole::kEvaluateEvery,
               Number("eval.every", FIELD(eval_every), "steps", 0,
                      "Evaluate after every so many steps; 0: at the end of the run only")));
  keys.push_back(Number("eval.every_micro_batches", FIELD(eval_every_micro_batches),
                        "micro-batches", 0,
                        "Evaluate after every so many micro-batches, also between those of one "
                        "step; 0: never"));
  keys.push_back(
      Plain("eval.at_epoch_end", FIELD(eval_at_epoch_end), "Evaluate when an epoch is over, too"));
  keys.push_back(
      Number("eval.batches", FIELD(eval_batches), "batches", 1, "Held-out batches per evaluation"));
  keys.push_back(Number("eval.batch_size", FIELD(eval_batch_size), "samples", 0,
                        "Samples per batch and rank in evaluations; 0: data.batch_size"));
  keys.push_back(Choice("eval.data", FIELD(eval_data),
                        {{"held_out", EvalData::kHeldOut}, {"training", EvalData::kTraining}},
                        "What is evaluated on: other samples, or the first of the training data"));
  keys.push_back(Plain("eval.free_running", FIELD(eval_free_running),
                       "In evaluations also let the model go on from its own text behind the "
                       "first input or the prompt: signal free_running_accuracy (tokens)"));
  keys.push_back(WithRole(
      KeyRole::kRegularisation,
      Number("early_stop.patience", FIELD(early_stop_patience), "evaluations", 0,
             "End the run after so many evaluations in a row without a lower held-out loss; then, "
             "and at its last step, it goes back to the weights of the lowest; 0: never")));
}

#undef FIELD

}  // namespace

void AddDataKeys(std::vector<RecipeKey>& keys) {
  AddSampleKeys(keys);
  AddLoaderKeys(keys);
  AddSourceKeys(keys);
  AddFineTuningKeys(keys);
  AddEvaluationKeys(keys);
}

}  // namespace trainwreck
