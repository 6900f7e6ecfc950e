// How the blocks of a launch are run: by fibers (cuda_fibers.cc), in a random order that a seed
// repeats, or by threads of their own (cuda_threads.cc), for the thread sanitizer.
#pragma once

#include <cstdint>
#include <functional>

namespace trainwreck::kernels::cuda {

// Throws std::runtime_error with what the kernel did wrong.
void RunBlocks(const std::function<void()>& thread, unsigned blocks, unsigned threads);

// Fills the memory of all __shared__ variables.
void PoisonSharedMemory();

}  // namespace trainwreck::kernels::cuda
