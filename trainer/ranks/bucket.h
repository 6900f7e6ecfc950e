// Bucketed mean of gradients over the ranks: a few large all-reduces instead of one for each
// parameter.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "trainer/parts.h"

namespace trainwreck {

// The gradient of a parameter; zeros where no backward pass made one.
at::Tensor& GradientOf(const at::Tensor& parameter);

// Packs tensors in order into buckets of one dtype and at most `bucket_bytes`; a larger tensor is a
// bucket of its own. Undefined tensors are in none.
std::vector<std::vector<at::Tensor>> IntoBuckets(const std::vector<at::Tensor>& tensors,
                                                 std::int64_t bucket_bytes);

// AllReduceMean of one bucket. With `sent_dtype`, values are rounded to it before they are sent, as
// are their sums over the ranks.
void ReduceBucket(Communicator& communicator, const std::vector<at::Tensor>& tensors, double active,
                  std::optional<at::ScalarType> sent_dtype = {});

// Replaces each tensor by its sum over the ranks divided by `active`, the number of ranks whose
// tensors carry data (the others, in join mode, pass zeros). Every rank must pass tensors of the
// same shapes and dtypes, since that is what makes their calls agree.
// Undefined tensors are passed over, and must be undefined on every rank. With one rank nothing is
// sent.
void AllReduceMean(Communicator& communicator, const std::vector<at::Tensor>& tensors,
                   std::int64_t bucket_bytes, double active,
                   std::optional<at::ScalarType> sent_dtype = {});

}  // namespace trainwreck
