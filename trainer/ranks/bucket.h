// Bucketed mean of gradients over the ranks: a few large all-reduces instead of one for each
// parameter.
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/parts.h"

namespace trainwreck {

// Replaces each tensor by its sum over the ranks divided by `active`, the number of ranks whose
// tensors carry data (the others, in join mode, pass zeros). Tensors are packed in order into flat
// buckets of one dtype and at most `bucket_bytes` (a larger tensor is a bucket of its own); every
// rank must pass tensors of the same shapes and dtypes, since that is what makes their calls agree.
// Undefined tensors are passed over, and must be undefined on every rank. With one rank nothing is
// sent.
void AllReduceMean(Communicator& communicator, const std::vector<at::Tensor>& tensors,
                   std::int64_t bucket_bytes, double active);

}  // namespace trainwreck
