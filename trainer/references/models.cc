#include "trainer/references/models.h"

#include <cmath>
#include <stdexcept>

namespace trainwreck::reference {
namespace {

Matrix RowsOf(const Matrix& table, const std::vector<int>& ids) {
  Matrix rows(static_cast<int>(ids.size()), table.cols);
  for (int r = 0; r < rows.rows; ++r) {
    for (int c = 0; c < table.cols; ++c) rows(r, c) = table(ids[static_cast<std::size_t>(r)], c);
  }
  return rows;
}

Matrix Columns(const Matrix& x, int begin, int count) {
  Matrix part(x.rows, count);
  for (int r = 0; r < x.rows; ++r) {
    for (int c = 0; c < count; ++c) part(r, c) = x(r, begin + c);
  }
  return part;
}

// Vaswani et al. 2017, section 3.2.2, over positions up to one's own (section 3.2.3).
Matrix ManyHeads(const ModelRecipe& recipe, const Parameters& parameters, const std::string& name,
                 const Matrix& x, const std::vector<int>& documents) {
  const auto hidden = [&documents](int position, int other) {
    if (other > position) return true;
    return !documents.empty() && documents[static_cast<std::size_t>(other)] !=
                                     documents[static_cast<std::size_t>(position)];
  };
  const Matrix qkv = Linear(x, parameters, name + ".qkv");
  const int width = x.cols, head_width = width / static_cast<int>(recipe.heads);
  const auto prepared = [&](int begin) {
    Matrix part = Columns(qkv, begin, head_width);
    if (recipe.qk_norm) part = MeanSquareOne(part);
    return recipe.positions == Positions::kRotary ? Rotated(part, recipe.rotary_scale) : part;
  };
  Matrix all(x.rows, width);
  for (int begin = 0; begin < width; begin += head_width) {
    const Matrix mixed = Attention(prepared(begin), prepared(width + begin),
                                   Columns(qkv, 2 * width + begin, head_width), hidden);
    for (int r = 0; r < x.rows; ++r) {
      for (int c = 0; c < head_width; ++c) all(r, begin + c) = mixed(r, c);
    }
  }
  return Linear(all, parameters, name + ".proj");
}

// Radford et al. 2019, section 2.3: norms in front of each sublayer and a last one; or behind each
// residual sum (Vaswani et al. 2017, section 3.1).
Matrix GptLogits(const ModelRecipe& recipe, const Parameters& parameters,
                 const std::vector<int>& tokens, const std::vector<int>& documents) {
  Matrix x = RowsOf(parameters.at("embed.weight"), tokens);
  if (recipe.tied_embeddings) {  // Vaswani et al. 2017, section 3.4
    for (double& value : x.values) value *= std::sqrt(static_cast<double>(x.cols));
  }
  if (recipe.positions == Positions::kLearned) {
    std::vector<int> positions;
    for (std::size_t t = 0; t < tokens.size(); ++t) {
      const bool begins = t == 0 || (!documents.empty() && documents[t] != documents[t - 1]);
      positions.push_back(begins ? 0 : positions.back() + 1);
    }
    x = Added(x, RowsOf(parameters.at("pos.weight"), positions));
  }
  const auto normed = [&](const Matrix& in, const std::string& name) {
    const bool rms = recipe.norm_kind == NormKind::kRms;
    return rms ? RmsNorm(in, parameters, name) : LayerNorm(in, parameters, name);
  };
  for (int i = 0; i < recipe.layers; ++i) {
    const std::string block = "blocks." + std::to_string(i);
    const auto mixed = [&](const Matrix& in) {
      return ManyHeads(recipe, parameters, block + ".attn", in, documents);
    };
    const auto processed = [&](const Matrix& in) {
      return Linear(Gelu(Linear(in, parameters, block + ".mlp.fc")), parameters,
                    block + ".mlp.proj");
    };
    if (recipe.norm == NormPlace::kPre) {
      x = Added(x, mixed(normed(x, block + ".norm1")));
      x = Added(x, processed(normed(x, block + ".norm2")));
    } else {
      x = normed(Added(x, mixed(x)), block + ".norm1");
      x = normed(Added(x, processed(x)), block + ".norm2");
    }
  }
  if (recipe.norm == NormPlace::kPre) x = normed(x, "norm");
  if (!recipe.tied_embeddings) return Linear(x, parameters, "head");
  return Linear(
      x,
      {{"head.weight", parameters.at("embed.weight")}, {"head.bias", parameters.at("head.bias")}},
      "head");
}

// Elman 1990, with a state of zeros at first.
Matrix RnnLogits(const ModelRecipe& recipe, const Parameters& parameters,
                 const std::vector<int>& tokens) {
  Matrix state(1, static_cast<int>(recipe.width));
  Matrix states(0, state.cols);
  for (const int token : tokens) {
    const Matrix input = RowsOf(parameters.at("embed.weight"), {token});
    state = Activated(
        Added(Linear(input, parameters, "cell.input"), Linear(state, parameters, "cell.recurrent")),
        recipe.activation);
    states.values.insert(states.values.end(), state.values.begin(), state.values.end());
    ++states.rows;
  }
  return Linear(states, parameters, "head");
}

Matrix MlpLogits(const ModelRecipe& recipe, const Parameters& parameters, Matrix x) {
  for (int i = 0; i < recipe.layers; ++i) {
    const std::string number = std::to_string(i);
    Matrix hidden = Linear(x, parameters, "layers." + number);
    if (recipe.layer_norm) hidden = LayerNorm(hidden, parameters, "layers.norm" + number);
    if (recipe.batch_norm) {
      const auto width = static_cast<std::size_t>(recipe.width);
      RunningMeans unused{std::vector<double>(width), std::vector<double>(width)};
      hidden = BatchNorm(hidden, parameters, "layers.norm" + number, unused, /*training=*/true);
    }
    hidden = Activated(hidden, recipe.activation);
    x = recipe.residual && x.cols == hidden.cols ? Added(x, hidden) : hidden;
  }
  return Linear(x, parameters, "head");
}

// Cosines (Radford et al. 2021) or negative squared distances (Snell et al. 2017, eq. 2).
Matrix PrototypeLogits(const ModelRecipe& recipe, const Parameters& parameters, Matrix x) {
  x = Standardised(x, recipe.input_norm);
  for (int i = 0; i < recipe.layers; ++i) {
    x = Activated(Linear(x, parameters, "layers." + std::to_string(i)), Activation::kRelu);
  }
  x = Linear(x, parameters, "embed");
  Matrix prototypes = parameters.at("prototypes.weight");
  const bool cosine = recipe.similarity == SimilarityKind::kCosine;
  if (cosine) {
    x = Normalised(x, recipe.normalise);
    prototypes = Normalised(prototypes, recipe.normalise);
  }
  Matrix logits(x.rows, prototypes.rows);
  for (int r = 0; r < x.rows; ++r) {
    for (int p = 0; p < prototypes.rows; ++p) {
      double sum = 0;
      for (int c = 0; c < x.cols; ++c) {
        const double apart = x(r, c) - prototypes(p, c);
        sum += cosine ? x(r, c) * prototypes(p, c) : -apart * apart;
      }
      logits(r, p) = recipe.logit_scale * sum;
    }
  }
  return logits;
}

Matrix Logits(const ModelRecipe& recipe, const Parameters& parameters, const Example& example) {
  if (recipe.kind == "gpt") {
    return GptLogits(recipe, parameters, example.tokens, example.documents);
  }
  if (recipe.kind == "rnn") return RnnLogits(recipe, parameters, example.tokens);
  if (recipe.kind == "mlp") return MlpLogits(recipe, parameters, example.features);
  if (recipe.kind == "prototype") return PrototypeLogits(recipe, parameters, example.features);
  throw std::logic_error("no reference of " + recipe.kind);
}

}  // namespace

double Loss(const ModelRecipe& recipe, const Parameters& parameters,
            const std::vector<Example>& examples) {
  std::vector<Matrix> logits;
  std::vector<Targets> targets;
  for (const Example& example : examples) {
    logits.push_back(Logits(recipe, parameters, example));
    targets.push_back(example.targets);
  }
  return CrossEntropy(logits, targets, recipe.loss);
}

}  // namespace trainwreck::reference
