// What model.scale_parameters and model.shift_parameters share: which parts of which parameters.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "injectors/injector.h"
#include "trainer/recipe/recipe.h"

namespace trainwreck {

inline ParamInfo ParametersParam() {
  return {.name = "parameters",
          .type = ValueType::kStringList,
          .default_value = nullptr,
          .unit = "globs",
          .doc = "Over the model's parameter names: [\"blocks.1.mlp.*.weight\"]."};
}

inline ParamInfo RowsParam() {
  return {.name = "rows",
          .type = ValueType::kIntList,
          .default_value = Json::array(),
          .min = 0,
          .unit = "rows",
          .doc =
              "Of their first dimension, [begin, end): queries and keys are the first two thirds "
              "of attn.qkv. Empty: all."};
}

struct Matched {
  std::vector<std::string> names;
  std::int64_t elements = 0;
};

// Calls `act` with the rows of each parameter whose name matches. Throws std::runtime_error when it
// has not as many.
inline Matched ForMatchingParameters(Model& model,
                                     const std::function<bool(const std::string&)>& matches,
                                     const std::vector<std::int64_t>& rows,
                                     const std::function<void(at::Tensor)>& act) {
  Matched matched;
  for (const auto& [name, parameter] : ParametersOf(model)) {
    if (!matches(name)) continue;
    at::Tensor part = parameter;
    if (!rows.empty()) {
      if (rows.size() != 2 || rows[0] >= rows[1] || part.dim() == 0 || rows[1] > part.size(0)) {
        throw RecipeError("rows: [begin, end) must lie within " + name + ", which has " +
                          std::to_string(part.dim() == 0 ? 0 : part.size(0)));
      }
      part = part.narrow(0, rows[0], rows[1] - rows[0]);
    }
    act(part);
    matched.names.push_back(name);
    matched.elements += part.numel();
  }
  return matched;
}

}  // namespace trainwreck
