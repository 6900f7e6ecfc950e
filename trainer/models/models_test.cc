// The models and the data that they learn from.
#include "trainer/models/models.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/repeat_interleave.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <set>

#include "trainer/data/data.h"
#include "trainer/data/loader.h"
#include "trainer/data/tokenizer.h"
#include "trainer/models/layers.h"
#include "trainer/models/model.h"

namespace trainwreck {
namespace {

constexpr std::int64_t kVocab = 64;
constexpr std::int64_t kLength = 64;

std::int64_t CountOf(const Model& model) {
  std::int64_t count = 0;
  for (const auto& parameter : model.parameters()) count += parameter.numel();
  return count;
}

Batch BatchOf(const Dataset& data, std::int64_t size) {
  std::vector<Sample> samples;
  for (std::int64_t id = 0; id < size; ++id) samples.push_back(data.Get(id));
  return Collate(samples);
}

TEST(GptTest, HasTheParametersThatItsShapeSays) {
  const std::int64_t width = 64, layers = 2;
  const std::int64_t block = 2 * 2 * width + (width * 3 * width + 3 * width) +
                             (width * width + width) + (width * 4 * width + 4 * width) +
                             (4 * width * width + width);
  const std::int64_t outside = kVocab * width + kLength * width + (width * kVocab + kVocab);
  EXPECT_EQ(CountOf(*MakeGpt({.norm = NormPlace::kPre}, kVocab, kLength, 1)),
            outside + layers * block + 2 * width);
  EXPECT_EQ(CountOf(*MakeGpt({.norm = NormPlace::kPost}, kVocab, kLength, 1)),
            outside + layers * block);
}

TEST(GptTest, ParametersHaveTheNamesThatScenariosUse) {
  const auto model = MakeGpt({.layers = 1}, kVocab, kLength, 1);
  std::set<std::string> names;
  for (const auto& item : model->named_parameters()) names.insert(item.key());
  for (const char* name :
       {"embed.weight", "pos.weight", "blocks.0.norm1.weight", "blocks.0.attn.qkv.weight",
        "blocks.0.attn.proj.bias", "blocks.0.norm2.bias", "blocks.0.mlp.fc.weight",
        "blocks.0.mlp.proj.weight", "norm.weight", "head.weight", "head.bias"}) {
    EXPECT_EQ(names.count(name), 1u) << name;
  }
}

// One table: listed once, of the shape of both, and a guess among all tokens at first.
TEST(GptTest, TiesItsHeadToItsEmbeddings) {
  const auto model = MakeGpt({.tied_embeddings = true}, kVocab, kLength, 1);
  std::set<std::string> names;
  for (const auto& [name, tensor] : ParametersOf(*model)) names.insert(name);
  EXPECT_TRUE(names.contains("embed.weight"));
  EXPECT_TRUE(names.contains("head.bias"));
  EXPECT_FALSE(names.contains("head.weight"));
  const auto all = model->named_parameters();
  EXPECT_EQ(all["head.weight"].unsafeGetTensorImpl(), all["embed.weight"].unsafeGetTensorImpl());
  model->to(at::kDouble);
  EXPECT_EQ(all["head.weight"].unsafeGetTensorImpl(), all["embed.weight"].unsafeGetTensorImpl());
  model->to(at::kFloat);
  const auto tokens = MakeMarkovData(kVocab, kLength, {.seed = 1, .samples = 8});
  EXPECT_NEAR(model->Loss(BatchOf(*tokens, 8)).item<double>(), std::log(64.0), 0.1);
}

TEST(GptTest, ATokenChangesNothingBeforeIt) {
  for (const NormPlace norm : {NormPlace::kPre, NormPlace::kPost}) {
    const auto model = MakeGpt({.norm = norm}, kVocab, kLength, 1);
    at::Tensor tokens = at::arange(kLength, at::kLong).remainder(kVocab).unsqueeze(0).clone();
    const at::Tensor logits = model->Logits(tokens);
    tokens[0][40].fill_(3);  // was 40
    const at::Tensor changed = model->Logits(tokens);
    EXPECT_TRUE(at::equal(logits.narrow(1, 0, 40), changed.narrow(1, 0, 40)));
    EXPECT_FALSE(at::equal(logits.narrow(1, 40, 1), changed.narrow(1, 40, 1)));
    EXPECT_FALSE(at::equal(logits.narrow(1, 63, 1), changed.narrow(1, 63, 1)))
        << "attention does not look back";
  }
}

// The mean over a row of two documents and padding is that over the documents in rows of their own.
TEST(GptTest, ADocumentDoesNotSeeItsNeighbours) {
  const auto data = MakeMarkovData(kVocab, 12, {.seed = 1, .samples = 2});
  const Sample first = data->Get(0), second = data->Get(1);
  const auto padded = [](const at::Tensor& a, const at::Tensor& b) {
    return at::cat({a, b.narrow(0, 0, 7), at::zeros({3}, a.options())}).unsqueeze(0);
  };
  Batch row{.ids = {0},
            .inputs = padded(first.input, second.input),
            .targets = padded(first.target, second.target),
            .weights = padded(first.weight, second.weight)};
  Batch alone = Collate({first, second});
  alone.weights[1].narrow(0, 7, 5).zero_();
  for (const AttentionForm form : {AttentionForm::kFused, AttentionForm::kExplicit}) {
    for (const Positions positions : {Positions::kLearned, Positions::kRotary, Positions::kNone}) {
      const auto model = MakeGpt({.attention = form, .positions = positions}, kVocab, kLength, 1);
      for (auto& parameter : model->parameters()) parameter.data().mul_(3);  // neighbours matter
      row.documents = at::Tensor();
      const double expected = model->Loss(alone).item<double>();
      EXPECT_GT(std::fabs(model->Loss(row).item<double>() - expected), 1e-3);
      row.documents = at::repeat_interleave(at::tensor({12, 7, 3})).unsqueeze(0);
      EXPECT_NEAR(model->Loss(row).item<double>(), expected, 1e-5);
    }
  }
}

TEST(GptTest, ASeedFixesTheWeights) {
  const auto first = MakeGpt({}, kVocab, kLength, 1)->parameters();
  at::manual_seed(5);  // must not matter
  const auto again = MakeGpt({}, kVocab, kLength, 1)->parameters();
  const auto other = MakeGpt({}, kVocab, kLength, 2)->parameters();
  for (std::size_t i = 0; i < first.size(); ++i) EXPECT_TRUE(at::equal(first[i], again[i])) << i;
  EXPECT_FALSE(at::equal(first[0], other[0]));
}

TEST(ModelsTest, TheFirstLossIsThatOfAGuess) {
  const auto tokens = MakeMarkovData(kVocab, kLength, {.seed = 1, .samples = 8});
  EXPECT_NEAR(MakeGpt({}, kVocab, kLength, 1)->Loss(BatchOf(*tokens, 8)).item<double>(),
              std::log(64.0), 0.05);
  const auto features = MakeFeatureData(32, 10, 1.0, {.seed = 1, .samples = 64});
  EXPECT_NEAR(MakeMlp({}, 32, 10, 1)->Loss(BatchOf(*features, 64)).item<double>(), std::log(10.0),
              0.1);
}

// Against the formula, in double.
std::vector<std::string> NamesOf(const torch::nn::Module& module) {
  std::vector<std::string> names;
  for (const auto& item : module.named_modules()) names.push_back(item.key());
  return names;
}

at::Tensor FirstWeight(const ModelRecipe& recipe) {
  return MakeMlp(recipe, 32, 4, 1)->named_parameters()["layers.0.weight"].detach();
}

TEST(MlpTest, IsMadeOfWhatTheRecipeSays) {
  ModelRecipe recipe;
  recipe.layers = 2;
  recipe.width = 16;
  recipe.activation = Activation::kSigmoid;
  recipe.layer_norm = true;
  const std::vector<std::string> names = NamesOf(*MakeMlp(recipe, 32, 4, 1));
  for (const char* name : {"layers.norm0", "layers.sigmoid0", "layers.norm1", "layers.sigmoid1"}) {
    EXPECT_NE(std::find(names.begin(), names.end(), name), names.end()) << name;
  }
}

TEST(MlpTest, InitialWeightsHaveTheSizeThatTheirKindSays) {
  ModelRecipe recipe;
  recipe.width = 4096;
  EXPECT_NEAR(FirstWeight(recipe).std().item<double>(), std::sqrt(2.0 / 32), 0.002);
  recipe.init = InitKind::kXavier;
  EXPECT_NEAR(FirstWeight(recipe).std().item<double>(), std::sqrt(2.0 / (32 + 4096)), 0.0002);
  recipe.init = InitKind::kNormal;
  recipe.init_std = 0.5;
  EXPECT_NEAR(FirstWeight(recipe).std().item<double>(), 0.5, 0.005);
  recipe.init = InitKind::kConstant;
  EXPECT_TRUE(FirstWeight(recipe).eq(0.5).all().item<bool>());
}

// With constant weights of 0 a layer's output is that of its activation at 0, and what the residual
// adds is all that is left of the input.
TEST(MlpTest, TheResidualCarriesTheInputThrough) {
  ModelRecipe recipe;
  recipe.layers = 3;
  recipe.width = 32;
  recipe.init = InitKind::kConstant;
  recipe.init_std = 0;
  Batch batch{.ids = {0, 1},
              .inputs = at::randn({2, 32}),
              .targets = at::tensor({1, 3}, at::kLong),
              .weights = at::ones({2})};
  const double without = MakeMlp(recipe, 32, 4, 1)->Loss(batch).item<double>();
  EXPECT_NEAR(without, std::log(4.0), 1e-6);
  recipe.residual = true;
  EXPECT_GT(std::fabs(MakeMlp(recipe, 32, 4, 1)->Loss(batch).item<double>() - without), 1e-3);
}

TEST(ModelsTest, SmoothingMixesTheTargetWithAllClasses) {
  WeightedCrossEntropy plain, smoothed({.label_smoothing = 0.25});
  const at::Tensor logits = at::tensor({2.0f, -1.0f, 0.5f, 0.0f}).view({1, 4});
  const at::Tensor weight = at::ones({1});
  double all = 0;
  for (int target = 0; target < 4; ++target) {
    all += plain.Forward(logits, at::tensor({target}, at::kLong), weight).item<double>();
  }
  const at::Tensor target = at::tensor({1}, at::kLong);
  const double expected =
      0.75 * plain.Forward(logits, target, weight).item<double>() + 0.25 * all / 4;
  EXPECT_NEAR(smoothed.Forward(logits, target, weight).item<double>(), expected, 1e-6);
}

TEST(DataTest, StandardisedFeaturesHaveMeanZeroAndDeviationOne) {
  const auto data = Standardised(MakeFeatureData(64, 10, 1.0, {.seed = 3, .samples = 20}));
  const auto plain = MakeFeatureData(64, 10, 1.0, {.seed = 3, .samples = 20});
  EXPECT_EQ(data->size(), 20);
  for (std::int64_t id = 0; id < 20; ++id) {
    const Sample sample = data->Get(id);
    EXPECT_NEAR(sample.input.mean().item<double>(), 0, 1e-6);
    EXPECT_NEAR(sample.input.square().mean().item<double>(), 1, 1e-5);
    EXPECT_TRUE(sample.target.equal(plain->Get(id).target));
  }
}

TEST(ModelsTest, LossIsTheWeightedMeanOfNegativeLogLikelihoods) {
  const auto model = MakeGpt({}, kVocab, kLength, 1);
  Batch batch = BatchOf(*MakeMarkovData(kVocab, kLength, {.seed = 1, .samples = 2}), 2);
  batch.weights = at::arange(2 * kLength, at::kFloat).view({2, kLength});
  const at::Tensor logits = model->Logits(batch.inputs).to(at::kDouble);
  const at::Tensor nll =
      at::logsumexp(logits, -1) - logits.gather(-1, batch.targets.unsqueeze(-1)).squeeze(-1);
  const at::Tensor weights = batch.weights.to(at::kDouble);
  const double expected = (nll * weights).sum().item<double>() / weights.sum().item<double>();
  EXPECT_NEAR(model->Loss(batch).item<double>(), expected, 1e-5);
}

TEST(MarkovDataTest, FloorIsTheEntropyOfItsTransitions) {
  // Where all four successors differ, the entropy of a row is that of 0.6, 0.2, 0.1, 0.1; where
  // some coincide, less.
  const auto data = MakeMarkovData(kVocab, kLength, {.seed = 1, .samples = 1});
  const double most = -(0.6 * std::log(0.6) + 0.2 * std::log(0.2) + 0.2 * std::log(0.1));
  EXPECT_LE(*data->entropy_floor(), most);
  EXPECT_GT(*data->entropy_floor(), 0.9 * most);
}

TEST(MarkovDataTest, SamplesHaveTheTransitionsAndTheirEntropy) {
  const std::int64_t samples = 4000;
  const auto data = MakeMarkovData(16, kLength, {.seed = 3, .samples = samples});
  const auto exact = MarkovTransitions(16);
  std::vector<std::vector<double>> counts(16, std::vector<double>(16, 0));
  for (std::int64_t id = 0; id < samples; ++id) {
    const Sample sample = data->Get(id);
    const auto* input = sample.input.const_data_ptr<std::int64_t>();
    const auto* target = sample.target.const_data_ptr<std::int64_t>();
    for (std::int64_t i = 0; i < kLength; ++i) {
      if (i > 0) {
        ASSERT_EQ(input[i], target[i - 1]);
      }
      ++counts[input[i]][target[i]];
    }
  }
  double entropy = 0;
  const double total = static_cast<double>(samples * kLength);
  for (int i = 0; i < 16; ++i) {
    double row = 0;
    for (double count : counts[i]) row += count;
    EXPECT_NEAR(row / total, 1.0 / 16, 0.004) << "the stationary distribution is uniform";
    for (int j = 0; j < 16; ++j) {
      const double p = counts[i][j] / row;
      EXPECT_NEAR(p, exact[i][j], 0.02);
      if (p > 0) entropy -= row / total * p * std::log(p);
    }
  }
  EXPECT_NEAR(entropy, *data->entropy_floor(), 0.005);
}

TEST(DataTest, HeldOutSamplesAndOtherSeedsAreOthers) {
  const SampleStream train{.seed = 1, .held_out = false, .samples = 100};
  const SampleStream held_out{.seed = 1, .held_out = true, .samples = 100};
  const SampleStream other{.seed = 2, .held_out = false, .samples = 100};
  for (const auto& make : std::vector<std::function<std::unique_ptr<Dataset>(SampleStream)>>{
           [](SampleStream stream) { return MakeMarkovData(kVocab, kLength, stream); },
           [](SampleStream stream) { return MakeFeatureData(8, 4, 1.0, stream); }}) {
    const at::Tensor first = make(train)->Get(7).input;
    EXPECT_TRUE(at::equal(first, make(train)->Get(7).input));
    EXPECT_FALSE(at::equal(first, make(train)->Get(8).input));
    EXPECT_FALSE(at::equal(first, make(held_out)->Get(7).input));
    EXPECT_FALSE(at::equal(first, make(other)->Get(7).input));
  }
}

TEST(TextDataTest, TheLastTenthIsHeldOut) {
  const std::string path = testing::TempDir() + "/text";
  std::ofstream(path) << std::string(900, 'a') + std::string(100, 'b');
  const auto bytes = std::make_shared<Tokenizer>();
  const Text text = ReadText(path);
  const auto train = MakeTextData(text, 16, {.seed = 1, .held_out = false, .samples = 200}, bytes);
  const auto held_out =
      MakeTextData(text, 16, {.seed = 1, .held_out = true, .samples = 200}, bytes);
  for (std::int64_t id = 0; id < 200; ++id) {
    ASSERT_EQ(train->Get(id).target.max().item<int>(), 'a');
    ASSERT_EQ(held_out->Get(id).input.min().item<int>(), 'b');
  }
  EXPECT_EQ(train->input_limit(), 256);
  EXPECT_FALSE(train->entropy_floor().has_value());
}

TEST(TextDataTest, IsReadWithAnotherTokenizer) {
  const std::string path = testing::TempDir() + "/ab";
  std::string lines;
  for (int i = 0; i < 200; ++i) lines += "ab\n";
  std::ofstream(path) << lines;
  auto data = Cached(MakeTextData(ReadText(path), 4, {}, std::make_shared<Tokenizer>()));
  EXPECT_EQ(data->input_limit(), 256);
  EXPECT_LT(data->Get(0).input.max().item<int>(), 256);
  const auto pairs = std::make_shared<Tokenizer>(LearnTokenizer(lines, 1));
  data->ReadWith(pairs);
  EXPECT_EQ(data->tokenizer(), pairs);
  EXPECT_EQ(data->input_limit(), 257);
  const at::Tensor row = data->Get(0).input;
  EXPECT_TRUE(row.eq(256).logical_or(row.eq('\n')).all().item<bool>()) << row;
  EXPECT_EQ(row.eq(256).sum().item<int>(), 2);
}

TEST(TextDataTest, TooLittleTextIsAnErrorThatNamesIt) {
  const std::string path = testing::TempDir() + "/little";
  std::ofstream(path) << "abc";
  try {
    MakeTextData(ReadText(path), 16, {}, std::make_shared<Tokenizer>());
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find(path), std::string::npos);
  }
  EXPECT_THROW(ReadText(path + ".not"), std::runtime_error);
}

TEST(FeatureDataTest, FeaturesHaveUnitVariance) {
  const auto data = MakeFeatureData(64, 50, 2.0, {.seed = 1, .samples = 1000});
  EXPECT_NEAR(BatchOf(*data, 1000).inputs.var().item<double>(), 1.0, 0.05);
}

}  // namespace
}  // namespace trainwreck
