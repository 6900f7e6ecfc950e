// What is told of the owners of memory and of the call sites that it was allocated from
// (memory_owner.h).
#pragma once

#include <cstdint>
#include <vector>

#include "harness/protocol/json.h"
#include "trainer/memory_owner.h"

namespace trainwreck {

// {"other": 512, "parameters": 4096, ...}: each owner, also without memory.
Json ByOwner(const MemoryByOwner& bytes);

// Bytes by the number of their site, as {"TrainingLoop::LogStep (trainer/loop.cc:425)": 4096, ...};
// what no scope had is "other". Their sum is that of `bytes`.
Json BySite(const std::vector<std::int64_t>& bytes);

// Of an owner's memory, the site that has most of it: fields `site`, `site_at` and `site_share`, of
// all `bytes`. Empty: no site of its has any.
Json LargestSite(MemoryOwner owner, const std::vector<std::int64_t>& bytes);

}  // namespace trainwreck
