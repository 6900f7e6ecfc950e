// The reference models. Parameters have stable dotted names, which faults, signals and recipes use
// in globs.
#pragma once

#include <memory>

#include "trainer/parts.h"
#include "trainer/recipe/recipe.h"

namespace trainwreck {

// Decoder-only transformer (Radford et al. 2019): learned or rotary positions, or none, GELU; a
// norm before each sublayer, or after its residual sum as in Vaswani et al. 2017 (norm: post). The
// head has its own weight, or shares that of the token embeddings (model.tied_embeddings). A shared
// weight is N(0, 0.02), and is multiplied by the root of the width where it embeds (Vaswani et al.
// 2017, section 3.4). Else: weights N(0, 0.02), token embeddings N(0, 0.1); those of blocks times
// model.init_scale, residual projections divided by sqrt(2 * layers). Names: embed, pos,
// blocks.<i>.{norm1, attn.qkv, attn.mix, attn.proj, norm2, mlp.fc, mlp.gelu, mlp.proj}, norm, head,
// loss; a block announces its own output as well.
std::shared_ptr<Model> MakeGpt(const ModelRecipe& recipe, std::int64_t vocab, std::int64_t seq_len,
                               std::uint64_t seed);

// Linear, layer or batch norm where asked for, and an activation, `layers` times, then a linear
// head.
// Names: layers.<i>, layers.norm<i>, layers.relu<i> (or another activation's name), head, loss.
std::shared_ptr<Model> MakeMlp(const ModelRecipe& recipe, std::int64_t features,
                               std::int64_t classes, std::uint64_t seed);

// A classifier by similarity: ReLU layers without biases, an embedding, and as logits the cosine of
// the angle between it and a learned prototype of each class (as in CLIP, Radford et al. 2021), or
// its negative squared distance from them (Snell et al. 2017), times model.logit_scale. An input of
// zeros stays zero up to the embedding. Names: input_norm, layers.<i>, layers.relu<i>, embed,
// normalise, similarity, prototypes, loss.
std::shared_ptr<Model> MakePrototype(const ModelRecipe& recipe, std::int64_t features,
                                     std::int64_t classes, std::uint64_t seed);

// Elman's network (1990) over tokens: h = f(W x + U h + b) with f the recipe's activation, and a
// head at each position. U is N(0, 1 / width), times model.init_scale: its spectral radius. Names:
// embed, cell.input, cell.recurrent, cell.activation, state, head, loss.
std::shared_ptr<Model> MakeRnn(const ModelRecipe& recipe, std::int64_t vocab, std::uint64_t seed);

}  // namespace trainwreck
