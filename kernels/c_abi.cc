// The kernels that the Python package calls by ctypes (python/trainwreck/kernels.py): a library
// that needs those of C and C++ alone. Views and results have the layout of the structures named
// here.
#include <exception>
#include <span>

#include "kernels/digest.h"
#include "kernels/tensor.h"
#include "kernels/tensor_stats.h"

#define TRAINWRECK_EXPORT extern "C" __attribute__((visibility("default")))

using trainwreck::kernels::ChangeStats;
using trainwreck::kernels::TensorStats;
using trainwreck::kernels::TensorView;

// What Python reads and writes, in words of 64 bits. Of the type, the third word, only the lowest
// byte is read.
static_assert(sizeof(TensorView) == 3 * 8 && sizeof(TensorStats) == 7 * 8);
static_assert(sizeof(ChangeStats) == 3 * 8);

namespace {

// 0, or 1 after an exception, as where TRAINWRECK_CPU names what the processor lacks.
template <typename Call>
int StatusOf(Call call) {
  try {
    call();
    return 0;
  } catch (const std::exception&) {
    return 1;
  }
}

}  // namespace

// out[i] becomes the statistics of tensors[i].
TRAINWRECK_EXPORT int trainwreck_statistics(const TensorView* tensors, std::int64_t number,
                                            TensorStats* out) {
  const auto size = static_cast<std::size_t>(number);
  return StatusOf([&] { trainwreck::kernels::ComputeTensorStats({tensors, size}, {out, size}); });
}

TRAINWRECK_EXPORT int trainwreck_change(const float* now, const float* before, std::int64_t count,
                                        ChangeStats* out) {
  return StatusOf([&] { *out = trainwreck::kernels::CompareTensors(now, before, count); });
}

// One digest of a list of tensors, in order.
TRAINWRECK_EXPORT int trainwreck_digest(const TensorView* tensors, std::int64_t number,
                                        std::uint64_t* out) {
  const std::span all(tensors, static_cast<std::size_t>(number));
  return StatusOf([&] { *out = trainwreck::kernels::ListDigest(all); });
}
