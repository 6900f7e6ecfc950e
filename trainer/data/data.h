// The reference data sets. A sample is a function of (seed, id) alone: any rank can make any
// sample, and no order of fetching matters.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "trainer/parts.h"

namespace trainwreck {

struct SampleStream {
  std::uint64_t seed = 0;
  bool held_out = false;  // other samples of the same distribution, never seen in training
  std::int64_t samples = 1;
};

// Sequences of an order-1 Markov source. Each token has four successors, given by random
// permutations of the alphabet; so the stationary distribution is uniform and the entropy rate is
// exact. The first has probability `certainty`, the others a half and two quarters of the rest. The
// source is the same for every seed; the sequences are not. With a lag above 1, a token depends on
// the token that many places before it. The first tokens have no such token: they are drawn evenly
// from the alphabet and have weight 0. The first `prompt_tokens` targets of each sample also have
// weight 0, and so do up to `prompt_spread` more, so that samples differ in which targets count.
struct MarkovOptions {
  std::int64_t lag = 1;
  std::int64_t prompt_tokens = 0;
  std::int64_t prompt_spread = 0;
  double certainty = 0.6;  // 1: each token has one successor
};
std::unique_ptr<Dataset> MakeMarkovData(std::int64_t vocab, std::int64_t seq_len,
                                        SampleStream stream, MarkovOptions options = {});

// Rows of `row_tokens`: each has `per_row` documents, one after the other, and then padding of
// weight 0. With one document in each row, the rows have no document numbers. Document k has
// between half and all of `document_tokens`, whichever row it is in. `stream.samples` counts rows.
std::unique_ptr<Dataset> RowsOfDocuments(std::unique_ptr<Dataset> documents,
                                         std::int64_t document_tokens, std::int64_t row_tokens,
                                         std::int64_t per_row, SampleStream stream);

// The source's transition probabilities: `[vocab][vocab]`, rows sum to 1.
std::vector<std::vector<double>> MarkovTransitions(std::int64_t vocab, double certainty = 0.6);

// The text of a file, or of all regular files of a folder in the order of their names. An empty
// path means the licence texts that Debian ships.
struct Text {
  std::string source;  // the path
  std::string training;
  std::string held_out;  // the last tenth
};
// Throws std::runtime_error when it cannot be read.
Text ReadText(const std::string& path);

// Windows of the tokens of a text. Throws std::runtime_error when there is too little text.
std::unique_ptr<Dataset> MakeTextData(const Text& text, std::int64_t seq_len, SampleStream stream,
                                      std::shared_ptr<const Tokenizer> tokenizer);

// Feature vectors around their class's centre, (centre + noise * N(0, 1)) / sqrt(1 + noise^2), so
// that each feature has variance 1; the centres are N(0, 1), the same for every seed.
// Each source has centres of its own, and so is another task with the same labels.
std::unique_ptr<Dataset> MakeFeatureData(std::int64_t features, std::int64_t classes, double noise,
                                         SampleStream stream, std::int64_t source = 0);

// `first`, with a share of its samples replaced by those of `second` of the same number, evenly
// spread.
std::unique_ptr<Dataset> Mixed(std::unique_ptr<Dataset> first, std::unique_ptr<Dataset> second,
                               double share);

// The samples of `data` with these columns of the inputs 0. Throws std::runtime_error when there is
// no such column. `columns`: numbers, separated by commas.
std::unique_ptr<Dataset> WithoutColumns(std::unique_ptr<Dataset> data, const std::string& columns);

// `data` without some of its samples; the others are numbered anew. `dropped`: ascending ids.
std::unique_ptr<Dataset> WithoutSamples(std::unique_ptr<Dataset> data,
                                        const std::vector<std::int64_t>& dropped);

// The same samples, each of which is fetched from `data` only once, and then kept in memory.
std::unique_ptr<Dataset> Cached(std::unique_ptr<Dataset> data);

// The same samples, with each feature vector standardised: less its mean, divided by its standard
// deviation.
std::unique_ptr<Dataset> Standardised(std::unique_ptr<Dataset> data);

// Balanced data sets, over samples with one label each; both read all samples once. Weighted: with
// N samples and K classes that occur, a class of n samples gets weight N / (K n). Resampled: ids go
// round the classes that occur, and round the samples of each.
std::unique_ptr<Dataset> ClassWeighted(std::unique_ptr<Dataset> data);
std::unique_ptr<Dataset> ClassResampled(std::unique_ptr<Dataset> data);

}  // namespace trainwreck
