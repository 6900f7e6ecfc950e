// Every layer and every kind of model: outputs, and gradients of all inputs and parameters, against
// the formulas in double and difference quotients of them. Modules run in double as well, so that
// what is left is the quotients' error; where a form computes in fp32 whatever it is given, and in
// whole models once more in fp32, it is the rounding of fp32.
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>

#include "trainer/models/layers.h"
#include "trainer/models/model.h"
#include "trainer/models/models.h"
#include "trainer/references/models.h"
#include "trainer/references/tensors.h"

namespace trainwreck {
namespace {

using reference::kClasses;
using reference::kInFp32;
using reference::kLength;
using reference::Matrix;
using reference::Parameters;
using Tensors = std::map<std::string, at::Tensor>;

// Steps of 1e-4, extrapolated: the error of the method is about 1e-16 of the fifth derivative,
// that of rounding 1e-16 / 1e-4 of the values, which are below 100.
constexpr double kInDouble = 1e-9;

// A function of `inputs` and of the parameters of `module` (none: null), which have the module's
// names behind "m.".
struct LayerCase {
  std::string name;
  Parameters inputs;
  std::shared_ptr<torch::nn::Module> module;
  std::function<at::Tensor(const Tensors&)> forward;
  std::function<Matrix(const Parameters&)> expected;
  double tolerance = kInDouble;
};

NamedTensors ParametersIn(const torch::nn::Module& module) {
  NamedTensors parameters;
  for (const auto& item : module.named_parameters()) {
    parameters.emplace_back("m." + item.key(), item.value());
  }
  return parameters;
}

double WeightedSum(const Matrix& y, const Matrix& weights) {
  double sum = 0;
  for (std::size_t i = 0; i < y.values.size(); ++i) sum += y.values[i] * weights.values[i];
  return sum;
}

void Check(const LayerCase& layer, std::mt19937_64& random) {
  SCOPED_TRACE(layer.name);
  NamedTensors leaves;
  if (layer.module) {
    layer.module->to(at::kDouble);
    leaves = ParametersIn(*layer.module);
    reference::FillWithNoise(leaves, random);
  }
  Tensors inputs;
  for (const auto& [name, matrix] : layer.inputs) {
    inputs[name] = reference::TensorOf(matrix, at::kDouble).set_requires_grad(true);
    leaves.emplace_back(name, inputs[name]);
  }
  const at::Tensor y = layer.forward(inputs);
  Parameters values = reference::ValuesOf(leaves);
  const Matrix expected = layer.expected(values);
  EXPECT_LT(
      reference::Apart(reference::MatrixOf(y.reshape({expected.rows, expected.cols})), expected),
      layer.tolerance);

  const Matrix weights = reference::Noise(expected.rows, expected.cols, random);
  const at::Tensor weight = reference::TensorOf(weights, y.scalar_type()).view(y.sizes());
  (y * weight).sum().backward();
  const Parameters gradient =
      reference::Gradient([&] { return WeightedSum(layer.expected(values), weights); }, values);
  EXPECT_LT(reference::Apart(reference::GradientsOf(leaves), gradient), layer.tolerance);
}

std::vector<LayerCase> LinearCases(std::mt19937_64& random) {
  std::vector<LayerCase> cases;
  for (const auto& [name, bias, rank] :
       {std::tuple("linear", Bias::kZero, 0), std::tuple("linear without bias", Bias::kNone, 0),
        std::tuple("linear with adapter", Bias::kZero, 2)}) {
    at::Generator generator = MakeGenerator(1);
    const auto linear = std::make_shared<Linear>(4, 3, 1.0, generator, bias);
    if (rank > 0) linear->AddAdapter(rank, generator);
    cases.push_back({name,
                     {{"x", reference::Noise(5, 4, random)}},
                     linear,
                     [linear](const Tensors& in) { return linear->Forward(in.at("x")); },
                     [](const Parameters& in) { return reference::Linear(in.at("x"), in, "m"); }});
  }
  at::Generator generator = MakeGenerator(1);
  const auto table = std::make_shared<Embedding>(4, 3, 1.0, generator);
  const std::vector<std::int64_t> ids = {2, 0, 2, 3, 2};
  cases.push_back({"embedding",
                   {},
                   table,
                   [table, ids](const Tensors&) { return table->Forward(at::tensor(ids)); },
                   [ids](const Parameters& in) {
                     Matrix rows(static_cast<int>(ids.size()), 3);
                     for (int r = 0; r < rows.rows; ++r) {
                       const auto id = static_cast<int>(ids[static_cast<std::size_t>(r)]);
                       for (int c = 0; c < 3; ++c) rows(r, c) = in.at("m.weight")(id, c);
                     }
                     return rows;
                   }});
  return cases;
}

std::vector<LayerCase> NormCases(std::mt19937_64& random) {
  const Parameters x = {{"x", reference::Noise(4, 5, random)}};
  std::vector<LayerCase> cases;
  const auto layer_norm = std::make_shared<LayerNorm>(5);
  cases.push_back({"layer norm", x, layer_norm,
                   [layer_norm](const Tensors& in) { return layer_norm->Forward(in.at("x")); },
                   [](const Parameters& in) { return reference::LayerNorm(in.at("x"), in, "m"); }});
  Parameters little = x;  // next to which its epsilon shows
  for (double& value : little.at("x").values) value *= 0.1;
  for (const auto& [name, inputs, tolerance] :
       {std::tuple("rms norm", x, kInDouble), std::tuple("rms norm of little", little, 1e-8)}) {
    const auto rms_norm = std::make_shared<RmsNorm>(5);
    cases.push_back({name, inputs, rms_norm,
                     [rms_norm](const Tensors& in) { return rms_norm->Forward(in.at("x")); },
                     [](const Parameters& in) { return reference::RmsNorm(in.at("x"), in, "m"); },
                     tolerance});
  }
  for (const bool training : {true, false}) {
    const auto batch_norm = std::make_shared<BatchNorm>(5);
    batch_norm->train(training);
    cases.push_back(
        {training ? "batch norm" : "batch norm in evaluation", x, batch_norm,
         [batch_norm](const Tensors& in) { return batch_norm->Forward(in.at("x")); },
         [training](const Parameters& in) {
           reference::RunningMeans fresh{std::vector<double>(5, 0), std::vector<double>(5, 1)};
           return reference::BatchNorm(in.at("x"), in, "m", fresh, training);
         }});
  }
  for (const auto form :
       {InputNorm::kTwoPass, InputNorm::kOnePass, InputNorm::kOnePassClamped, InputNorm::kNone}) {
    const auto standardise = std::make_shared<Standardise>(form);
    cases.push_back(
        {"standardise " + std::to_string(static_cast<int>(form)), x, standardise,
         [standardise](const Tensors& in) { return standardise->Forward(in.at("x")); },
         [form](const Parameters& in) { return reference::Standardised(in.at("x"), form); }});
  }
  for (const auto form : {NormaliseForm::kClamped, NormaliseForm::kEpsInside,
                          NormaliseForm::kEpsOutside, NormaliseForm::kPlain}) {
    const auto normalise = std::make_shared<Normalise>(form);
    cases.push_back(
        {"normalise " + std::to_string(static_cast<int>(form)), x, normalise,
         [normalise](const Tensors& in) { return normalise->Forward(in.at("x")); },
         [form](const Parameters& in) { return reference::Normalised(in.at("x"), form); }});
  }
  return cases;
}

std::vector<LayerCase> ElementwiseCases(std::mt19937_64& random) {
  const Parameters x = {{"x", reference::Noise(4, 6, random)}};
  std::vector<LayerCase> cases;
  for (const auto kind :
       {Activation::kRelu, Activation::kLeakyRelu, Activation::kTanh, Activation::kSigmoid}) {
    const auto layer = std::make_shared<Nonlinearity>(kind);
    cases.push_back({"activation " + std::to_string(static_cast<int>(kind)), x, layer,
                     [layer](const Tensors& in) { return layer->Forward(in.at("x")); },
                     [kind](const Parameters& in) { return Activated(in.at("x"), kind); }});
  }
  const auto gelu = std::make_shared<Gelu>();
  cases.push_back({"gelu", x, gelu, [gelu](const Tensors& in) { return gelu->Forward(in.at("x")); },
                   [](const Parameters& in) { return reference::Gelu(in.at("x")); }});
  // Its angles are made in fp32.
  for (const double scale : {1.0, 0.25}) {
    cases.push_back({"rotary positions", x, nullptr,
                     [scale](const Tensors& in) { return Rotary(scale).Forward(in.at("x")); },
                     [scale](const Parameters& in) { return Rotated(in.at("x"), scale); },
                     kInFp32});
  }
  return cases;
}

std::vector<LayerCase> AttentionCases(std::mt19937_64& random) {
  Parameters qkv;
  for (const char* name : {"q", "k", "v"}) qkv[name] = reference::Noise(5, 4, random);
  const auto later = [](int i, int j) { return j > i; };
  const auto far = [](int i, int j) { return j > i || j < i - 1; };
  const auto far_mask = [](std::int64_t length, at::Device) {
    const at::Tensor all = at::ones({length, length}, at::kBool);
    return all.triu(1).logical_or(all.tril(-2));
  };
  std::vector<LayerCase> cases;
  const auto add = [&](const std::string& name, AttentionForm form, bool own_mask) {
    const auto attention = std::make_shared<CausalAttention>(form);
    if (own_mask) attention->set_mask(far_mask);
    cases.push_back({name, qkv, attention,
                     [attention](const Tensors& in) {
                       const auto one_head = [&](const char* part) {
                         return in.at(part).view({1, 1, 5, 4});
                       };
                       return attention->Forward(one_head("q"), one_head("k"), one_head("v"));
                     },
                     [=](const Parameters& in) {
                       return own_mask ? Attention(in.at("q"), in.at("k"), in.at("v"), far)
                                       : Attention(in.at("q"), in.at("k"), in.at("v"), later);
                     },
                     form == AttentionForm::kExplicitFp32 ? kInFp32 : kInDouble});
  };
  add("fused attention", AttentionForm::kFused, false);
  add("explicit attention", AttentionForm::kExplicit, false);
  add("explicit attention in fp32", AttentionForm::kExplicitFp32, false);
  add("attention with a mask of its own", AttentionForm::kExplicit, true);
  return cases;
}

TEST(GradientTest, LayersEqualTheirFormulas) {
  std::mt19937_64 random(5);
  for (const auto& make : {LinearCases, NormCases, ElementwiseCases, AttentionCases}) {
    for (const LayerCase& layer : make(random)) Check(layer, random);
  }
}

// Where each place of the epsilon shows; values alone, since the quotients' steps are longer than
// the vectors.
TEST(GradientTest, EpsilonsStandWhereTheFormSays) {
  Matrix tiny(3, 2);
  tiny.values = {3e-9, 4e-9, 3e-5, 4e-5, 3e-3, 4e-3};
  const at::Tensor x = reference::TensorOf(tiny, at::kDouble);
  for (const auto form : {NormaliseForm::kClamped, NormaliseForm::kEpsInside,
                          NormaliseForm::kEpsOutside, NormaliseForm::kPlain}) {
    EXPECT_LT(reference::Apart(reference::MatrixOf(Normalise(form).Forward(x)),
                               reference::Normalised(tiny, form)),
              kInDouble);
  }
  for (const auto form : {InputNorm::kTwoPass, InputNorm::kOnePassClamped}) {
    EXPECT_LT(reference::Apart(reference::MatrixOf(Standardise(form).Forward(x)),
                               reference::Standardised(tiny, form)),
              kInDouble);
  }
}

TEST(GradientTest, BatchNormKeepsRunningMeans) {
  std::mt19937_64 random(6);
  BatchNorm norm(3);
  norm.to(at::kDouble);
  reference::RunningMeans running{std::vector<double>(3, 0), std::vector<double>(3, 1)};
  Parameters plain = {{"m.weight", Matrix(1, 3, 1)}, {"m.bias", Matrix(1, 3, 0)}};
  for (int pass = 0; pass < 5; ++pass) {
    const bool training = pass < 4;
    norm.train(training);
    const Matrix x = reference::Noise(4, 3, random);
    const Matrix y = reference::BatchNorm(x, plain, "m", running, training);
    EXPECT_LT(Apart(reference::MatrixOf(norm.Forward(reference::TensorOf(x, at::kDouble))), y),
              kInDouble);
    for (std::size_t c = 0; c < 3; ++c) {
      const auto i = static_cast<std::int64_t>(c);
      EXPECT_NEAR(norm.named_buffers()["running_mean"][i].item<double>(), running.mean[c], 1e-12);
      EXPECT_NEAR(norm.named_buffers()["running_var"][i].item<double>(), running.variance[c],
                  1e-12);
    }
  }
}

// Srivastava et al. 2014, section 10, in the form that scales up in training.
TEST(GradientTest, DropoutScalesUpWhatItKeeps) {
  constexpr double kShare = 0.3;
  constexpr int kCount = 10000;
  at::manual_seed(7);
  Dropout dropout(kShare);
  const at::Tensor x = at::ones({kCount}, at::kDouble).mul(2).set_requires_grad(true);
  const at::Tensor y = dropout.Forward(x);
  y.sum().backward();
  const Matrix kept = reference::MatrixOf(y), gradient = reference::MatrixOf(x.grad());
  int zeros = 0;
  for (std::size_t i = 0; i < kCount; ++i) {
    zeros += kept.values[i] == 0;
    const double factor = kept.values[i] == 0 ? 0 : 1 / (1 - kShare);
    ASSERT_NEAR(kept.values[i], 2 * factor, 1e-12);
    ASSERT_NEAR(gradient.values[i], factor, 1e-12);
  }
  const double deviation = std::sqrt(kCount * kShare * (1 - kShare));
  EXPECT_NEAR(zeros, kCount * kShare, 5 * deviation);
  dropout.eval();
  EXPECT_TRUE(dropout.Forward(x).equal(x));
}

constexpr int kFeatures = 3;

bool TakesTokens(const ModelRecipe& recipe) { return recipe.kind == "gpt" || recipe.kind == "rnn"; }

std::shared_ptr<Model> MakeModel(const ModelRecipe& recipe) {
  if (recipe.kind == "gpt") return MakeGpt(recipe, kClasses, kLength, 1);
  if (recipe.kind == "rnn") return MakeRnn(recipe, kClasses, 1);
  if (recipe.kind == "mlp") return MakeMlp(recipe, kFeatures, kClasses, 1);
  return MakePrototype(recipe, kFeatures, kClasses, 1);
}

// Sequences of unequal numbers of targets that count, or one batch of feature vectors.
std::vector<reference::Example> DrawExamples(bool tokens, std::mt19937_64& random) {
  std::uniform_int_distribution<int> any(0, kClasses - 1);
  std::vector<reference::Example> examples(tokens ? 2 : 1);
  for (std::size_t s = 0; s < examples.size(); ++s) {
    reference::Example& example = examples[s];
    for (int t = 0; t < kLength; ++t) {
      if (tokens) example.tokens.push_back(any(random));
      example.targets.classes.push_back(any(random));
      example.targets.weights.push_back(s == 0 && t < 3 ? 0.0 : 1.0 + 0.25 * t);
    }
    if (!tokens) example.features = reference::Noise(kLength, kFeatures, random);
  }
  return examples;
}

Batch BatchOf(const std::vector<reference::Example>& examples, at::ScalarType dtype) {
  Batch batch;
  std::vector<std::int64_t> tokens, targets;
  std::vector<double> weights;
  for (const reference::Example& example : examples) {
    tokens.insert(tokens.end(), example.tokens.begin(), example.tokens.end());
    const auto& [classes, of_each] = example.targets;
    targets.insert(targets.end(), classes.begin(), classes.end());
    weights.insert(weights.end(), of_each.begin(), of_each.end());
  }
  batch.targets = at::tensor(targets);
  batch.weights = at::tensor(weights, at::kDouble).to(dtype);
  if (tokens.empty()) {
    batch.inputs = reference::TensorOf(examples[0].features, dtype);
  } else {
    const std::int64_t count = static_cast<std::int64_t>(examples.size());
    batch.inputs = at::tensor(tokens).view({count, kLength});
    batch.targets = batch.targets.view({count, kLength});
    batch.weights = batch.weights.view({count, kLength});
    std::vector<std::int64_t> documents;
    for (const reference::Example& example : examples) {
      documents.insert(documents.end(), example.documents.begin(), example.documents.end());
    }
    if (!documents.empty()) batch.documents = at::tensor(documents).view({count, kLength});
  }
  batch.ids.resize(static_cast<std::size_t>(batch.inputs.size(0)));
  return batch;
}

struct ModelCase {
  std::string name;
  ModelRecipe recipe;
  double tolerance = kInDouble;
  double qkv_size = 1;  // of the weights that make queries, keys and values
  bool packed = false;  // rows of several documents
};

std::vector<ModelCase> GptCases() {
  const ModelRecipe plain{.kind = "gpt", .layers = 1, .width = 4, .heads = 2};
  std::vector<ModelCase> cases = {{"gpt", plain}};
  const auto add = [&](const char* name, double tolerance) -> ModelRecipe& {
    cases.push_back({name, plain, tolerance});
    return cases.back().recipe;
  };
  ModelRecipe& post = add("norm post, two blocks", kInDouble);
  post.norm = NormPlace::kPost;
  post.layers = 2;
  add("one head", kInDouble).heads = 1;
  add("explicit attention", kInDouble).attention = AttentionForm::kExplicit;
  add("explicit attention in fp32", kInFp32).attention = AttentionForm::kExplicitFp32;
  add("rotary positions", kInFp32).positions = Positions::kRotary;
  ModelRecipe& stretched = add("stretched rotary positions", kInFp32);
  stretched.positions = Positions::kRotary;
  stretched.rotary_scale = 0.5;
  stretched.heads = 1;
  add("no positions", kInDouble).positions = Positions::kNone;
  add("norm of queries and keys", kInFp32).qk_norm = true;
  add("norm of short queries and keys: its epsilon shows", kInFp32).qk_norm = true;
  cases.back().qkv_size = 0.01;
  ModelRecipe& recomputed = add("recomputed activations, two blocks", kInDouble);
  recomputed.activation_checkpointing = true;
  recomputed.layers = 2;
  add("one table for embeddings and head", kInDouble).tied_embeddings = true;
  add("rms norm", kInDouble).norm_kind = NormKind::kRms;
  ModelRecipe& rms_post = add("rms norm, post, two blocks", kInDouble);
  rms_post.norm = NormPlace::kPost;
  rms_post.norm_kind = NormKind::kRms;
  rms_post.layers = 2;
  add("z-loss", kInDouble).loss.z_loss = 0.1;
  add("packed", kInDouble);
  cases.back().packed = true;
  ModelRecipe& packed = add("packed, explicit attention, two blocks, recomputed", kInDouble);
  packed.attention = AttentionForm::kExplicit;
  packed.layers = 2;
  packed.activation_checkpointing = true;
  cases.back().packed = true;
  add("packed, rotary positions", kInFp32).positions = Positions::kRotary;
  cases.back().packed = true;
  add("smoothed labels", kInDouble).loss = {.label_smoothing = 0.2, .weight = 0.5};
  add("mean of each sequence", kInDouble).loss.per_sequence = true;
  return cases;
}

std::vector<ModelCase> OtherCases() {
  const ModelRecipe rnn{.kind = "rnn", .width = 4};
  const ModelRecipe mlp{.kind = "mlp", .layers = 2, .width = 4};
  ModelRecipe prototype{.kind = "prototype", .layers = 2, .width = 4};
  prototype.logit_scale = 3;
  std::vector<ModelCase> cases;
  const auto add = [&](const char* name, const ModelRecipe& recipe,
                       double tolerance = kInDouble) -> ModelRecipe& {
    cases.push_back({name, recipe, tolerance});
    return cases.back().recipe;
  };
  add("rnn", rnn).activation = Activation::kTanh;
  add("rnn, relu", rnn);
  add("rnn, sigmoid", rnn).activation = Activation::kSigmoid;
  add("mlp", mlp);
  add("mlp, leaky", mlp).activation = Activation::kLeakyRelu;
  add("mlp, tanh", mlp).activation = Activation::kTanh;
  add("mlp, sigmoid", mlp).activation = Activation::kSigmoid;
  add("mlp with layer norm", mlp).layer_norm = true;
  add("mlp with batch norm", mlp).batch_norm = true;
  add("mlp with residual", mlp).residual = true;
  add("mlp with adapters", mlp).lora_rank = 2;
  add("mlp with log of softmax", mlp, kInFp32).loss = {.form = LossForm::kLogOfSoftmax,
                                                       .eps = 0.01};
  add("mlp with plain softmax", mlp, kInFp32).loss = {.form = LossForm::kPlainSoftmax, .eps = 0.01};
  add("mlp with log sum exp", mlp, kInFp32).loss = {.form = LossForm::kPlainLogSumExp, .eps = 0.01};
  add("cosine", prototype);
  add("distance", prototype).similarity = SimilarityKind::kDistance;
  for (const auto form :
       {NormaliseForm::kEpsInside, NormaliseForm::kEpsOutside, NormaliseForm::kPlain}) {
    add("cosine, another epsilon", prototype).normalise = form;
  }
  for (const auto form : {InputNorm::kTwoPass, InputNorm::kOnePass, InputNorm::kOnePassClamped}) {
    add("cosine, standardised inputs", prototype).input_norm = form;
  }
  return cases;
}

TEST(GradientTest, ModelsEqualTheirFormulas) {
  std::vector<ModelCase> cases = GptCases();
  for (const ModelCase& other : OtherCases()) cases.push_back(other);
  for (const ModelCase& model_case : cases) {
    const ModelRecipe& recipe = model_case.recipe;
    SCOPED_TRACE(model_case.name);
    std::mt19937_64 random(8);
    auto examples = DrawExamples(TakesTokens(recipe), random);
    for (std::size_t s = 0; model_case.packed && s < examples.size(); ++s) {
      // Documents of one token or more; the second row's are others than the first's.
      for (int t = 0; t < kLength; ++t) {
        examples[s].documents.push_back((t + static_cast<int>(s) + 1) / 2);
      }
    }
    const auto model = MakeModel(recipe);
    const NamedTensors tensors = ParametersOf(*model);
    reference::FillWithNoise(tensors, random);
    for (const auto& [name, tensor] : tensors) {
      if (name.find(".qkv.") != std::string::npos) tensor.data().mul_(model_case.qkv_size);
    }
    Parameters values = reference::ValuesOf(tensors);
    const double loss = reference::Loss(recipe, values, examples);
    const Parameters gradient =
        reference::Gradient([&] { return reference::Loss(recipe, values, examples); }, values);
    for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
      // What this one puts out is fp32, which a model in double cannot go on with.
      if (dtype == at::kDouble && recipe.attention == AttentionForm::kExplicitFp32) continue;
      model->to(dtype);
      model->zero_grad();
      const at::Tensor actual = model->Loss(BatchOf(examples, dtype));
      actual.backward();
      const double tolerance = dtype == at::kFloat ? kInFp32 : model_case.tolerance;
      EXPECT_NEAR(actual.item<double>(), loss, tolerance * (1 + loss)) << dtype;
      EXPECT_LT(reference::Apart(reference::GradientsOf(tensors), gradient), tolerance) << dtype;
    }
  }
}

}  // namespace
}  // namespace trainwreck
