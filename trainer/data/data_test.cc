// Classes made to count alike, and the targets of generated text.
#include "trainer/data/data.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "trainer/data/loader.h"

namespace trainwreck {
namespace {

// What a list of samples holds.
class Listed : public Dataset {
 public:
  explicit Listed(std::vector<Sample> samples) : samples_(std::move(samples)) {}
  std::int64_t size() const override { return static_cast<std::int64_t>(samples_.size()); }
  Sample Get(std::int64_t id) const override { return samples_.at(id); }
  std::int64_t input_limit() const override { return 0; }
  std::int64_t target_limit() const override { return 4; }

 private:
  std::vector<Sample> samples_;
};

// Sample i has the feature i and this label.
std::unique_ptr<Dataset> WithLabels(const std::vector<int>& labels) {
  std::vector<Sample> samples;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    samples.push_back({.id = static_cast<std::int64_t>(i),
                       .input = at::full({1}, static_cast<double>(i), at::kFloat),
                       .target = at::full({}, labels[i], at::kLong),
                       .weight = at::ones({})});
  }
  return std::make_unique<Listed>(std::move(samples));
}

std::int64_t Label(const Sample& sample) { return sample.target.item<std::int64_t>(); }

// A batch is padded to its longest row; what is cut off counts nowhere.
TEST(LoaderTest, TrimsRowsToTheLongestOfTheBatch) {
  const auto rows = RowsOfDocuments(MakeMarkovData(16, 10, {.seed = 5, .samples = 12}), 10, 34, 1,
                                    {.seed = 5, .samples = 12});
  const std::vector<Sample> samples = {rows->Get(0), rows->Get(1), rows->Get(2)};
  const std::vector<Sample> trimmed = WithoutPadding(samples);
  const std::int64_t longest = std::max({rows->length(0), rows->length(1), rows->length(2)});
  ASSERT_EQ(trimmed.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    for (at::Tensor Sample::*field : {&Sample::input, &Sample::target, &Sample::weight}) {
      ASSERT_EQ((trimmed[i].*field).size(0), longest);
      EXPECT_TRUE(at::equal(trimmed[i].*field, (samples[i].*field).narrow(0, 0, longest)));
    }
    EXPECT_EQ(trimmed[i].weight.sum().item<double>(), samples[i].weight.sum().item<double>());
  }
}

TEST(LoaderTest, LeavesOnePositionOfRowsWithoutTargets) {
  Sample empty = MakeMarkovData(16, 10, {.seed = 5, .samples = 2})->Get(0);
  empty.weight = at::zeros({10});
  EXPECT_EQ(WithoutPadding({empty}).front().target.size(0), 1);
  EXPECT_TRUE(WithoutPadding({}).empty());
}

TEST(MixedTest, ReplacesAShareOfTheSamplesEvenly) {
  const auto data =
      Mixed(WithLabels({0, 0, 0, 0, 0, 0, 0, 0}), WithLabels({1, 1, 1, 1, 1, 1, 1, 1}),
            /*share=*/0.25);
  std::vector<std::int64_t> labels;
  for (std::int64_t id = 0; id < data->size(); ++id) {
    const Sample sample = data->Get(id);
    EXPECT_EQ(sample.id, id);
    EXPECT_EQ(sample.input.item<double>(), static_cast<double>(id));
    labels.push_back(Label(sample));
  }
  EXPECT_EQ(labels, std::vector<std::int64_t>({0, 0, 0, 1, 0, 0, 0, 1}));
}

TEST(WithoutColumnsTest, PutsZerosInTheirPlace) {
  const auto plain = MakeFeatureData(4, 3, 1.0, {.seed = 5, .samples = 2});
  const auto data = WithoutColumns(MakeFeatureData(4, 3, 1.0, {.seed = 5, .samples = 2}), "1,3");
  const at::Tensor before = plain->Get(1).input, after = data->Get(1).input;
  EXPECT_EQ(after[0].item<float>(), before[0].item<float>());
  EXPECT_EQ(after[1].item<float>(), 0.0f);
  EXPECT_EQ(after[2].item<float>(), before[2].item<float>());
  EXPECT_EQ(after[3].item<float>(), 0.0f);
  for (const char* bad : {"4", "-1", "1,", "one", "1;2"}) {
    EXPECT_THROW(WithoutColumns(WithLabels({0}), bad), std::runtime_error) << bad;
  }
}

TEST(WithoutSamplesTest, NumbersTheOthersAnew) {
  const auto data = WithoutSamples(WithLabels({0, 1, 2, 3}), {0, 2});
  ASSERT_EQ(data->size(), 2);
  EXPECT_EQ(Label(data->Get(0)), 1);
  EXPECT_EQ(Label(data->Get(1)), 3);
  EXPECT_EQ(data->Get(1).id, 1);
  EXPECT_THROW(WithoutSamples(WithLabels({0}), {0}), std::runtime_error);
}

TEST(FeaturesTest, EachSourceIsAnotherTask) {
  const auto source = [](std::int64_t number) {
    return MakeFeatureData(64, 1, 0.0, {.seed = 5, .samples = 2}, number)->Get(0).input;
  };
  EXPECT_TRUE(at::equal(source(1), source(1)));
  const double cosine = source(0).dot(source(1)).item<double>() /
                        (source(0).norm().item<double>() * source(1).norm().item<double>());
  EXPECT_LT(std::abs(cosine), 0.5) << "of two random directions in 64 dimensions: 4 / 8";
}

// The documents that rows of one each have, in rows of three: token by token, with the same
// weights, and nothing that counts beside them.
TEST(DocumentsTest, PackedRowsHoldTheDocumentsOfPlainOnes) {
  constexpr std::int64_t kTokens = 10, kRow = 34;
  const auto rows = [&](std::int64_t per_row, std::int64_t count) {
    return RowsOfDocuments(
        MakeMarkovData(16, kTokens, {.seed = 5, .samples = per_row * count}, {.prompt_spread = 3}),
        kTokens, kRow, per_row, {.seed = 5, .samples = count});
  };
  const auto plain = rows(1, 12), packed = rows(3, 4);
  EXPECT_EQ(packed->size(), 4);
  std::set<std::int64_t> lengths;
  for (std::int64_t row = 0; row < 4; ++row) {
    const Sample many = packed->Get(row);
    std::int64_t begin = 0;
    for (std::int64_t d = 0; d < 3; ++d) {
      const Sample one = plain->Get(3 * row + d);
      const std::int64_t length = one.weight.nonzero().max().item<std::int64_t>() + 1;
      EXPECT_FALSE(one.document.defined()) << "its row has no other";
      lengths.insert(length);
      EXPECT_EQ(many.document.eq(d).sum().item<std::int64_t>(), length);
      for (at::Tensor Sample::*field : {&Sample::input, &Sample::target, &Sample::weight}) {
        EXPECT_TRUE(
            at::equal((many.*field).narrow(0, begin, length), (one.*field).narrow(0, 0, length)));
      }
      EXPECT_EQ(one.weight.narrow(0, length, kRow - length).sum().item<double>(), 0);
      begin += length;
    }
    EXPECT_TRUE(many.document.narrow(0, begin, kRow - begin).eq(3).all().item<bool>());
    EXPECT_EQ(many.weight.narrow(0, begin, kRow - begin).sum().item<double>(), 0);
    EXPECT_EQ(many.input.size(0), kRow);
    EXPECT_EQ(many.id, row);
    EXPECT_EQ(packed->length(row), begin);
  }
  EXPECT_GE(*lengths.begin(), kTokens / 2);
  EXPECT_LE(*lengths.rbegin(), kTokens);
  EXPECT_GT(lengths.size(), 2u);
}

TEST(ClassBalanceTest, WeightsAddUpToTheSameForEachClassThatOccurs) {
  const auto data = ClassWeighted(WithLabels({0, 0, 0, 1, 3, 0}));
  std::map<std::int64_t, double> sums;
  for (std::int64_t id = 0; id < 6; ++id) {
    const Sample sample = data->Get(id);
    sums[Label(sample)] += sample.weight.item<double>();
  }
  EXPECT_EQ(sums.size(), 3u);
  for (const auto& [label, sum] : sums) EXPECT_NEAR(sum, 2.0, 1e-6) << label;
}

TEST(ClassBalanceTest, ResampledClassesComeEquallyOften) {
  const auto data = ClassResampled(WithLabels({0, 0, 0, 1, 3, 0}));
  EXPECT_EQ(data->size(), 6);
  std::map<std::int64_t, int> counts;
  std::map<double, int> inputs;
  for (std::int64_t id = 0; id < 6; ++id) {
    const Sample sample = data->Get(id);
    EXPECT_EQ(sample.id, id);
    ++counts[Label(sample)];
    ++inputs[sample.input.item<double>()];
  }
  EXPECT_EQ(counts, (std::map<std::int64_t, int>{{0, 2}, {1, 2}, {3, 2}}));
  EXPECT_EQ(inputs, (std::map<double, int>{{0, 1}, {1, 1}, {3, 2}, {4, 2}}));
}

TEST(MarkovDataTest, APromptIsRandomAndHasNoWeight) {
  const auto transitions = MarkovTransitions(16);
  const auto data =
      MakeMarkovData(16, 12, {.seed = 1, .samples = 200}, {.lag = 1, .prompt_tokens = 5});
  int impossible = 0;
  for (std::int64_t id = 0; id < 200; ++id) {
    const Sample sample = data->Get(id);
    for (std::int64_t i = 0; i < 12; ++i) {
      const auto from = sample.input[i].item<std::int64_t>();
      const auto to = sample.target[i].item<std::int64_t>();
      EXPECT_EQ(sample.weight[i].item<double>(), i < 5 ? 0 : 1);
      if (i < 5) {
        impossible += transitions[from][to] == 0 ? 1 : 0;
      } else {
        EXPECT_GT(transitions[from][to], 0) << "an answer follows the source";
      }
    }
  }
  EXPECT_GT(impossible, 200 * 5 / 2) << "a prompt does not";
}

TEST(MarkovDataTest, PromptsDifferInLengthByTheirSpread) {
  const auto data = MakeMarkovData(16, 12, {.seed = 1, .samples = 100},
                                   {.lag = 1, .prompt_tokens = 2, .prompt_spread = 3});
  const auto transitions = MarkovTransitions(16);
  std::map<std::int64_t, int> lengths;
  for (std::int64_t id = 0; id < 100; ++id) {
    const Sample sample = data->Get(id);
    const auto length = sample.weight.eq(0).sum().item<std::int64_t>();
    ++lengths[length];
    for (std::int64_t i = 0; i < 12; ++i) {
      EXPECT_EQ(sample.weight[i].item<double>(), i < length ? 0 : 1);
      if (i < length) continue;
      const auto from = sample.input[i].item<std::int64_t>();
      EXPECT_GT(transitions[from][sample.target[i].item<std::int64_t>()], 0);
    }
    EXPECT_TRUE(data->Get(id).weight.equal(sample.weight)) << "each sample's own";
  }
  ASSERT_EQ(lengths.size(), 4U);
  EXPECT_EQ(lengths.begin()->first, 2);
  for (const auto& [length, count] : lengths) EXPECT_GT(count, 10) << length;
}

TEST(MarkovDataTest, CertaintyIsTheProbabilityOfTheFirstSuccessor) {
  const auto certain = MakeMarkovData(16, 12, {.seed = 1, .samples = 50}, {.certainty = 1});
  EXPECT_EQ(certain->entropy_floor(), 0);
  const auto rows = MarkovTransitions(16, 1);
  for (std::int64_t id = 0; id < 50; ++id) {
    const Sample sample = certain->Get(id);
    for (std::int64_t i = 0; i < 12; ++i) {
      const auto from = sample.input[i].item<std::int64_t>();
      EXPECT_EQ(rows[from][sample.target[i].item<std::int64_t>()], 1);
    }
  }
  for (std::vector<double> row : MarkovTransitions(64, 0.9)) {
    std::sort(row.rbegin(), row.rend());
    if (row[3] == 0) continue;  // two of its successors are the same
    EXPECT_DOUBLE_EQ(row[0], 0.9);
    EXPECT_NEAR(row[1], 0.05, 1e-12);
    EXPECT_NEAR(row[2], 0.025, 1e-12);
  }
  const auto usual = MarkovTransitions(16), nearly = MarkovTransitions(16, 0.9);
  for (std::size_t from = 0; from < 16; ++from) {
    for (std::size_t to = 0; to < 16; ++to) {
      EXPECT_EQ(usual[from][to] > 0, nearly[from][to] > 0);
      if (rows[from][to] == 1) {
        EXPECT_GE(nearly[from][to], 0.9);
      }
    }
  }
}

TEST(MarkovDataTest, ALagPutsTheCauseFurtherBack) {
  const auto transitions = MarkovTransitions(16);
  const auto data = MakeMarkovData(16, 12, {.seed = 1, .samples = 100}, {.lag = 3});
  for (std::int64_t id = 0; id < 100; ++id) {
    const Sample sample = data->Get(id);
    for (std::int64_t i = 0; i < 12; ++i) {
      EXPECT_EQ(sample.weight[i].item<double>(), i < 2 ? 0 : 1);
      if (i < 2) continue;
      const auto from = sample.input[i - 2].item<std::int64_t>();
      EXPECT_GT(transitions[from][sample.target[i].item<std::int64_t>()], 0);
    }
  }
}

}  // namespace
}  // namespace trainwreck
