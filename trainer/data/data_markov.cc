#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "trainer/data/data.h"
#include "trainer/devices/rng.h"

namespace trainwreck {
namespace {

constexpr std::size_t kSuccessors = 4;
constexpr std::uint64_t kSourceSeed = 0x6d61726b6f76;

using Permutations = std::array<std::vector<std::int64_t>, kSuccessors>;
using Probabilities = std::array<double, kSuccessors>;

Probabilities ProbabilitiesOf(double certainty) {
  const double rest = 1 - certainty;
  return {certainty, rest / 2, rest / 4, rest / 4};
}

Permutations MakePermutations(std::int64_t vocab) {
  Permutations successors;
  for (std::size_t k = 0; k < kSuccessors; ++k) {
    successors[k] = Permutation(kSourceSeed, static_cast<std::int64_t>(k), vocab);
  }
  return successors;
}

class MarkovData : public Dataset {
 public:
  MarkovData(std::int64_t vocab, std::int64_t seq_len, SampleStream stream, MarkovOptions options)
      : vocab_(vocab),
        seq_len_(seq_len),
        lag_(options.lag),
        prompt_tokens_(options.prompt_tokens),
        prompt_spread_(options.prompt_spread),
        stream_(stream),
        stream_seed_(MixSeed(stream.seed, stream.held_out ? 2 : 1)),
        successors_(MakePermutations(vocab)),
        probabilities_(ProbabilitiesOf(options.certainty)) {
    for (std::int64_t more = 0; more <= prompt_spread_; ++more) {
      weights_.push_back(at::ones({seq_len}));
      weights_.back().narrow(0, 0, RandomTokens(more) - 1).zero_();
    }
    // The stationary distribution is uniform: a sum of permutations keeps it.
    for (const std::vector<double>& row : MarkovTransitions(vocab, options.certainty)) {
      for (double p : row) {
        if (p > 0) entropy_ -= p * std::log(p) / static_cast<double>(vocab);
      }
    }
  }

  std::int64_t size() const override { return stream_.samples; }
  std::int64_t input_limit() const override { return vocab_; }
  std::int64_t target_limit() const override { return vocab_; }
  std::optional<double> entropy_floor() const override { return entropy_; }

  Sample Get(std::int64_t id) const override {
    SplitMix64 random(MixSeed(stream_seed_, static_cast<std::uint64_t>(id)));
    at::Tensor tokens = at::empty({seq_len_ + 1}, at::kLong);
    auto* data = tokens.mutable_data_ptr<std::int64_t>();
    const auto more = prompt_spread_ == 0 ? 0
                                          : static_cast<std::int64_t>(random.Below(
                                                static_cast<std::uint64_t>(prompt_spread_ + 1)));
    const std::int64_t random_tokens = RandomTokens(more);
    for (std::int64_t i = 0; i <= seq_len_; ++i) {
      data[i] = i < random_tokens
                    ? static_cast<std::int64_t>(random.Below(static_cast<std::uint64_t>(vocab_)))
                    : Successor(data[i - lag_], random.Uniform());
    }
    return {id, tokens.narrow(0, 0, seq_len_), tokens.narrow(0, 1, seq_len_), weights_[more]};
  }

 private:
  // At the beginning of a sample; the first is no target.
  std::int64_t RandomTokens(std::int64_t more) const {
    return std::max(lag_, prompt_tokens_ + more + 1);
  }

  std::int64_t Successor(std::int64_t token, double u) const {
    std::size_t k = 0;
    while (k + 1 < kSuccessors && u >= probabilities_[k]) u -= probabilities_[k++];
    return successors_[k][token];
  }

  std::int64_t vocab_, seq_len_, lag_;
  std::int64_t prompt_tokens_, prompt_spread_;
  SampleStream stream_;
  std::uint64_t stream_seed_;
  Permutations successors_;
  Probabilities probabilities_;
  std::vector<at::Tensor> weights_;  // by how much longer the prompt is
  double entropy_ = 0;
};

}  // namespace

std::vector<std::vector<double>> MarkovTransitions(std::int64_t vocab, double certainty) {
  const Probabilities probabilities = ProbabilitiesOf(certainty);
  const Permutations successors = MakePermutations(vocab);
  std::vector<std::vector<double>> rows(vocab, std::vector<double>(vocab, 0.0));
  for (std::int64_t token = 0; token < vocab; ++token) {
    for (std::size_t k = 0; k < kSuccessors; ++k) {
      rows[token][successors[k][token]] += probabilities[k];
    }
  }
  return rows;
}

std::unique_ptr<Dataset> MakeMarkovData(std::int64_t vocab, std::int64_t seq_len,
                                        SampleStream stream, MarkovOptions options) {
  return std::make_unique<MarkovData>(vocab, seq_len, stream, options);
}

}  // namespace trainwreck
