// What a step works with, for people: the event `batch`, one for each micro-batch, where the plan's
// `record` names it.
#pragma once

#include "harness/protocol/json.h"
#include "trainer/events.h"
#include "trainer/parts.h"

namespace trainwreck {

// The fields of the event. Each tensor (inputs, targets, weights, documents) with its shape, dtype,
// and the least, largest and mean of its finite elements; of the first 16 samples the id and the
// first 128 values of each tensor. With a tokenizer (or null) samples have their text, with a `?`
// in place of what is not printable ASCII.
Json DescribeBatch(const Batch& batch, std::size_t micro_batch, const Tokenizer* tokenizer);

namespace events {

extern const EventKind kBatch;

}  // namespace events
}  // namespace trainwreck
