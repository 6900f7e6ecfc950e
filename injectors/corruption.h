// Parameters and evidence of faults that damage a tensor by kernels/corrupt.h.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "harness/protocol/description.h"
#include "kernels/corrupt.h"

namespace trainwreck {

// The parameters of such a fault: kind, elements, bit, value.
std::vector<ParamInfo> CorruptionParams();

// The corruption that these parameters describe.
kernels::Corruption CorruptionOf(const std::function<Json(const std::string& name)>& param,
                                 std::uint64_t seed);

// Damages `tensor` in place, as Corrupt (tensor_views.h) does. Throws RecipeError for a dtype that
// cannot be damaged, and for a bit that it does not have.
// Returns {"elements", "changed", "index", "before", "after"}, the last three of the first element.
Json CorruptTensor(at::Tensor& tensor, const kernels::Corruption& corruption);

}  // namespace trainwreck
