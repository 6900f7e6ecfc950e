#include <cmath>

#include "trainer/models/layers.h"
#include "trainer/models/model.h"
#include "trainer/models/models.h"
#include "trainer/recipe/model_kinds.h"

namespace trainwreck {
namespace {

constexpr double kStddev = 0.02;
// Tokens larger than positions: with 0.02 the sum is so small that the first norm magnifies it 35
// times, and the loss of healthy runs jumps by whole nats for a single step.
constexpr double kTokenStddev = 0.1;

class Attention : public torch::nn::Module {
 public:
  Attention(const ModelRecipe& recipe, double stddev, double out_stddev, at::Generator& generator)
      : heads_(recipe.heads),
        qk_norm_(recipe.qk_norm),
        qkv_(register_module(
            "qkv", std::make_shared<Linear>(recipe.width, 3 * recipe.width, stddev, generator))),
        mix_(register_module("mix", std::make_shared<CausalAttention>(recipe.attention))),
        proj_(register_module(
            "proj", std::make_shared<Linear>(recipe.width, recipe.width, out_stddev, generator))) {
    if (recipe.positions == Positions::kRotary) {
      rotary_ = register_module("rotary", std::make_shared<Rotary>(recipe.rotary_scale));
    }
  }

  at::Tensor Forward(const at::Tensor& x, const at::Tensor& apart) const {
    const auto batch = x.size(0), length = x.size(1), width = x.size(2);
    // [batch, length, 3, heads, head_width] -> 3 x [batch, heads, length, head_width]
    at::Tensor qkv =
        qkv_->Forward(x).view({batch, length, 3, heads_, width / heads_}).permute({2, 0, 3, 1, 4});
    const auto prepare = [this](at::Tensor qk) {
      if (qk_norm_) qk = MeanSquareOne(qk);
      return rotary_ ? rotary_->Forward(qk) : qk;
    };
    at::Tensor mixed = mix_->Forward(prepare(qkv[0]), prepare(qkv[1]), qkv[2], apart);
    return proj_->Forward(mixed.transpose(1, 2).reshape({batch, length, width}));
  }

 private:
  std::int64_t heads_;
  bool qk_norm_;
  std::shared_ptr<Linear> qkv_;
  std::shared_ptr<CausalAttention> mix_;
  std::shared_ptr<Linear> proj_;
  std::shared_ptr<Rotary> rotary_;  // null: with other positions
};

class FeedForward : public torch::nn::Module {
 public:
  FeedForward(std::int64_t width, double stddev, double out_stddev, at::Generator& generator)
      : fc_(register_module("fc", std::make_shared<Linear>(width, 4 * width, stddev, generator))),
        gelu_(register_module("gelu", std::make_shared<Gelu>())),
        proj_(register_module("proj",
                              std::make_shared<Linear>(4 * width, width, out_stddev, generator))) {}

  at::Tensor Forward(const at::Tensor& x) const {
    return proj_->Forward(gelu_->Forward(fc_->Forward(x)));
  }

 private:
  std::shared_ptr<Linear> fc_;
  std::shared_ptr<Gelu> gelu_;
  std::shared_ptr<Linear> proj_;
};

class Block : public Section {
 public:
  Block(const ModelRecipe& recipe, at::Generator& generator)
      : pre_norm_(recipe.norm == NormPlace::kPre) {
    const double stddev = kStddev * recipe.init_scale;
    const double out_stddev = stddev / std::sqrt(2.0 * static_cast<double>(recipe.layers));
    norm1_ = register_module("norm1", MakeNorm(recipe.norm_kind, recipe.width));
    attn_ =
        register_module("attn", std::make_shared<Attention>(recipe, stddev, out_stddev, generator));
    norm2_ = register_module("norm2", MakeNorm(recipe.norm_kind, recipe.width));
    mlp_ = register_module(
        "mlp", std::make_shared<FeedForward>(recipe.width, stddev, out_stddev, generator));
    if (recipe.dropout > 0) {
      drop1_ = register_module("drop1", std::make_shared<Dropout>(recipe.dropout));
      drop2_ = register_module("drop2", std::make_shared<Dropout>(recipe.dropout));
    }
  }

  // `apart` as in Layout.
  at::Tensor Forward(const at::Tensor& input, const at::Tensor& apart) const {
    Begin();
    if (pre_norm_) {
      at::Tensor x = input + Mixed(norm1_->Forward(input), apart);
      return Announce(x + Processed(norm2_->Forward(x)));
    }
    at::Tensor x = norm1_->Forward(input + Mixed(input, apart));
    return Announce(norm2_->Forward(x + Processed(x)));
  }

 private:
  at::Tensor Mixed(const at::Tensor& x, const at::Tensor& apart) const {
    const at::Tensor y = attn_->Forward(x, apart);
    return drop1_ ? drop1_->Forward(y) : y;
  }
  at::Tensor Processed(const at::Tensor& x) const {
    const at::Tensor y = mlp_->Forward(x);
    return drop2_ ? drop2_->Forward(y) : y;
  }

  bool pre_norm_;
  std::shared_ptr<Norm> norm1_, norm2_;
  std::shared_ptr<Attention> attn_;
  std::shared_ptr<FeedForward> mlp_;
  std::shared_ptr<Dropout> drop1_, drop2_;  // none without dropout
};

class Blocks : public torch::nn::Module {
 public:
  Blocks(const ModelRecipe& recipe, at::Generator& generator) {
    for (std::int64_t i = 0; i < recipe.layers; ++i) {
      blocks_.push_back(
          register_module(std::to_string(i), std::make_shared<Block>(recipe, generator)));
    }
    if (recipe.activation_checkpointing) {
      recomputation_ = register_module("recomputation", std::make_shared<Recomputation>());
    }
  }

  at::Tensor Forward(at::Tensor x, const at::Tensor& apart) const {
    for (const auto& block : blocks_) {
      const auto forward = [block, apart](const at::Tensor& in) {
        return block->Forward(in, apart);
      };
      x = recomputation_ ? recomputation_->Forward(forward, x, block->parameters()) : forward(x);
    }
    return x;
  }

 private:
  std::vector<std::shared_ptr<Block>> blocks_;
  std::shared_ptr<Recomputation> recomputation_;  // none without activation checkpointing
};

class Gpt : public Model {
 public:
  Gpt(const ModelRecipe& recipe, std::int64_t vocab, std::int64_t seq_len, std::uint64_t seed)
      : layers_(recipe.layers), width_(static_cast<double>(recipe.width)) {
    at::Generator generator = MakeGenerator(seed);
    const std::int64_t width = recipe.width;
    const bool tied = recipe.tied_embeddings;
    embed_ = register_module("embed", std::make_shared<Embedding>(
                                          vocab, width, tied ? kStddev : kTokenStddev, generator));
    if (tied) embed_scale_ = std::sqrt(static_cast<double>(width));
    if (recipe.positions == Positions::kLearned) {
      pos_ =
          register_module("pos", std::make_shared<Embedding>(seq_len, width, kStddev, generator));
    }
    blocks_ = register_module("blocks", std::make_shared<Blocks>(recipe, generator));
    if (recipe.norm == NormPlace::kPre) {
      norm_ = register_module("norm", MakeNorm(recipe.norm_kind, width));
    }
    head_ =
        register_module("head", tied ? std::make_shared<Linear>(embed_->weight())
                                     : std::make_shared<Linear>(width, vocab, kStddev, generator));
    documents_ = register_module("documents", std::make_shared<Documents>());
    loss_ = register_module("loss", std::make_shared<WeightedCrossEntropy>(recipe.loss));
  }

  at::Tensor Logits(const at::Tensor& tokens) override { return LogitsOf(tokens, {}); }

  at::Tensor Loss(const Batch& batch) override {
    const at::Tensor logits = LogitsOf(batch.inputs, documents_->Of(batch.documents));
    return loss_->Forward(logits, batch.targets, batch.weights);
  }

  // Attention: scores and their product with the values, over the whole row for each token.
  double ForwardFlops(const Batch& batch) const override {
    const auto tokens = static_cast<double>(batch.inputs.numel());
    const auto length = static_cast<double>(batch.inputs.size(1));
    const double matrices = MatrixElements(*blocks_) + static_cast<double>(head_->weight().numel());
    const double attention = static_cast<double>(layers_) * 2 * length * width_;
    return 2 * tokens * (matrices + attention);
  }

 private:
  at::Tensor LogitsOf(const at::Tensor& tokens, const Layout& layout) const {
    at::Tensor x = embed_->Forward(tokens);
    if (embed_scale_ != 1) x = x * embed_scale_;
    if (pos_ && layout.positions.defined()) {
      x = x + pos_->Forward(layout.positions);
    } else if (pos_) {
      x = x + pos_->weight().narrow(0, 0, tokens.size(1));
    }
    x = blocks_->Forward(x, layout.apart);
    return head_->Forward(norm_ ? norm_->Forward(x) : x);
  }

  std::int64_t layers_;
  double width_;
  double embed_scale_ = 1;
  std::shared_ptr<Embedding> embed_, pos_;  // no pos with other positions than learned ones
  std::shared_ptr<Blocks> blocks_;
  std::shared_ptr<Norm> norm_;  // post-norm blocks end in one of their own
  std::shared_ptr<Linear> head_;
  std::shared_ptr<Documents> documents_;
  std::shared_ptr<WeightedCrossEntropy> loss_;
};

std::shared_ptr<Model> FromRecipe(const TrainingRecipe& recipe, const Dataset& data,
                                  std::uint64_t seed) {
  return MakeGpt(recipe.model, data.target_limit(), recipe.data.seq_len, seed);
}

REGISTER_MODEL(.name = "gpt", .takes_tokens = true, .make = FromRecipe);

}  // namespace

std::shared_ptr<Model> MakeGpt(const ModelRecipe& recipe, std::int64_t vocab, std::int64_t seq_len,
                               std::uint64_t seed) {
  return std::make_shared<Gpt>(recipe, vocab, seq_len, seed);
}

}  // namespace trainwreck
