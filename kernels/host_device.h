// Marks functions that CPU and GPU code share; means nothing to a compiler that knows no CUDA.
#pragma once

#ifdef __CUDACC__
#define TRAINWRECK_HOST_DEVICE __host__ __device__
#else
#define TRAINWRECK_HOST_DEVICE
#endif
