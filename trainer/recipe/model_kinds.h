// The models that are linked in, by the name that model.kind gives them. A model is one file that
// registers itself, here (model_mlp.cc) or in a repository of one's own
// (examples/out_of_tree/models/residual_mlp.cc).
//
//   REGISTER_MODEL(.name = "mlp", .takes_tokens = false, .make = MakeFromRecipe);
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "trainer/recipe/recipe.h"

namespace trainwreck {

class Dataset;
class Model;

struct ModelKind {
  std::string name;
  bool takes_tokens = false;  // else features; which data.kind fits follows from it
  // Weights depend on the arguments alone, and are on the CPU. A recipe with only defaults must
  // work: the fork server warms up with it.
  std::shared_ptr<Model> (*make)(const TrainingRecipe& recipe, const Dataset& data,
                                 std::uint64_t seed) = nullptr;
};

const std::map<std::string, ModelKind>& ModelKinds();

// Called before main, once per model; aborts with a message when the name is taken or empty.
bool RegisterModel(ModelKind kind);

#define REGISTER_MODEL(...) \
  [[maybe_unused]] static const bool registered_model = ::trainwreck::RegisterModel({__VA_ARGS__})

}  // namespace trainwreck
