// TRAINWRECK_HOST_DEVICE marks functions that CPU and GPU code share; it means nothing to a
// compiler that knows no CUDA. TRAINWRECK_UNROLL before a loop: all of it, so that the loop around
// it vectorizes; nvcc does without.
#pragma once

#ifdef __CUDACC__
#define TRAINWRECK_HOST_DEVICE __host__ __device__
#define TRAINWRECK_UNROLL
#else
#define TRAINWRECK_HOST_DEVICE
#define TRAINWRECK_UNROLL _Pragma("GCC unroll 16")
#endif
